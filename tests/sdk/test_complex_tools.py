"""Complex tools report progress, end once, and can be cancelled."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from cyrene_sdk import (
    ArgumentError,
    ComplexTool,
    CurrentCall,
    ErrorKind,
    FunctionComplexTool,
    ProgressStatus,
    Report,
    ToolProgress,
    ToolResult,
    complex_tool,
    current_call,
    function_tool,
)
from cyrene_sdk.context import _current

WAIT_S = 10  # far beyond what any of these needs


def _complex(function: Callable[..., Any]) -> FunctionComplexTool:
    made = function_tool(complex_tool(function))
    assert isinstance(made, FunctionComplexTool)
    assert isinstance(made, ComplexTool)
    return made


async def _reports(made: FunctionComplexTool, **args: Any) -> list[ToolProgress]:
    async with asyncio.timeout(WAIT_S):
        return [report async for report in made.execute_async(args)]


def _completed(result: ToolResult) -> ToolProgress:
    return ToolProgress(status=ProgressStatus.COMPLETED, progress=1.0, result=result)


def _running(progress: float, message: str = "") -> ToolProgress:
    return ToolProgress(status=ProgressStatus.RUNNING, progress=progress, message=message)


async def test_a_coroutine_reports_and_its_value_is_the_result() -> None:
    told = asyncio.Event()

    async def index(folder: str, report: Report) -> str:
        report(0.4, f"reading {folder}")
        await told.wait()
        return "done"

    reports = _complex(index).execute_async({"folder": "docs"})
    assert await anext(reports) == _running(0.4, "reading docs")
    told.set()
    assert await anext(reports) == _completed(ToolResult(success=True, output="done"))
    with pytest.raises(StopAsyncIteration):
        await anext(reports)


async def test_a_plain_function_reports_from_its_thread_off_the_loop() -> None:
    def index(report: Report) -> str:
        report(1, threading.current_thread().name)
        return "done"

    running, ended = await _reports(_complex(index))
    assert running.progress == 1.0
    assert running.message != threading.current_thread().name
    assert ended == _completed(ToolResult(success=True, output="done"))


async def test_of_reports_that_nobody_read_only_the_newest_is_passed_on() -> None:
    async def index(report: Report) -> None:
        for step in range(1000):
            report(step / 1000, str(step))

    running, ended = await _reports(_complex(index))
    assert running == _running(0.999, "999")
    assert ended.status is ProgressStatus.COMPLETED


async def test_a_generator_yields_progress_and_at_last_its_result() -> None:
    async def index() -> AsyncIterator[ToolProgress | tuple[float, str] | ToolResult]:
        yield 0.2, "a"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        yield ToolProgress(execution_id="own", progress=0.6)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        yield ToolResult(success=True, output="done")

    assert await _reports(_complex(index)) == [
        _running(0.2, "a"),
        ToolProgress(execution_id="own", progress=0.6),
        _completed(ToolResult(success=True, output="done")),
    ]


async def test_what_a_generator_yields_after_its_terminal_report_is_never_run() -> None:
    ended = ToolProgress(status=ProgressStatus.FAILED, error="no paper")
    steps: list[str] = []

    async def index() -> AsyncIterator[ToolProgress]:
        try:
            yield ended
            steps.append("went on")
        finally:
            steps.append("closed")

    assert await _reports(_complex(index)) == [ended]
    assert steps == ["closed"]


async def test_a_generator_without_a_result_ends_without_a_terminal_report() -> None:
    async def index() -> AsyncIterator[tuple[float, str]]:
        yield 0.5, "half"

    assert await _reports(_complex(index)) == [_running(0.5, "half")]
    failed = await _complex(index).execute({})
    assert (failed.success, failed.error) == (False, "tool 'index' ended without a result")


async def test_a_generator_that_never_waits_leaves_the_loop_alive() -> None:
    async def index() -> AsyncIterator[tuple[float, str]]:
        while True:
            yield 0.1, "still here"

    reports = _complex(index).execute_async({})
    async with asyncio.timeout(WAIT_S):
        assert await anext(reports) == _running(0.1, "still here")
    await reports.aclose()  # type: ignore[attr-defined]


class Place(BaseModel):
    city: str


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", ToolResult(success=True, output="text")),
        ({"a": [1, None]}, ToolResult(success=True, output='{"a": [1, null]}', data={"a": [1, None]})),
        (None, ToolResult(success=True, output="null")),
        (Place(city="巴黎"), ToolResult(success=True, output='{"city": "巴黎"}', data={"city": "巴黎"})),
        (Point(1), ToolResult(success=True, output='{"x": 1}', data={"x": 1})),
        (ToolResult(success=True, output="own", no_reply=True), ToolResult(success=True, output="own", no_reply=True)),
    ],
)
async def test_a_returned_value_becomes_the_result(value: Any, result: ToolResult) -> None:
    async def index() -> Any:
        return value

    assert await _reports(_complex(index)) == [_completed(result)]
    assert await _complex(index).execute({}) == result


async def test_data_that_json_cannot_say_is_handed_on_for_the_runner_to_refuse() -> None:
    values = {1, 2}

    async def index() -> Any:
        return values

    (ended,) = await _reports(_complex(index))
    assert ended.result is not None
    assert ended.result.data is values
    assert ended.result.output == ""


async def test_a_failed_result_is_a_failed_report_that_keeps_the_progress() -> None:
    async def index(report: Report) -> ToolResult:
        report(0.7)
        report(0.3)
        return ToolResult(error="no paper")

    running, ended = await _reports(_complex(index))
    assert running == _running(0.3)
    assert ended == ToolProgress(
        status=ProgressStatus.FAILED, progress=0.7, error="no paper", result=ToolResult(error="no paper")
    )


async def test_progress_that_is_no_number_is_nan_for_the_runner_to_judge() -> None:
    async def index(report: Report) -> ToolResult:
        report("x")  # type: ignore[arg-type]
        return ToolResult(error="no paper")

    running, ended = await _reports(_complex(index))
    assert math.isnan(running.progress)
    assert ended.progress == 0.0


@pytest.mark.parametrize("error", [ValueError("no paper"), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("in_thread", [False, True])
async def test_what_the_function_raises_reaches_who_iterates(error: BaseException, in_thread: bool) -> None:
    async def on_loop() -> None:
        raise error

    def off_loop() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await _reports(_complex(off_loop if in_thread else on_loop))
    assert raised.value is error


async def test_arguments_that_do_not_fit_are_refused() -> None:
    async def index(folder: str) -> None: ...

    with pytest.raises(ArgumentError, match="argument 'folder' is missing"):
        await _reports(_complex(index))


async def test_cancel_ends_the_execution_with_that_id_and_no_other() -> None:
    cleaned: list[str] = []

    async def index(report: Report) -> str:
        report(0.5)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(current_call().execution_id or "")
        return "never"

    made = _complex(index)

    async def started(execution_id: str) -> AsyncIterator[ToolProgress]:
        _current.set(CurrentCall("c", execution_id=execution_id))
        reports = made.execute_async({})
        first = await anext(reports)
        assert (first.execution_id, first.progress) == (execution_id, 0.5)
        return reports

    async with asyncio.timeout(WAIT_S):
        first = await asyncio.create_task(started("e-1"))
        second = await asyncio.create_task(started("e-2"))
        await made.cancel("e-1")
        ended = await anext(first)
        assert cleaned == ["e-1"]
        await made.cancel("e-1")
        await made.cancel("unknown")
        await second.aclose()  # type: ignore[attr-defined]
    assert cleaned == ["e-1", "e-2"]
    assert ended == ToolProgress(
        execution_id="e-1",
        status=ProgressStatus.CANCELLED,
        progress=0.5,
        error="the execution was cancelled",
        result=ToolResult(error="the execution was cancelled", error_kind=ErrorKind.CANCELLED),
    )


async def test_work_ends_when_nobody_iterates_any_more() -> None:
    cleaned = asyncio.Event()

    async def index(report: Report) -> None:
        report(0.1)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    reports = _complex(index).execute_async({})
    await anext(reports)
    async with asyncio.timeout(WAIT_S):
        await reports.aclose()  # type: ignore[attr-defined]
    assert cleaned.is_set()


async def test_a_report_after_the_end_is_dropped() -> None:
    kept: list[Report] = []

    async def index(report: Report) -> str:
        kept.append(report)
        return "done"

    assert await _reports(_complex(index)) == [_completed(ToolResult(success=True, output="done"))]
    kept[0](0.9, "late")
