"""Time limits that hold against code which swallows cancellation, and bounded threads for plain functions.

This module uses asyncio itself: anyio's scopes cost 10-16 µs a call, one task with one timer less than half,
and every call passes here.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import os
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

__all__ = ["CANCELLED", "LATE", "Bounds", "OutOfThreadsError", "Raised", "Work"]

LATE: Final = object()
"""Instead of a value: the limit passed."""
CANCELLED: Final = object()
"""Instead of a value: `Bounds.cancel` came first."""


class OutOfThreadsError(RuntimeError):
    """Every thread of the plugin is busy, most likely with calls that were given up."""


class Raised:
    """An exception as a value: SystemExit and KeyboardInterrupt must not pass through a task."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Work:
    """One piece of work under its limit; `Bounds.begin` makes it."""

    __slots__ = ("coroutine", "deadline", "is_cancelled", "task", "tell")

    task: asyncio.Task[None]

    def __init__(self, coroutine: Coroutine[Any, Any, Any], deadline: float, tell: Callable[[Any], None]) -> None:
        self.coroutine = coroutine
        self.deadline = deadline
        self.tell = tell
        self.is_cancelled = False


class Bounds:
    """Runs a plugin's code under time limits, and counts what did not end when it was told to.

    Args:
        grace_s: seconds between cancelling a piece of work and giving it up.
        most_threads: how many plain functions may run at once, given-up ones included.
        on_change: told when work is given up, and when such work ends after all.
    """

    def __init__(self, *, grace_s: float, most_threads: int, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change
        self._pid = os.getpid()
        self._grace_s = grace_s
        self._most_threads = most_threads
        self._threads = 0
        self._given_up_threads = 0
        self._given_up_tasks: set[asyncio.Task[None]] = set()
        # One timer for all limits, set for the earliest: a timer of its own would cost each call 2 µs.
        self._limited: set[Work] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    @property
    def abandoned(self) -> int:
        """How many given-up tasks and threads still run."""
        return len(self._given_up_tasks) + self._given_up_threads

    async def limited(self, coroutine: Coroutine[Any, Any, Any], limit_s: float) -> Any:
        """Run a piece of work in a task of its own; return its value, or `Raised` with what it raised.

        Raises:
            TimeoutError: the limit passed. The work was cancelled and, after the grace, given up; a value
                that comes after the limit is not returned.
            asyncio.CancelledError: the caller was cancelled, and so was the work.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        work = self.begin(coroutine, limit_s, partial(_answer, answer))
        try:
            value = await answer
        except asyncio.CancelledError:
            work.task.cancel()
            try:
                await asyncio.wait((work.task,), timeout=self._grace_s)
            finally:
                self._give_up(work)
            raise
        if value is LATE:
            raise TimeoutError
        return value

    def begin(self, coroutine: Coroutine[Any, Any, Any], limit_s: float, tell: Callable[[Any], None]) -> Work:
        """Run a piece of work in a task of its own, and have `tell` called once with what `limited` would return.

        Over the limit that is `LATE`, after `cancel` it is `CANCELLED`: told when the work has ended or is given up.
        """
        loop = asyncio.get_running_loop()
        work = Work(coroutine, loop.time() + limit_s, tell)
        work.task = loop.create_task(self._run(work))
        self._limited.add(work)
        if work.deadline < self._alarm_at:
            self._set_alarm(loop, work.deadline)
        return work

    def cancel(self, work: Work) -> None:
        """Cancel a piece of work, and give it up after the grace."""
        work.is_cancelled = True
        work.task.cancel()
        work.task.add_done_callback(lambda _: self._give_up(work))  # before its first step it would tell nothing
        asyncio.get_running_loop().call_later(self._grace_s, self._give_up, work)

    async def in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a plain function in a daemon thread of its own; return or raise what it does.

        Raises:
            OutOfThreadsError: all threads of this plugin are busy.
        """
        if self._threads >= self._most_threads:
            raise OutOfThreadsError(
                f"all {self._most_threads} threads are busy, {self._given_up_threads} of them with given-up calls"
            )
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                value = context.run(function, *args)
            except BaseException as error:  # noqa: BLE001 - plugin code, SystemExit included
                value = Raised(error)
            if os.getpid() != self._pid:
                os._exit(0)  # the function forked, and this is the child: it has no loop to answer to
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(finish, value)

        def finish(value: Any) -> None:
            self._threads -= 1
            if done.done():
                self._given_up_threads -= 1
                self._changed()
            else:
                done.set_result(value)

        threading.Thread(target=work, daemon=True).start()
        self._threads += 1
        try:
            value = await done
        except asyncio.CancelledError:
            if done.cancelled():  # else the function ended at this very moment
                self._given_up_threads += 1
                self._changed()
            raise
        if isinstance(value, Raised):
            raise value.error
        return value

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = loop.call_at(deadline, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is past its limit, and set the alarm for the next."""
        now = loop.time()
        self._alarm, self._alarm_at = None, math.inf
        in_time = [work for work in self._limited if not work.is_cancelled]
        for work in in_time:
            if work.deadline <= now:
                self.cancel(work)
        earliest = min((work.deadline for work in in_time if not work.is_cancelled), default=math.inf)
        if earliest < math.inf:
            self._set_alarm(loop, earliest)

    async def _run(self, work: Work) -> None:
        try:
            value = await work.coroutine
        except BaseException as error:  # noqa: BLE001 - plugin code, SystemExit included
            value = Raised(error)
        if os.getpid() != self._pid:
            os._exit(0)  # the work forked, and this is the child: the loop and its sockets are the parent's
        if work in self._limited:  # else it was given up
            self._limited.discard(work)
            _tell(work, value)

    def _ended_at_last(self, task: asyncio.Task[None]) -> None:
        self._given_up_tasks.discard(task)
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def _give_up(self, work: Work) -> None:
        """See to work that has not ended, and tell so."""
        if work not in self._limited:
            return
        self._limited.discard(work)
        task = work.task
        if task.done():
            work.coroutine.close()  # cancelled before its first step, it would be "never awaited"
        else:
            self._given_up_tasks.add(task)
            task.add_done_callback(self._ended_at_last)
            self._changed()
            # asyncio.run() waits for every registered task when it ends, and this one may never do so.
            asyncio._unregister_task(task)  # noqa: SLF001 - documented for code that extends asyncio
        _tell(work, CANCELLED)


def _tell(work: Work, value: Any) -> None:
    is_late = asyncio.get_running_loop().time() >= work.deadline
    work.tell(LATE if is_late else CANCELLED if work.is_cancelled else value)


def _answer(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)
