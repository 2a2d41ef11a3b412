"""Looks in the database for what another process decided, while there is something that it may decide."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cyrene_sdk.errors import CyreneError

__all__ = ["LOOK_S", "Lookout"]

LOOK_S = 0.5
"""Seconds between two looks."""

_log = logging.getLogger("cyrene.executions")


class Lookout:
    """Looks again and again, as long as any of its parts says that there is something to wait for."""

    def __init__(self) -> None:
        self._parts: list[Callable[[], Awaitable[bool]]] = []
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    def add(self, part: Callable[[], Awaitable[bool]]) -> None:
        """Have a part look: it sees to what it finds, and returns whether it has to look again."""
        self._parts.append(part)

    def need(self) -> None:
        """Begin to look, unless it does."""
        if self._looking is None and not self._is_closed:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Look no more."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        is_told = False
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                if not any([await part() for part in self._parts]):
                    break
                is_told = False
            except Exception as error:  # noqa: BLE001 - who looks no more would leave for ever what waits
                if not is_told:
                    is_known = isinstance(error, CyreneError)
                    _log.error("decisions and wishes of other processes are not seen: %s", error, exc_info=not is_known)
                is_told = True
        self._looking = None
