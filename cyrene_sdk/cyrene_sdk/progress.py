"""What a running complex tool tells, from any thread, as reports to iterate over."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.threads import check_cancelled
from cyrene_sdk.types import ProgressStatus, ToolProgress, ToolResult

__all__ = ["ProgressSlot", "plain_data"]

_LOOP_SHARE_S = 0.005  # how long a generator that never really waits may keep the loop


class ProgressSlot:
    """The newest report that nobody has read yet; an older one is dropped, so that a flood needs no memory.

    Calling it is the `report` of a complex tool. It is made on the event loop and told from any thread.
    """

    def __init__(self, execution_id: str) -> None:
        self._execution_id = execution_id
        self._progress = 0.0
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._unread: ToolProgress | tuple[float, str] | None = None
        self._arrival = asyncio.Event()
        self._is_open = True

    def __call__(self, progress: float, message: str = "") -> None:
        """Tell progress; what is no number is passed on as NaN, for the runner to judge.

        Raises:
            asyncio.CancelledError: this is the thread of a plain `def`, and the work was cancelled.
        """
        check_cancelled()
        try:
            fraction = float(progress)
        except (TypeError, ValueError, OverflowError):
            fraction = math.nan
        self._progress = max(self._progress, min(fraction, 1.0))  # in this order NaN changes nothing
        self.leave((fraction, str(message)))

    def leave(self, report: ToolProgress | tuple[float, str]) -> None:
        """Leave a report for whoever iterates, in place of one that nobody has read."""
        with self._lock:
            wakes = self._is_open and self._unread is None
            self._unread = report
        if wakes:  # once for each report that is read, so that a flood does not fill the loop's queue
            self._loop.call_soon_threadsafe(self._arrival.set)

    def close(self) -> None:
        """Drop whatever is told from now on."""
        with self._lock:
            self._is_open = False

    async def until_done(self, work: asyncio.Task[Any]) -> AsyncIterator[ToolProgress]:
        """Yield reports while `work` runs, and the last one that it left."""
        work.add_done_callback(lambda _: self._arrival.set())
        while True:
            is_done = work.done()  # looked at before the slot, so that the last report is not lost
            with self._lock:
                report, self._unread = self._unread, None
            if isinstance(report, tuple):
                yield self._report(ProgressStatus.RUNNING, report[0], message=report[1])
            elif report is not None:
                yield report
            elif is_done:
                return
            else:
                await self._arrival.wait()
                self._arrival.clear()

    async def drain(self, generator: AsyncGenerator[Any, None]) -> ToolProgress | None:
        """Run an async generator that yields ToolProgress, (progress, message), or at last a ToolResult.

        Returns:
            Its terminal report; None where it ended without one.
        """
        async with aclosing(generator):
            resumed = self._loop.time()
            async for told in generator:
                if isinstance(told, ToolResult):
                    return self.ended(told)
                if not isinstance(told, ToolProgress):
                    self(*told)
                elif told.status is ProgressStatus.RUNNING:
                    self.leave(told)
                else:
                    return told
                if self._loop.time() - resumed > _LOOP_SHARE_S:
                    await asyncio.sleep(0)
                    resumed = self._loop.time()
        return None

    def ended(self, value: Any) -> ToolProgress:
        """Return the terminal report for what a function returned (its output, its data, or a ToolResult)."""
        result = value if isinstance(value, ToolResult) else _result_of(value)
        if result.success:
            return self._report(ProgressStatus.COMPLETED, 1.0, result=result)
        return self._report(ProgressStatus.FAILED, self._progress, error=result.error, result=result)

    def cancelled(self) -> ToolProgress:
        """Return the terminal report of an execution that was cancelled."""
        result = ToolResult(error="the execution was cancelled", error_kind=ErrorKind.CANCELLED)
        return self._report(ProgressStatus.CANCELLED, self._progress, error=result.error, result=result)

    def _report(self, status: ProgressStatus, progress: float, **more: Any) -> ToolProgress:
        return ToolProgress(execution_id=self._execution_id, status=status, progress=progress, **more)


def plain_data(value: Any) -> Any:
    """Return a model or dataclass as JSON data; anything else as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return TypeAdapter[Any](type(value)).dump_python(value, mode="json")
    return value


def _result_of(value: Any) -> ToolResult:
    if isinstance(value, str):
        return ToolResult(success=True, output=value)
    data = plain_data(value)
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = ""  # whoever runs the tool refuses such data, and can say where in it
    return ToolResult(success=True, output=text, data=data)
