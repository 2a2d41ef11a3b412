"""Runs ComplexTools: their reports followed, their results found, and their end when they are cancelled."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from cyrene_sdk._worker.bounds import LATE, Bounds, LongWork, Raised, answering, invoke
from cyrene_sdk._worker.faults import Fault, sentence_of
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk._worker.progress import Pace, Watch, no_progress, too_long
from cyrene_sdk._worker.reports import is_last, reports_of
from cyrene_sdk.context import CurrentCall, _current
from cyrene_sdk.errors import ErrorKind, ToolFailure
from cyrene_sdk.protocols import ComplexTool
from cyrene_sdk.threads import _threads
from cyrene_sdk.types import ProgressStatus, ToolProgress

__all__ = ["Executions"]

LOOP_SHARE_S = 0.002
"""How long reports that never really wait may keep the loop."""

_log = logging.getLogger("cyrene.call")


class Executions:
    """Runs the ComplexTools of one plugin.

    Args:
        calls: runs the tools.
        cancels: runs their `cancel`, though all other threads are busy.
        cancel_s: seconds that `cancel` may take before what runs is cancelled without it.
        outcome_of: makes the outcome of a value or exception, and of the limit in seconds.
    """

    def __init__(
        self, calls: Bounds, cancels: Bounds, cancel_s: float, outcome_of: Callable[[Any, float], Fields | Fault]
    ) -> None:
        self.calls = calls
        self.cancels = cancels
        self.cancel_s = cancel_s
        self._outcome_of = outcome_of

    async def call(
        self,
        tool: ComplexTool,
        arguments: dict[str, Any],
        call: CurrentCall,
        limit_s: float,
        validate: bool,
        watch: Watch | None,
    ) -> Fields | Fault:
        """Run one attempt and return its outcome; when the caller is cancelled, so is the tool."""
        outcomes: list[Fields | Fault] = []
        has_ended = asyncio.Event()

        def tell(outcome: Fields | Fault) -> None:
            outcomes.append(outcome)
            has_ended.set()

        work = self.begin(tool, arguments, call, limit_s, validate, watch, tell)
        try:
            await has_ended.wait()
        except asyncio.CancelledError:
            self.calls.cancel(work)
            await has_ended.wait()  # at most the grace
            raise
        return outcomes[0]

    def begin(
        self,
        tool: ComplexTool,
        arguments: dict[str, Any],
        call: CurrentCall,
        limit_s: float,
        validate: bool,
        watch: Watch | None,
        tell: Callable[[Fields | Fault], None],
    ) -> LongWork:
        """Begin one attempt and have its outcome told, after its last report."""
        pace = Pace(watch.tell if watch is not None else None)
        idle_s = watch.idle_s if watch is not None else math.inf
        execution = _Execution(self, tool, call, pace)

        def ended(answer: Any) -> None:
            pace.close()
            if answer is LATE:
                sentence = no_progress(idle_s) if work.is_idle else too_long(limit_s)
                tell(Fault(ErrorKind.TIMEOUT, sentence, retry="timeout"))
            else:
                tell(answer if isinstance(answer, Fault) else self._outcome_of(answer, limit_s))

        work = self.calls.begin_long(execution.run(arguments, validate=validate), limit_s, idle_s, ended)
        execution.on_report = partial(self.calls.stir, work)
        return work


class _Execution:
    """One attempt of a ComplexTool."""

    def __init__(self, place: Executions, tool: ComplexTool, call: CurrentCall, pace: Pace) -> None:
        self._place = place
        self._tool = tool
        # Without an execution id the call's own stands for it, so that no two are mixed up.
        self._call = call if call.execution_id else call._replace(execution_id=call.call_id)
        self._pace = pace
        self._own_id: str = self._call.execution_id or ""  # the plugin's, once it has told one
        self._is_ending = False
        self._in_thread = partial(place.calls.in_thread, stays=True)
        self.on_report: Callable[[], None]

    async def run(self, arguments: dict[str, Any], *, validate: bool) -> Any:
        """Run it to its last report; return its result, its output, or a Fault.

        When it is cancelled, the tool's `cancel` is called, and then what runs is cancelled too.
        """
        _current.set(self._call)
        _threads.set(self._in_thread)
        if validate:
            await invoke(self._place.calls, self._tool.validate, arguments)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        reading = loop.create_task(answering(self._read(arguments), answer, os.getpid()))
        asyncio._unregister_task(reading)  # noqa: SLF001 - asyncio.run() waits for it through this one, which may be given up
        try:
            await asyncio.wait((reading,))
        except asyncio.CancelledError:
            await self._cancel(reading)
            raise
        value = answer.result()
        if type(value) is Raised:
            raise value.error
        return value

    async def _read(self, arguments: dict[str, Any]) -> Any:
        reports = await self._begun(arguments)
        loop = asyncio.get_running_loop()
        resumed = loop.time()
        try:
            async for report in reports:
                self._hear(report)
                if is_last(report):
                    return _end_of(report)
                if self._is_ending or loop.time() - resumed > LOOP_SHARE_S:
                    await asyncio.sleep(0)
                    resumed = loop.time()
        finally:
            if isinstance(reports, AsyncGenerator):
                await reports.aclose()
        return _without_result()

    async def _begun(self, arguments: dict[str, Any]) -> AsyncIterator[ToolProgress]:
        source = await invoke(self._place.calls, self._tool.execute_async, arguments, stays=True)
        return reports_of(source, self._in_thread)

    def _hear(self, report: ToolProgress) -> None:
        if report.execution_id:
            self._own_id = report.execution_id
        self._pace.take(report.execution_id, report.progress, report.message, report.status)
        self.on_report()

    async def _cancel(self, reading: asyncio.Task[None]) -> None:
        """Tell the tool, then its task, and see to both until they have ended: whoever waits may give up."""
        self._is_ending = True
        try:
            if not reading.done():
                await self._tell_tool()
        finally:
            reading.cancel()
            while not reading.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((reading,))

    async def _tell_tool(self) -> None:
        work = invoke(self._place.cancels, self._tool.cancel, self._own_id)
        try:
            answer = await self._place.cancels.limited(work, self._place.cancel_s)
        except TimeoutError:
            why = f"it did not end within {self._place.cancel_s:.3g} s"
        else:
            if type(answer) is not Raised:
                return
            why = f"it raised {type(answer.error).__name__}: {sentence_of(answer.error)}"
        _log.warning("cancel() of a %s failed: %s", type(self._tool).__name__, why)


def _end_of(report: ToolProgress) -> Any:
    """What the last report means: a result, an output, or a Fault; or raise what it says went wrong."""
    result, error = report.result, report.error
    if report.status == ProgressStatus.CANCELLED:
        told = sentence_of(ToolFailure(error)) if error else "the tool ended it as cancelled"
        return Fault(ErrorKind.CANCELLED, told)
    if report.status == ProgressStatus.FAILED:
        if result is None or result.success:
            raise ToolFailure(error or report.message or "the execution ended as failed")
        return result if result.error or not error else result.model_copy(update={"error": error})
    if result is not None:
        return result
    return report.message or _without_result()


def _without_result() -> Fault:
    return Fault(ErrorKind.OUTPUT_INVALID, "the execution ended with no result")
