"""The plugins of an open host, for programs and surfaces."""

from __future__ import annotations

from collections.abc import Mapping

from cyrene_host.errors import HostStateError
from cyrene_host.host.registry import Registry
from cyrene_host.host.views import PluginReport, plugin_report
from cyrene_host.host.why import Why, why_plugin
from cyrene_host.supervise.life import Life

__all__ = ["Plugins"]


class Plugins:
    """`host.plugins`: what each plugin is and how it does."""

    def __init__(self, lives: Mapping[str, Life], registry: Registry) -> None:
        self._lives = lives
        self._registry = registry

    def list(self) -> list[PluginReport]:
        """Return a report on every plugin, in the order of plugins.json."""
        return [self.get(name) for name in self._lives]

    def get(self, name: str) -> PluginReport:
        """Return the report on one plugin, by its entry name.

        Raises:
            HostStateError: there is no such plugin.
        """
        life = self._lives.get(name)
        if life is None:
            known = ", ".join(f"'{known}'" for known in self._lives) or "none"
            raise HostStateError(f"there is no plugin '{name[:80]}'", where="plugin name", mend=f"there are: {known}")
        return plugin_report(
            life.record,
            state=life.state,
            stage=life.stage,
            error=life.error,
            tool_errors=self._registry.faults(life.record.tools),
            stage_ms={stage: seconds * 1000 for stage, seconds in life.stage_s.items()},
            abandoned=life.abandoned,
            last_healthy=life.last_healthy,
        )

    def why(self, name: str) -> Why:
        """Return why a plugin's tools can be called or not.

        Raises:
            HostStateError: there is no such plugin.
        """
        return why_plugin(self.get(name))
