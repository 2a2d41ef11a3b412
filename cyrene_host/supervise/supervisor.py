"""All plugins together: started side by side after what they need, stopped in reverse, asked for their health."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import anyio
from anyio.abc import TaskGroup

from cyrene_host.catalog.catalog import Catalog
from cyrene_host.supervise.life import Life
from cyrene_sdk.errors import CyreneError

__all__ = ["StartAbortedError", "Supervisor"]

PATIENCE_S = 2.0
"""How long a start keeps its place among those side by side: one that only waits, or hangs, must not delay others."""

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
        self._owner: asyncio.Task[None] | None = None
        self._stop_total_s = stop_total_s
        self._settled: dict[str, anyio.Event] = {}
        self._started: list[str] = []  # those whose start has begun, in this order
        self._is_closing = False

    async def open(self) -> None:
        """Begin; `close` has to follow, from whatever task."""
        self._side_by_side = anyio.CapacityLimiter(2 * (os.cpu_count() or 1))
        opened = anyio.Event()
        self._closing = anyio.Event()
        # A task of its own: a group must be left by the task that entered it, and frameworks start and stop elsewhere.
        self._owner = asyncio.create_task(self._own(opened))
        await opened.wait()

    async def close(self) -> None:
        """Give up the starts under way, stop all plugins and end."""
        with anyio.CancelScope(shield=True):
            if self._owner is not None:
                self._closing.set()
                await asyncio.wait((self._owner,))
                self._owner = None
            await self._stop_all()

    async def _own(self, opened: anyio.Event) -> None:
        async with anyio.create_task_group() as self._tasks:
            opened.set()
            await self._closing.wait()
            self._tasks.cancel_scope.cancel()
        self._tasks = None

    def spawn(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run a function in a task that ends with the host at the latest."""
        if self._tasks is not None:
            self._tasks.start_soon(function, *args)

    def watch(self, every_s: float) -> None:
        """Ask all plugins for their health again and again, until the host closes."""
        self.spawn(self._watch, every_s)

    async def start_all(self) -> None:
        """Start every usable plugin that is not lazy, and wait until each is started or failed."""
        await self._start([name for name in self._catalog.order if not self._is_lazy(name)])

    def demand(self) -> None:
        """See that every plugin that must not fail has not.

        Raises:
            StartAbortedError: one has.
        """
        for name, life in self._lives.items():
            entry = life.record.entry
            if entry is not None and entry.enabled and entry.on_failure == "abort" and life.error is not None:
                raise StartAbortedError(
                    f"the host does not start without it: {life.error.what}",
                    plugin=name,
                    where=life.error.where,
                    mend=life.error.mend or "mend it, or set its entry's on_failure to 'continue'",
                )

    async def restart(self, name: str) -> None:
        """Stop one plugin, forget what went wrong with it, and start it, what it needs, and what waited for it."""
        await self.stop([name])
        await self._lives[name].reset()
        await self.activate(name)
        await self._start([other for other in self._catalog.order if self._waits_for(other, name)])

    async def stop(self, names: Iterable[str]) -> None:
        """Stop some plugins, the last started first; they may be started again."""
        wanted = set(names)
        for name in wanted:
            self._settled.pop(name, None)  # a start that has not begun yet gives up
        for name in [name for name in reversed(self._started) if name in wanted]:
            self._started.remove(name)
            await self._lives[name].stop(self._stop_total_s)

    def take(self, catalog: Catalog) -> None:
        """Go by another catalog from now on."""
        self._catalog = catalog

    async def activate(self, name: str) -> None:
        """Start one plugin and what it depends on; return when it is started or failed."""
        await self._start([*self._catalog.dependencies_of(name), name])

    async def check_all(self) -> None:
        """Ask all started plugins for their health, side by side, each with its own limit."""
        async with anyio.create_task_group() as checks:
            for life in self._lives.values():
                checks.start_soon(life.check)

    async def _watch(self, every_s: float) -> None:
        while True:
            await anyio.sleep(every_s)
            await self.check_all()

    async def _stop_all(self) -> None:
        """Stop what was started, the last first, within the budget for all."""
        self._is_closing = True
        self._settled.clear()
        deadline = time.monotonic() + self._stop_total_s
        while self._started:
            life = self._lives[self._started.pop()]
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                _log.error("plugin '%s': not stopped, the %g s for all stops are over", life.name, self._stop_total_s)
                continue
            await life.stop(left_s)

    async def _start(self, names: list[str]) -> None:
        if self._is_closing:
            return
        events = []
        for name in names:
            if name not in self._settled:
                self._settled[name] = anyio.Event()
                self.spawn(self._start_one, name, self._settled[name])
            events.append(self._settled[name])
        for event in events:
            await event.wait()

    async def _start_one(self, name: str, settled: anyio.Event) -> None:
        """Start a plugin after those that it needs, in its turn."""
        try:
            needed = self._catalog.dependencies_of(name)
            await self._start(needed)
            for other in needed:
                await self._lives[other].replaced()
            async with self._side_by_side:
                if self._settled.get(name) is not settled:
                    return  # somebody stopped it first
                lost = next((other for other in needed if self._lives[other].runtime is None), None)
                if lost is not None:
                    del self._settled[name]  # it is tried again when it is wanted again
                    await self._lives[name].refuse(self._lost(name, lost))
                    return
                self._started.append(name)
                ended = anyio.Event()
                self.spawn(self._see_through, self._lives[name], ended)
                with anyio.move_on_after(PATIENCE_S):
                    await ended.wait()
            await ended.wait()
        finally:
            settled.set()

    async def _see_through(self, life: Life, ended: anyio.Event) -> None:
        try:
            await life.start()
        finally:
            ended.set()

    def _waits_for(self, name: str, other: str) -> bool:
        return self._lives[name].is_refused and other in self._catalog.dependencies_of(name)

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
