"""An execution while this host runs it: reports become events, and events are kept."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator
from typing import Any, Literal

from cyrene_host.record.execution import Execution, ExecutionEvent, ExecutionState
from cyrene_host.record.executions import ExecutionRecords
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import ToolResult

__all__ = ["Running"]

EVERY_S = 0.1
"""At most ten events of progress a second."""
MESSAGE_BYTES = 4096
REMEMBERED = 1000
"""Events in memory, of an execution that runs for hours."""

_log = logging.getLogger("cyrene.executions")


class Running:
    """One execution that this host runs; the `Track` of its call.

    Attributes:
        execution: as it is now.
        ending: why its task is cancelled, once it is.
        ended: set when it has ended, and that is kept.
        left: set when this object has nothing more to tell.
    """

    def __init__(self, execution: Execution, records: ExecutionRecords, *, seq: int = 0) -> None:
        self.id = execution.id
        self.execution = execution
        self.ending: Literal["cancelled", "interrupted"] | None = None
        self.ended = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.shown: Any = None  # the arguments as they are kept while it runs
        self._records = records
        self._latest = execution  # as it is to be kept
        self._seq = seq
        self._events: list[ExecutionEvent] = []
        self._before = seq
        self._unkept: list[ExecutionEvent] = []
        self._keeping: asyncio.Task[None] | None = None
        self._report: tuple[float, str] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._told_at = -math.inf
        self._news = asyncio.Event()
        self.left = asyncio.Event()
        self.has_begun = False  # whether its task can be cancelled
        self._is_kept = True

    def tell(self, report: Any) -> None:
        """Take a report of progress: a worker's word, so it is clamped here too. The newest wins."""
        if self._latest.state != "running":
            return
        progress = min(max(report.progress, self.execution.progress), 1.0) if report.progress == report.progress else 0
        if report.execution_id and report.execution_id != self.id:
            self.execution = self.execution._replace(plugin_execution_id=report.execution_id)
        before = self._report[1] if self._report is not None else self.execution.message
        is_silent_end = not report.message and report.status != "running"  # what it was at is worth more than nothing
        self._report = (
            max(progress, self.execution.progress),
            before if is_silent_end else _cut(report.message),
        )
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._told_at + EVERY_S - loop.time()), self._tell_now)

    async def waits(self) -> None:
        """A person is asked."""
        await self.become("waiting")

    async def runs(self, call_id: str) -> None:
        """Its tool is entered."""
        await self.become("running", call_id=call_id, started_at=time.time(), arguments=self.shown)

    async def become(self, state: ExecutionState, **changes: Any) -> None:
        """Change its state, and return when that is kept; where it cannot be kept it goes on without."""
        self._tell_now()
        self._change(state=state, **changes)
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def end(self, state: ExecutionState, result: ToolResult) -> None:
        """Let it have ended, once that is kept; one that nobody has heard of is not kept."""
        self._tell_now()
        last = self.execution._replace(state=state, result=result, ended_at=time.time())
        if self._seq:  # it is told when it is kept, or cannot be; `keep` tries again
            event = self._event(last)
            self._unkept.append(event)
            self._latest = last
            await asyncio.shield(self._kept())
            self._tell_all(event)
        self.execution = last
        self.ended.set()

    async def keep(self) -> bool:
        """Keep what is not kept yet, and return whether all is."""
        if self._unkept:
            await asyncio.shield(self._kept())
        return not self._unkept

    async def events(self, after: int) -> AsyncGenerator[ExecutionEvent, None]:
        """Yield what happens after the event with the number `after`, to the end.

        It ends early for a reader who falls so far behind that events are only in the database, and when this
        object is left.
        """
        while True:
            news = self._news
            while self._before <= after < self._before + len(self._events):
                event = self._events[after - self._before]
                after += 1
                yield event
                if event.is_last:
                    return
            if after < self._before or self.left.is_set():
                return
            await news.wait()

    def leave(self) -> None:
        """Tell those who follow it here to look elsewhere: it waits for a person, who may decide in another host."""
        self.left.set()
        self._news.set()

    @property
    def first(self) -> int:
        """The number before the first of the events in memory."""
        return self._before

    def _tell_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._report is not None:
            progress, message = self._report
            self._report = None
            self._told_at = asyncio.get_running_loop().time()
            self._change(progress=progress, message=message)

    def _change(self, **changes: Any) -> None:
        """Be another from now on: who follows it is told at once, and it is kept soon."""
        self.execution = self._latest = self.execution._replace(**changes)
        event = self._event(self.execution)
        self._unkept.append(event)
        self._tell_all(event)
        self._kept()

    def _event(self, execution: Execution) -> ExecutionEvent:
        self._seq += 1
        return ExecutionEvent(
            self._seq, time.time(), execution.state, execution.progress, execution.message, execution.result
        )

    def _tell_all(self, event: ExecutionEvent) -> None:
        self._events.append(event)
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _kept(self) -> asyncio.Task[None]:
        """Return what ends when all is kept that has happened, or cannot be kept."""
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep())
        return self._keeping

    async def _keep(self) -> None:
        """Write until everything is written: what happens meanwhile goes along with the next writing."""
        try:
            while self._unkept:
                events, self._unkept = self._unkept, []
                try:
                    await self._records.write(self._latest, events)
                except BaseException:
                    self._unkept[:0] = events
                    raise
                self._is_kept = True
                self._forget()
        except CyreneError as error:
            if self._is_kept:
                _log.error("execution '%s' goes on, but cannot be kept: %s", self.id, error)
            self._is_kept = False
        finally:
            self._keeping = None

    def _forget(self) -> None:
        """Leave to the database what happened long ago."""
        old = len(self._events) - len(self._unkept) - REMEMBERED
        if old > REMEMBERED:
            del self._events[:old]
            self._before += old


def _cut(message: str) -> str:
    encoded = message.encode("utf-8", "replace")
    return message if len(encoded) <= MESSAGE_BYTES else encoded[:MESSAGE_BYTES].decode("utf-8", "ignore") + "…"
