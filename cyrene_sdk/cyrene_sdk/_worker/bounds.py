"""Time limits that hold against code which swallows cancellation, and bounded threads for plain functions.

This module uses asyncio itself: anyio's scopes cost 10-16 µs a call, one task with one timer less than half,
and every call passes here.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property, partial
from typing import Any, Final, Protocol, TypeVar

from cyrene_sdk.threads import Ties

__all__ = [
    "CANCELLED",
    "LATE",
    "Bounds",
    "LongWork",
    "OutOfThreadsError",
    "Raised",
    "Work",
    "answering",
    "invoke",
]

LATE: Final = object()
"""Instead of a value: the limit passed."""
CANCELLED: Final = object()
"""Instead of a value: `Bounds.cancel` came first."""
_GIVEN_UP: Final = object()

_T = TypeVar("_T")


class OutOfThreadsError(RuntimeError):
    """Every thread of the plugin is busy, most likely with calls that were given up."""


class Raised:
    """An exception as a value: SystemExit and KeyboardInterrupt must not pass through a task."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Answer(Protocol):
    """Takes what became of a piece of work, once: the future that its caller waits for, or its `Work`."""

    def done(self) -> bool: ...
    def set_result(self, value: Any, /) -> None: ...


class Work:
    """A piece of work that was begun and that nobody waits for: what became of it is told at once."""

    __slots__ = ("_end", "_is_done", "coroutine", "deadline", "is_cancelled", "task", "tell")

    task: asyncio.Task[None]

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        deadline: float,
        tell: Callable[[Any], None],
        end: Callable[[Work, Any], None],
    ) -> None:
        self.coroutine = coroutine
        self.deadline = deadline
        self.tell = tell
        self.is_cancelled = False
        self._end = end
        self._is_done = False

    def done(self) -> bool:
        """Whether it has ended or is given up."""
        return self._is_done

    def set_result(self, value: Any, /) -> None:
        """Called by the work itself, or when it is given up."""
        self._is_done = True
        self._end(self, value)


class LongWork(Work):
    """Work with two limits: seconds in all, and seconds without a sign of life."""

    __slots__ = ("idle_s", "last_deadline")

    idle_s: float
    last_deadline: float

    @property
    def is_idle(self) -> bool:
        """Whether the limit that comes first is the one on time without a sign of life."""
        return self.deadline < self.last_deadline


class Bounds:
    """Runs a plugin's code under time limits, and counts what did not end when it was told to.

    It belongs to the event loop that it is first used in.

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
        self._limited: dict[_Answer, tuple[float, asyncio.Task[None]]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    @property
    def abandoned(self) -> int:
        """How many given-up tasks and threads still run."""
        return len(self._given_up_tasks) + self._given_up_threads

    async def limited(self, work: Coroutine[Any, Any, Any], limit_s: float) -> Any:
        """Run `work` in a task of its own; return its value, or `Raised` with what it raised.

        Raises:
            TimeoutError: the limit passed. The work was cancelled and, after the grace, given up; a value
                that comes after the limit is not returned.
            asyncio.CancelledError: the caller was cancelled, and so was the work.
        """
        answer = await self.answered(work, limit_s, _itself)
        if answer is LATE:
            raise TimeoutError
        return answer

    async def answered(self, work: Coroutine[Any, Any, Any], limit_s: float, read: Callable[[Any, float], _T]) -> _T:
        """Do what `limited` does, and return what `read` makes of the value and the limit.

        Over the limit the value is `LATE`.
        """
        answer: asyncio.Future[Any] = asyncio.Future(loop=self._loop)  # create_future costs 0.1 µs more
        deadline = time.monotonic() + limit_s
        task = self._start(work, answer, deadline)
        try:
            value = await answer
        except asyncio.CancelledError:
            await self._cancel(task, work)
            raise
        finally:
            del self._limited[answer]
        if time.monotonic() >= deadline:
            self._settle(task, work)
            value = LATE
        return read(value, limit_s)

    def begin(self, work: Coroutine[Any, Any, Any], limit_s: float, tell: Callable[[Any], None]) -> Work:
        """Run `work` in a task of its own, and have `tell` called once with what `limited` would return.

        Over the limit that is `LATE`, after `cancel` it is `CANCELLED`: told when the work has ended or is given up.
        """
        begun = Work(work, time.monotonic() + limit_s, tell, self._end)
        begun.task = self._start(work, begun, begun.deadline)
        return begun

    def begin_long(
        self, work: Coroutine[Any, Any, Any], limit_s: float, idle_s: float, tell: Callable[[Any], None]
    ) -> LongWork:
        """Do what `begin` does for work that says that it is alive, by `stir`, at least every `idle_s` seconds."""
        now = time.monotonic()
        begun = LongWork(work, now + min(limit_s, idle_s), tell, self._end)
        begun.idle_s, begun.last_deadline = idle_s, now + limit_s
        begun.task = self._start(work, begun, begun.deadline)
        return begun

    def stir(self, begun: LongWork) -> None:
        """Let the time without a sign of life begin anew; what is over its limit or cancelled stays so."""
        now = time.monotonic()
        if not begun.done() and not begun.is_cancelled and now < begun.deadline:
            begun.deadline = min(now + begun.idle_s, begun.last_deadline)
            self._limited[begun] = (begun.deadline, begun.task)

    def cancel(self, begun: Work) -> None:
        """Cancel what was begun, and give it up after the grace."""
        if not begun.done():
            begun.is_cancelled = True
            self._stop(begun, begun.task)

    async def in_thread(self, function: Callable[..., Any], *args: Any, stays: bool = False) -> Any:
        """Run a plain function in a daemon thread of its own; return or raise what it does.

        Args:
            stays: once cancelled, wait for the end of the function, which may notice; a second time means it.
        Raises:
            OutOfThreadsError: all threads of this plugin are busy.
        """
        if self._threads >= self._most_threads:
            raise OutOfThreadsError(
                f"all {self._most_threads} threads are busy, {self._given_up_threads} of them with given-up calls"
            )
        loop = self._loop
        done: asyncio.Future[Any] = loop.create_future()
        ties = Ties(loop)
        context = ties.context()

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
        value = await self._thread_ended(done, ties, stays)
        if isinstance(value, Raised):
            raise value.error
        return value

    async def _thread_ended(self, done: asyncio.Future[Any], ties: Ties, stays: bool) -> Any:
        try:
            return await (asyncio.shield(done) if stays else done)
        except asyncio.CancelledError:
            ties.cut()
            if stays:
                with contextlib.suppress(asyncio.CancelledError):
                    await done
            if done.cancelled():  # else the function ended at this very moment
                self._given_up_threads += 1
                self._changed()
            raise

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """Asked once: with its look for a fork, each question costs 0.2 µs."""
        return asyncio.get_running_loop()

    @cached_property
    def _new_task(self) -> Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]:
        """Makes a task; without a detour by the loop where nobody has set a factory, which would cost 0.15 µs."""
        # With a name, since making one with a number costs 0.1 µs.
        if self._loop.get_task_factory() is None:
            return partial(asyncio.Task, loop=self._loop, name="cyrene work")
        return partial(self._loop.create_task, name="cyrene work")

    def _start(self, work: Coroutine[Any, Any, Any], answer: _Answer, deadline: float) -> asyncio.Task[None]:
        task = self._new_task(answering(work, answer, self._pid))
        self._limited[answer] = (deadline, task)
        if deadline < self._alarm_at:
            self._set_alarm(deadline)
        return task

    def _set_alarm(self, deadline: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        # Not call_at: another loop's clock need not be time.monotonic.
        self._alarm = self._loop.call_later(deadline - time.monotonic(), self._expire)

    def _expire(self) -> None:
        """Cancel what is past its limit, and set the alarm for the next."""
        now = time.monotonic()
        self._alarm, self._alarm_at = None, math.inf
        for answer, (deadline, task) in self._limited.items():
            if deadline <= now:
                self._stop(answer, task)
        earliest = min((deadline for deadline, _ in self._limited.values()), default=math.inf)
        if earliest < math.inf:
            self._set_alarm(earliest)

    def _stop(self, answer: _Answer, task: asyncio.Task[None]) -> None:
        self._limited[answer] = (math.inf, task)
        task.cancel()
        task.add_done_callback(lambda _: _give_up(answer))  # cancelled before its first step, it does not answer
        self._loop.call_later(self._grace_s, _give_up, answer)

    def _end(self, begun: Work, value: Any) -> None:
        del self._limited[begun]
        if value is _GIVEN_UP:
            self._settle(begun.task, begun.coroutine)
        is_late = time.monotonic() >= begun.deadline
        begun.tell(LATE if is_late else CANCELLED if begun.is_cancelled else value)

    def _ended_at_last(self, task: asyncio.Task[None]) -> None:
        self._given_up_tasks.discard(task)
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    async def _cancel(self, task: asyncio.Task[None], work: Coroutine[Any, Any, Any]) -> None:
        task.cancel()
        try:
            await asyncio.wait((task,), timeout=self._grace_s)
        finally:
            self._settle(task, work)

    def _settle(self, task: asyncio.Task[None], work: Coroutine[Any, Any, Any]) -> None:
        """See to the work of a call that ended without its answer."""
        if task.done():
            work.close()  # cancelled before its first step, it would be "never awaited"
            return
        self._given_up_tasks.add(task)
        task.add_done_callback(self._ended_at_last)
        self._changed()
        # asyncio.run() waits for every registered task when it ends, and this one may never do so.
        asyncio._unregister_task(task)  # noqa: SLF001 - documented for code that extends asyncio


def _itself(value: Any, _limit_s: float) -> Any:
    return value


def _give_up(answer: _Answer) -> None:
    if not answer.done():
        answer.set_result(_GIVEN_UP)


async def answering(work: Coroutine[Any, Any, Any], answer: _Answer, pid: int) -> None:
    try:
        value = await work
    except BaseException as error:  # noqa: BLE001 - plugin code, SystemExit included
        value = Raised(error)
    if os.getpid() != pid:
        os._exit(0)  # the work forked, and this is the child: the loop and its sockets are the parent's
    if not answer.done():
        answer.set_result(value)


async def invoke(bounds: Bounds, function: Callable[..., Any], *args: Any, stays: bool = False) -> Any:
    """Call a method that may be `async def` or `def`; a plain one runs in a thread (`stays` as for `in_thread`)."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    if inspect.isasyncgenfunction(function):
        return function(*args)
    value = await bounds.in_thread(function, *args, stays=stays)
    return await value if isinstance(value, Awaitable) else value
