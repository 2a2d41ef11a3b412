"""Which runtime a plugin gets, and what all workers of one host share."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import Limits, PluginEntry
from cyrene_host.catalog.probe import interpreter_of
from cyrene_host.runtimes.inline import InlineRuntime
from cyrene_host.runtimes.keeper import Keeper
from cyrene_host.runtimes.leftovers import MARKER, own_marker, own_scratch, reap_leftovers, remove_left_scratch
from cyrene_host.runtimes.process import ProcessRuntime
from cyrene_host.runtimes.runtime import Runtime
from cyrene_host.runtimes.worker import KEPT_VARIABLES, Plan
from cyrene_sdk._worker.loading import Code

__all__ = ["Places", "RuntimeKind", "kind_of"]

RuntimeKind = Literal["process", "inline"]

_log = logging.getLogger("cyrene.workers")


def kind_of(entry: PluginEntry | None) -> RuntimeKind:
    """Return which runtime an entry asks for."""
    return entry.runtime if entry is not None else "process"


class Places:
    """Makes the place where a plugin's code runs.

    Args:
        state_dir: the host's; workers get their scratch folders under it.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._scratch = own_scratch(state_dir)
        self._marker = own_marker(state_dir)
        kept = {name: os.environ[name] for name in (*KEPT_VARIABLES, "HOME") if name in os.environ}
        self._keeper = Keeper({**kept, MARKER: self._marker})

    def make(
        self,
        record: CatalogPlugin,
        limits: Limits,
        *,
        on_lost: Callable[[str, bool], None],
        on_abandoned: Callable[[], None],
    ) -> Runtime:
        """Return a new place for a plugin; nothing runs in it yet.

        Args:
            on_lost: told why a worker is gone or has to be replaced, and whether its plugin may be to blame.
            on_abandoned: told when the number of given-up calls inside the host changes.
        """
        source = record.source
        assert source is not None, "a plugin without code is never started"
        code = Code(source.module, source.attribute, str(source.folder) if source.folder else None)
        if kind_of(record.entry) == "inline":
            return InlineRuntime(
                code, grace_s=limits.kill_grace_s, threads=limits.concurrency, on_abandoned=on_abandoned
            )
        plan = Plan(
            name=record.name,
            code=code,
            interpreter=interpreter_of(source.python) if source.python is not None else None,
            limits={
                "memory_mb": limits.memory_mb,
                "cpu_seconds": limits.cpu_seconds,
                "open_files": limits.open_files,
            },
            grace_s=limits.kill_grace_s,
            threads=limits.concurrency,
            scratch=self._scratch,
            marker=(MARKER, self._marker),
        )
        return ProcessRuntime(plan, self._keeper, on_lost=on_lost)

    def clear(self) -> None:
        """End what hosts that were killed left behind, and remove their scratch folders; blocks for milliseconds."""
        reaped = reap_leftovers(self._state_dir)
        if reaped:
            _log.warning("%d processes that a host left when it was killed were ended", reaped)
        remove_left_scratch(self._state_dir)

    async def close(self) -> None:
        """End whatever still runs."""
        await self._keeper.close()
        await asyncio.to_thread(shutil.rmtree, self._scratch, True)
