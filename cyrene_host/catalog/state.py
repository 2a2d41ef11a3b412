"""The states of a plugin's life."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CALLABLE_STATES", "PluginState"]


class PluginState(StrEnum):
    """Where a plugin is in its life; what each means is in docs/plugin-life.md."""

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

    @property
    def claim(self) -> str:
        """What a sentence says of a plugin in this state, such as `is blocked`."""
        return "has failed" if self is PluginState.FAILED else f"is {self.value}"

    def mend_of(self, plugin: str) -> str:
        """What to do about a plugin in this state where no error says so."""
        return f"`cyrene plugins enable {plugin}`" if self is PluginState.DISABLED else "`cyrene health` tells more"


CALLABLE_STATES = frozenset({PluginState.DISCOVERED, PluginState.STARTED, PluginState.DEGRADED})
"""The states whose tools are offered."""
