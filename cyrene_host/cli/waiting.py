"""Waits for a coroutine as a command must: Ctrl-C ends it, and so does the end of its patience with plugin code."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

__all__ = ["wait_for"]

INTERRUPT_GRACE_S = 5.0
"""Seconds between Ctrl-C and the end, in which the host stops its plugins."""

CLEANUP_S = 1.0

HEARING_S = 0.2
"""The system may hand Ctrl-C to another thread, which does not wake this one: it looks up so often, in seconds."""

_T = TypeVar("_T")


def wait_for(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine on an event loop in a thread of its own, and return its result.

    Plugin code may block the loop or refuse to be cancelled: the main thread stays free to hear Ctrl-C, and does not
    wait for what is left on the loop when the result is there.

    Raises:
        KeyboardInterrupt: Ctrl-C; the coroutine was cancelled and had a few seconds to end, or until a second Ctrl-C.
    """
    running = _Running(work)
    thread = threading.Thread(target=running.run, name="cyrene", daemon=True)
    thread.start()
    try:
        while not running.outcome.done():
            wait([running.outcome], timeout=HEARING_S)
        result = running.outcome.result()
    except KeyboardInterrupt:
        running.cancel()
        end = time.monotonic() + INTERRUPT_GRACE_S
        while not running.outcome.done() and time.monotonic() < end:  # a second Ctrl-C leaves from here at once
            wait([running.outcome], timeout=HEARING_S)
        raise
    thread.join(CLEANUP_S)
    return result


class _Running(Generic[_T]):
    """One coroutine on its loop."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self.outcome: Future[_T] = Future()
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self) -> None:
        asyncio.run(self._run())

    def cancel(self) -> None:
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def _run(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            self.outcome.set_result(await self._work())
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.outcome.set_exception(error)
