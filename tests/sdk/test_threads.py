"""A plain function in its thread waits for the event loop, and notices when nobody waits for it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cyrene_sdk import CurrentCall, CyreneError, Report, complex_tool, current_call, function_tool, wait_for
from cyrene_sdk._worker.bounds import Bounds
from cyrene_sdk.context import _current
from cyrene_sdk.threads import in_thread


@pytest.fixture(params=["any", "bounded"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Any]], Any]:
    """Run a function in a thread: in any, and in one of a plugin's own."""
    return in_thread if request.param == "any" else Bounds(grace_s=1, most_threads=4).in_thread


async def answer(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def test_a_thread_waits_for_a_coroutine_on_the_loop_in_its_own_context(run: Callable[..., Any]) -> None:
    _current.set(CurrentCall("call_7"))

    async def asked() -> tuple[str, threading.Thread]:
        return current_call().call_id, threading.current_thread()

    assert await run(lambda: wait_for(asked())) == ("call_7", threading.current_thread())


async def test_a_thread_waits_for_any_awaitable(run: Callable[..., Any]) -> None:
    class Awaits:
        def __await__(self) -> Any:
            return answer(5).__await__()

    assert await run(lambda: wait_for(Awaits())) == 5


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("its own")])
async def test_what_the_awaitable_raises_comes_to_the_thread(run: Callable[..., Any], error: Exception) -> None:
    async def fails() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await run(lambda: wait_for(fails()))
    assert str(raised.value) == str(error)


async def test_a_thread_waits_no_longer_than_its_calls_deadline(run: Callable[..., Any]) -> None:
    _current.set(CurrentCall("call_7", deadline=time.monotonic() + 0.05))
    ended = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError, match="the call's deadline passed"):
        await run(lambda: wait_for(never()))
    async with asyncio.timeout(5):
        await ended.wait()


async def test_a_cancelled_caller_wakes_the_thread_and_ends_what_it_waits_for(
    run: Callable[..., Any], until: Callable[..., Any]
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    told: list[BaseException] = []

    async def never() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def function() -> None:
        for _ in range(2):  # the second does not begin to wait
            try:
                wait_for(never())
            except asyncio.CancelledError as error:
                told.append(error)

    task = asyncio.create_task(run(function))
    async with asyncio.timeout(5):
        await begun.wait()
        task.cancel()
        await ended.wait()
    await until(lambda: len(told) == 2)
    assert str(told[0]) == "the call was cancelled"
    assert task.cancelled()


async def test_on_the_loop_it_is_an_error_that_says_what_to_write() -> None:
    with pytest.raises(CyreneError) as raised:
        wait_for(answer(1))

    assert str(raised.value) == (
        "wait_for() was used on the event loop\n  where: cyrene_sdk.wait_for\n  mend:  write `await` instead"
    )


def test_outside_of_any_plugin_it_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(CyreneError) as raised:
        wait_for(answer(1))

    assert str(raised.value) == (
        "wait_for() was used outside the thread of a plain `def`\n"
        "  where: cyrene_sdk.wait_for\n"
        "  mend:  start own threads with `contextvars.copy_context().run`"
    )


async def test_a_thread_that_a_thread_started_waits_with_its_context(run: Callable[..., Any]) -> None:
    told: list[Any] = []

    def function() -> None:
        context = contextvars.copy_context()
        own = threading.Thread(target=context.run, args=(lambda: told.append(wait_for(answer("own"))),))
        own.start()
        own.join()

    await run(function)
    assert told == ["own"]


async def test_a_report_of_a_cancelled_function_raises_in_its_thread(until: Callable[..., Any]) -> None:
    told: list[BaseException] = []
    begun, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def index(report: Report) -> None:
        report(0.1)
        loop.call_soon_threadsafe(begun.set)
        release.wait(5)
        try:
            report(0.2)
        except asyncio.CancelledError as error:
            told.append(error)

    reports: AsyncIterator[Any] = function_tool(complex_tool(index)).execute_async({})  # type: ignore[attr-defined]
    async with asyncio.timeout(5):
        await anext(reports)
        await begun.wait()
        await reports.aclose()  # type: ignore[attr-defined]
        release.set()
    await until(lambda: told)
    assert str(told[0]) == "the call was cancelled"
