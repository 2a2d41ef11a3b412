"""Time limits hold against any work, and plain functions run in bounded threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from cyrene_sdk._worker.bounds import CANCELLED, LATE, Bounds, OutOfThreadsError, Raised


class Odd(BaseException):
    """What no `except Exception` sees."""


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@pytest.fixture
def bounds() -> Bounds:
    return Bounds(grace_s=0.05, most_threads=2)


@pytest.fixture
def patient(slow: Callable[[float], float]) -> Callable[[Awaitable[Any]], Awaitable[Any]]:
    """Wait for what must come soon."""
    return lambda awaited: asyncio.wait_for(awaited, slow(5))


async def value_of(value: Any) -> Any:
    return value


async def swallow(until: asyncio.Event) -> str:
    """Ignore every cancellation until the event is set."""
    while True:
        try:
            await until.wait()
        except asyncio.CancelledError:
            continue
        return "survived"


def spin(seconds: float) -> None:
    """Keep the loop from running, as a busy tool does."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def all_ended(bounds: Bounds) -> None:
    async with asyncio.timeout(5):
        while bounds.abandoned:
            await checkpoint()


async def test_a_value_within_the_limit_is_returned(bounds: Bounds) -> None:
    assert await bounds.limited(value_of("answer"), 10) == "answer"
    assert bounds.abandoned == 0


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), Odd()]
)
async def test_whatever_the_work_raises_comes_back_as_a_value(bounds: Bounds, error: BaseException) -> None:
    async def work() -> None:
        raise error

    answer = await bounds.limited(work(), 10)

    assert type(answer) is Raised
    assert answer.error is error


async def test_work_over_the_limit_is_cancelled_and_times_out(bounds: Bounds) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with pytest.raises(TimeoutError):
        await bounds.limited(work(), 0.01)

    assert ended == ["cancelled"]
    assert bounds.abandoned == 0


async def test_a_value_that_comes_after_the_limit_times_out(bounds: Bounds) -> None:
    async def work() -> str:
        spin(0.03)
        return "late"

    with pytest.raises(TimeoutError):
        await bounds.limited(work(), 0.01)


async def test_work_that_answers_its_cancellation_with_a_value_times_out(bounds: Bounds) -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "never mind"
        return ""

    with pytest.raises(TimeoutError):
        await bounds.limited(work(), 0.01)


@pytest.mark.parametrize("limit_s", [0.0, 0.0004, 0.0014, 0.0204])
async def test_a_limit_that_a_loop_would_round_down_is_still_a_timeout(bounds: Bounds, limit_s: float) -> None:
    with pytest.raises(TimeoutError):
        await bounds.limited(asyncio.Event().wait(), limit_s)


async def test_work_that_swallows_its_cancellation_is_given_up_and_counted_while_it_runs(
    bounds: Bounds, patient: Callable[[Any], Any]
) -> None:
    until = asyncio.Event()

    with pytest.raises(TimeoutError):
        await patient(bounds.limited(swallow(until), 0.01))
    assert bounds.abandoned == 1

    until.set()
    await all_ended(bounds)


async def test_without_a_grace_work_is_given_up_at_the_limit() -> None:
    until = asyncio.Event()
    bounds = Bounds(grace_s=0, most_threads=1)

    with pytest.raises(TimeoutError):
        await bounds.limited(swallow(until), 0.01)

    assert bounds.abandoned == 1
    until.set()


async def test_each_of_many_limits_is_held_in_its_own_time(bounds: Bounds) -> None:
    ended: list[str] = []

    async def limited(name: str, limit_s: float) -> None:
        with pytest.raises(TimeoutError):
            await bounds.limited(asyncio.Event().wait(), limit_s)
        ended.append(name)

    await asyncio.gather(limited("third", 0.09), limited("first", 0.01), limited("second", 0.05))

    assert ended == ["first", "second", "third"]


async def test_a_limit_holds_after_an_earlier_and_shorter_one_was_never_needed(
    bounds: Bounds, patient: Callable[[Any], Any]
) -> None:
    await bounds.limited(value_of(1), 0.01)

    with pytest.raises(TimeoutError):
        await patient(bounds.limited(asyncio.Event().wait(), 0.05))


async def test_a_cancelled_caller_cancels_the_work(bounds: Bounds) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.create_task(bounds.limited(work(), 10))
    await begun.wait()
    caller.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()
    assert bounds.abandoned == 0


async def test_a_cancelled_caller_leaves_work_that_swallows_cancellation_after_the_grace(
    bounds: Bounds, patient: Callable[[Any], Any]
) -> None:
    until = asyncio.Event()
    caller = asyncio.create_task(bounds.limited(swallow(until), 10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()

    await patient(asyncio.wait([caller]))

    assert caller.cancelled()
    assert bounds.abandoned == 1
    until.set()


async def test_work_cancelled_before_its_first_step_ends_without_a_warning(bounds: Bounds) -> None:
    caller = asyncio.create_task(bounds.limited(asyncio.Event().wait(), 0.002))
    await asyncio.sleep(0)
    spin(0.02)  # the limit passes before the loop comes to the work

    with pytest.raises(TimeoutError):
        await caller
    assert bounds.abandoned == 0


async def test_begun_work_tells_its_value_once(bounds: Bounds, patient: Callable[[Any], Any]) -> None:
    told: list[Any] = []

    work = bounds.begin(value_of("answer"), 10, told.append)

    await patient(work.task)
    bounds.cancel(work)  # too late to change anything
    await checkpoint()
    assert told == ["answer"]


async def test_begun_work_that_is_cancelled_before_its_first_step_tells_so_at_once(
    patient: Callable[[Any], Any],
) -> None:
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    bounds = Bounds(grace_s=60, most_threads=1)

    bounds.cancel(bounds.begin(asyncio.Event().wait(), 60, told.set_result))

    assert await patient(told) is CANCELLED
    assert bounds.abandoned == 0


async def test_begun_work_that_swallows_its_cancellation_is_given_up_and_tells_so_once(
    bounds: Bounds, patient: Callable[[Any], Any]
) -> None:
    until, told = asyncio.Event(), asyncio.get_running_loop().create_future()
    work = bounds.begin(swallow(until), 10, told.set_result)
    await checkpoint()

    bounds.cancel(work)

    assert await patient(told) is CANCELLED
    assert bounds.abandoned == 1
    until.set()
    await all_ended(bounds)  # telling twice would have raised in the task
    assert work.task.exception() is None


async def test_begun_work_over_its_limit_tells_that_it_is_late(bounds: Bounds, patient: Callable[[Any], Any]) -> None:
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    bounds.begin(asyncio.Event().wait(), 0.01, told.set_result)

    assert await patient(told) is LATE


async def test_a_function_runs_in_a_daemon_thread_with_the_callers_context(bounds: Bounds) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")

    def function(suffix: str) -> tuple[str, threading.Thread]:
        return variable.get() + suffix, threading.current_thread()

    text, thread = await bounds.in_thread(function, "!")

    assert text == "seen!"
    assert thread is not threading.current_thread()
    assert thread.daemon


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), Odd()])
async def test_what_a_function_raises_in_its_thread_comes_to_the_caller(bounds: Bounds, error: BaseException) -> None:
    def function() -> None:
        raise error

    async def work() -> None:
        await bounds.in_thread(function)

    answer = await bounds.limited(work(), 10)

    assert answer.error is error


async def test_a_function_over_the_limit_counts_as_abandoned_until_its_thread_ends(
    bounds: Bounds, patient: Callable[[Any], Any]
) -> None:
    release = threading.Event()

    with pytest.raises(TimeoutError):
        await patient(bounds.limited(bounds.in_thread(release.wait), 0.02))
    assert bounds.abandoned == 1

    release.set()
    await all_ended(bounds)
    assert await bounds.in_thread(lambda: "free again") == "free again"


async def test_a_function_that_ends_as_its_caller_is_cancelled_is_not_counted_for_ever(bounds: Bounds) -> None:
    release = threading.Event()
    others = set(threading.enumerate())
    caller = asyncio.create_task(bounds.in_thread(release.wait))
    await asyncio.sleep(0)
    (thread,) = set(threading.enumerate()) - others
    release.set()
    thread.join()  # its answer waits in the loop now, and the cancellation comes right behind it
    asyncio.get_running_loop().call_soon(caller.cancel)

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert bounds.abandoned == 0


async def test_when_all_threads_are_busy_a_function_is_refused(bounds: Bounds) -> None:
    release = threading.Event()
    busy = asyncio.create_task(bounds.in_thread(release.wait))
    with pytest.raises(TimeoutError):
        await bounds.limited(bounds.in_thread(release.wait), 0.02)

    with pytest.raises(OutOfThreadsError) as refused:
        await bounds.in_thread(release.wait)

    assert str(refused.value) == "all 2 threads are busy, 1 of them with given-up calls"
    release.set()
    assert await busy is True


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_loop_ends_though_a_task_swallows_its_cancellation_and_a_thread_still_runs() -> None:
    release = threading.Event()
    others = set(threading.enumerate())

    async def main() -> int:
        bounds = Bounds(grace_s=0.01, most_threads=1)
        for work in (swallow(asyncio.Event()), bounds.in_thread(release.wait)):
            with pytest.raises(TimeoutError):
                await bounds.limited(work, 0.01)
        return bounds.abandoned

    assert asyncio.run(main()) == 2

    release.set()
    for thread in set(threading.enumerate()) - others:
        thread.join()  # with the loop closed it has nobody to tell; an error here would fail the test
