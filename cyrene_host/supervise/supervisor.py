"""All plugins together: started side by side after what they need, stopped in reverse, asked for their health."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

import anyio
from anyio.abc import TaskGroup

from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.state import PluginState
from cyrene_host.supervise.life import Life
from cyrene_sdk.errors import CyreneError

__all__ = ["StartAbortedError", "Supervisor"]

_log = logging.getLogger("cyrene.plugins")


class StartAbortedError(CyreneError):
    """A plugin whose entry says `on_failure: abort` did not start."""


class Supervisor:
    """Starts, stops and checks the plugins of one catalog.

    Args:
        catalog: says which plugin needs which.
        lives: one a plugin, by entry name.
        stop_total_s: seconds that all stops together may take.
    """

    def __init__(self, catalog: Catalog, lives: Mapping[str, Life], *, stop_total_s: float) -> None:
        self._catalog = catalog
        self._lives = lives
        self._tasks: TaskGroup | None = None  # owns the starts that calls ask for: a caller who leaves stops none
        self._stop_total_s = stop_total_s
        self._settled: dict[str, anyio.Event] = {}
        self._started: list[str] = []

    async def open(self) -> None:
        """Begin; `close` has to follow, in the same task."""
        self._side_by_side = anyio.CapacityLimiter(2 * (os.cpu_count() or 1))
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()

    async def close(self) -> None:
        """Give up the starts under way, stop all plugins and end."""
        try:
            if self._tasks is not None:
                self._tasks.cancel_scope.cancel()
                # Without the body's own exception, which the group would wrap into its own.
                await self._tasks.__aexit__(None, None, None)
                self._tasks = None
        finally:  # the group raises where this task was cancelled itself
            with anyio.CancelScope(shield=True):
                await self._stop_all()

    async def start_all(self) -> None:
        """Start every usable plugin that is not lazy, and wait until each is started or failed.

        Raises:
            StartAbortedError: one that must not fail did.
        """
        eager = [name for name in self._catalog.order if not self._is_lazy(name)]
        await self._start(eager)
        for name, life in self._lives.items():
            entry = life.record.entry
            if entry is not None and entry.enabled and entry.on_failure == "abort" and life.error is not None:
                raise StartAbortedError(
                    f"the host does not start without it: {life.error.what}",
                    plugin=name,
                    where=life.error.where,
                    mend=life.error.mend or "mend it, or set its entry's on_failure to 'continue'",
                )

    async def activate(self, name: str) -> None:
        """Start one plugin and what it depends on; return when it is started or failed."""
        await self._start([*self._catalog.dependencies_of(name), name])

    async def check_all(self) -> None:
        """Ask all started plugins for their health, side by side, each with its own limit."""
        async with anyio.create_task_group() as checks:
            for life in self._lives.values():
                checks.start_soon(life.check)

    async def _stop_all(self) -> None:
        """Stop what was started, the last first, within the budget for all."""
        deadline = time.monotonic() + self._stop_total_s
        while self._started:
            life = self._lives[self._started.pop()]
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                _log.error("plugin '%s': not stopped, the %g s for all stops are over", life.name, self._stop_total_s)
                continue
            await life.stop(left_s)

    async def _start(self, names: list[str]) -> None:
        for name in names:
            if name not in self._settled:
                assert self._tasks is not None, "open() comes first"
                self._settled[name] = anyio.Event()
                self._tasks.start_soon(self._start_one, name)
        for name in names:
            await self._settled[name].wait()

    async def _start_one(self, name: str) -> None:
        life = self._lives[name]
        try:
            needed = self._catalog.dependencies_of(name)
            await self._start(needed)
            lost = next((other for other in needed if self._lives[other].runtime is None), None)
            if lost is not None:
                await life.refuse(self._lost(name, lost))
                return
            async with self._side_by_side:
                await life.start()
            if life.state is PluginState.STARTED:
                self._started.append(name)
        finally:
            self._settled[name].set()

    def _lost(self, name: str, other: str) -> CyreneError:
        life = self._lives[other]
        cause = f": {life.error.what}" if life.error else ""
        return CyreneError(
            f"it needs the plugin '{other}', which is {life.state}{cause}",
            plugin=name,
            where="dependencies",
            mend=f"mend '{other}' first",
        )

    def _is_lazy(self, name: str) -> bool:
        entry = self._lives[name].record.entry
        return entry is not None and entry.activation == "lazy"
