"""The plugins of an open host, for programs and surfaces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from cyrene_host.errors import HostStateError
from cyrene_host.host.registry import Registry
from cyrene_host.host.views import PluginReport, plugin_report
from cyrene_host.host.why import Why, why_plugin
from cyrene_host.supervise.life import Life

__all__ = ["Plugins"]


class Plugins:
    """`host.plugins`: what each plugin is, how it does, and what a person may do with it.

    Args:
        lives: by entry name, in the order of plugins.json.
        registry: the tools.
        switch: switches a plugin on or off for good.
        restart: stops a plugin and starts it again.
    """

    def __init__(
        self,
        lives: Mapping[str, Life],
        registry: Registry,
        *,
        switch: Callable[[str, bool], Awaitable[None]],
        restart: Callable[[str], Awaitable[None]],
    ) -> None:
        self._lives = lives
        self._registry = registry
        self._switch = switch
        self._restart = restart

    def list(self) -> list[PluginReport]:
        """Return a report on every plugin, in the order of plugins.json."""
        return [self.get(name) for name in self._lives]

    def get(self, name: str) -> PluginReport:
        """Return the report on one plugin, by its entry name.

        Raises:
            HostStateError: there is no such plugin.
        """
        life = self._life(name)
        return plugin_report(
            life.record,
            state=life.state,
            stage=life.stage,
            error=life.error,
            tool_errors=self._registry.faults(life.record.tools),
            stage_ms={stage: seconds * 1000 for stage, seconds in life.stage_s.items()},
            abandoned=life.abandoned,
            last_healthy=life.last_healthy,
            restarts=life.restarts,
            retry_at=life.retry_at,
            pid=life.pid,
        )

    async def enable(self, name: str) -> PluginReport:
        """Switch a plugin on and start it; it stays on whatever its entry says, until it is disabled.

        Raises:
            HostStateError: there is no such plugin.
            SwitchError: the state directory cannot be written.
        """
        self._life(name)
        await self._switch(name, True)
        return self.get(name)

    async def disable(self, name: str) -> PluginReport:
        """Stop a plugin and keep it off until it is enabled; its calls under way may finish.

        Raises:
            HostStateError: there is no such plugin.
            SwitchError: the state directory cannot be written.
        """
        self._life(name)
        await self._switch(name, False)
        return self.get(name)

    async def restart(self, name: str) -> PluginReport:
        """Stop a plugin and start it again, also one that failed or was given up.

        Raises:
            HostStateError: there is no such plugin.
        """
        self._life(name)
        await self._restart(name)
        return self.get(name)

    def why(self, name: str) -> Why:
        """Return why a plugin's tools can be called or not.

        Raises:
            HostStateError: there is no such plugin.
        """
        return why_plugin(self.get(name))

    def _life(self, name: str) -> Life:
        life = self._lives.get(name)
        if life is None:
            known = ", ".join(f"'{known}'" for known in self._lives) or "none"
            raise HostStateError(f"there is no plugin '{name[:80]}'", where="plugin name", mend=f"there are: {known}")
        return life
