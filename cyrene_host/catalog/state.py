"""The states of a plugin's life."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CALLABLE_STATES", "PluginState"]


class PluginState(StrEnum):
    """Where a plugin is in its life; what each means is in docs/architecture.md."""

    DISABLED = "disabled"
    DISCOVERED = "discovered"
    INCOMPATIBLE = "incompatible"
    BLOCKED = "blocked"
    STARTING = "starting"
    LOADED = "loaded"
    STARTED = "started"
    DEGRADED = "degraded"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPING = "stopping"
    STOPPED = "stopped"


CALLABLE_STATES = frozenset({PluginState.DISCOVERED, PluginState.STARTED, PluginState.DEGRADED})
"""The states whose tools are offered."""
