"""The reports of a ComplexTool, whatever its `execute_async` returned: something to iterate over, or a queue."""

from __future__ import annotations

import asyncio
import os
import queue
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable
from contextlib import closing
from functools import partial
from typing import Any, Protocol

from cyrene_sdk._worker.bounds import Raised, answering
from cyrene_sdk.progress import ProgressSlot
from cyrene_sdk.threads import check_cancelled
from cyrene_sdk.types import ProgressStatus, ToolProgress

__all__ = ["InThread", "is_last", "reports_of"]

LOOK_S = 0.2
"""How often a thread that waits for a queue looks whether its call is still wanted."""

InThread = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
"""Runs a plain function in a thread."""


class _Gives(Protocol):
    def get(self, block: bool = True, timeout: float | None = None) -> Any: ...


def is_last(report: ToolProgress) -> bool:
    """Whether nothing comes after this report."""
    return report.status != ProgressStatus.RUNNING or report.result is not None


def reports_of(source: Any, in_thread: InThread) -> AsyncIterator[ToolProgress]:
    """Return the reports to iterate over; what is plain is read in a thread, and then only the newest counts.

    Args:
        source: an async iterator, an iterator, an `asyncio.Queue` or a `queue.Queue` of ToolProgress.
    Raises:
        TypeError: it is none of these.
    """
    if hasattr(source, "__aiter__"):
        return source.__aiter__()  # type: ignore[no-any-return]  # plugin code
    if isinstance(source, asyncio.Queue):
        return _queued(source)
    if isinstance(source, queue.Queue | queue.SimpleQueue):
        return _threaded(_taken(source), in_thread)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        return _threaded(_each(source), in_thread)
    what = f"execute_async() returned a {type(source).__name__}"
    raise TypeError(f"{what}; it has to be an (async) iterator or a queue of ToolProgress")


async def _queued(source: asyncio.Queue[ToolProgress]) -> AsyncIterator[ToolProgress]:
    while True:
        yield await source.get()


async def _threaded(reports: Generator[ToolProgress, None, None], in_thread: InThread) -> AsyncIterator[ToolProgress]:
    """Iterate in one thread; what is not read in time is left out, but for the last."""
    slot = ProgressSlot("")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    drained = in_thread(partial(_drain, reports, slot))
    work = loop.create_task(answering(drained, answer, os.getpid()))
    try:
        async for report in slot.until_done(work):
            yield report
        last = answer.result()
        if type(last) is Raised:
            raise last.error
        if last is not None:
            yield last
    finally:
        slot.close()
        work.cancel()
        await asyncio.wait((work,))
        drained.close()  # cancelled before its first step, it would be "never awaited"


def _drain(reports: Generator[ToolProgress, None, None], slot: ProgressSlot) -> ToolProgress | None:
    with closing(reports):
        for report in reports:
            check_cancelled()
            if is_last(report):
                return report
            slot.leave(report)
    return None


def _each(source: Iterable[ToolProgress]) -> Generator[ToolProgress, None, None]:
    yield from source


def _taken(source: _Gives) -> Generator[ToolProgress, None, None]:
    while True:
        check_cancelled()
        try:
            yield source.get(timeout=LOOK_S)
        except queue.Empty:
            continue
