"""How many calls of one plugin run at once, and how many wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

__all__ = ["Admission", "QueueFullError"]


class QueueFullError(Exception):
    """As many calls run and wait as may."""


class Admission:
    """Places for the calls of one plugin: `concurrency` run, `queue_size` wait in order of arrival.

    asyncio itself, not anyio: an uncontended anyio limiter costs 8-14 µs on the path of every call.
    """

    __slots__ = ("_free", "_quiet", "_waiting", "concurrency", "queue_size")

    def __init__(self, *, concurrency: int, queue_size: int) -> None:
        self.concurrency = concurrency
        self.queue_size = queue_size
        self._free = concurrency
        self._quiet: asyncio.Event | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_busy(self) -> bool:
        """Whether a call runs."""
        return self._free < self.concurrency

    def take(self) -> bool:
        """Take a free place if there is one: a place that is given back goes to those who wait, before it is free."""
        if self._free:
            self._free -= 1
            return True
        return False

    async def wait(self, limit_s: float) -> None:
        """Wait for a place.

        Raises:
            QueueFullError: `queue_size` calls wait already.
            TimeoutError: no place became free within `limit_s` seconds.
        """
        if len(self._waiting) >= self.queue_size:
            raise QueueFullError
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(limit_s):
                await place
        except BaseException:
            if place.done() and not place.cancelled():
                self.leave()  # the place came at the same moment; it goes to the next
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    async def idle(self, limit_s: float) -> None:
        """Wait until no call runs, at most `limit_s` seconds."""
        if self.is_busy:
            self._quiet = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._quiet.wait()

    def leave(self) -> None:
        """Give the place back, to the first that waits."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
        if self._quiet is not None and not self.is_busy:
            self._quiet.set()
