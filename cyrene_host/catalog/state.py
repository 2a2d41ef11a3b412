"""The states of a plugin's life."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CALLABLE_STATES", "PluginState"]

_ENABLE = "set its entry's 'enabled' to true in plugins.json"
_ASK = "`cyrene health` tells more"


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

    @property
    def claim(self) -> str:
        """What a sentence says of a plugin in this state, such as `is blocked`."""
        return "has failed" if self is PluginState.FAILED else f"is {self.value}"

    @property
    def mend(self) -> str:
        """What to do about it where no error says so."""
        return _ENABLE if self is PluginState.DISABLED else _ASK


CALLABLE_STATES = frozenset({PluginState.DISCOVERED, PluginState.STARTED, PluginState.DEGRADED})
"""The states whose tools are offered."""
