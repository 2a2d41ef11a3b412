"""Whatever a tool does, a call ends as exactly one result, in time, and the next call works."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from cyrene_host import CallContext, Host
from cyrene_host.call.hooks import Hooks
from cyrene_host.call.pipeline import Pipeline
from cyrene_host.call.policy import ApprovalRequest
from cyrene_sdk import ErrorKind, Image, ToolResult
from cyrene_sdk.hooks import CallRefusedError, hookimpl

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
Slow = Callable[[float], float]

T = 0.1  # the time limit of the tools that hang
GRACE = 0.1


def told(result: ToolResult) -> tuple[Any, ...]:
    """What a failed result says beside its words."""
    return result.error_kind, result.reason, result.effect, result.retryable, result.attempts


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await checkpoint()


def hurried(host: Host, waits: list[float]) -> Pipeline:
    """The host's pipeline, whose waits between attempts are noted instead of waited for."""

    async def note(seconds: float) -> None:
        waits.append(seconds)

    return Pipeline(host._registry, sleep=note, random_=lambda: 0.0)


# -- what a tool returns


@pytest.mark.parametrize(
    ("what", "output", "data"),
    [
        ("text", "你好", None),
        ("dict", '{"city": "Oslo"}', {"city": "Oslo"}),
        ("list", "[1, 2]", [1, 2]),
        ("number", "1.5", 1.5),
        ("bool", "true", True),
        ("none", "null", None),
        ("model", '{"city": "Oslo", "high": 21.5}', {"city": "Oslo", "high": 21.5}),
    ],
)
async def test_what_a_tool_returns_is_output_and_data(host_with: HostWith, what: str, output: str, data: Any) -> None:
    async with host_with() as host:
        result = await host.call("faulty.returns", {"what": what})

    assert (result.success, result.output, result.data) == (True, output, data)
    assert (result.tool_name, result.plugin, result.attempts) == ("returns", "faulty", 1)
    assert (result.error_kind, result.effect, result.error_id) == (None, None, "")
    assert result.call_id.startswith("call_")


async def test_a_returned_result_keeps_its_flags_and_nothing_that_is_the_hosts(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.returns", {"what": "flags"})

    assert (result.output, result.data, result.notes) == ("drawn", {"id": 1}, ["cached"])
    assert result.images == [Image(mime="image/png", base64="aGk=")]
    assert (result.need_ai_reply, result.already_sent, result.send_result_text) == (False, True, True)
    assert (result.no_reply, result.save_to_memory) == (True, False)
    assert (result.tool_name, result.plugin) == ("returns", "faulty")
    assert result.call_id != "forged"
    assert ToolResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("what", "error", "retryable", "reason", "effect"),
    [
        ("failure", "no stock", True, "stock", "unknown"),
        ("failure in output", "no stock left", False, "", "unknown"),
        ("failure in silence", "the tool 'returns' failed and gave no reason", False, "", "none"),
    ],
)
async def test_a_returned_failure_is_a_tool_error_in_its_own_words_and_in_the_log(
    host_with: HostWith,
    caplog: pytest.LogCaptureFixture,
    what: str,
    error: str,
    retryable: bool,
    reason: str,
    effect: str,
) -> None:
    async with host_with() as host:
        result = await host.call("faulty.returns", {"what": what})

    assert result.error == error
    assert told(result) == (ErrorKind.TOOL_ERROR, reason, effect, retryable, 1)
    assert f"[{result.error_id}]" in caplog.text


async def test_a_returned_failure_of_a_reading_tool_had_no_effect(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.fails_reading", {})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "none", False, 1)


@pytest.mark.parametrize("what", ["set", "object", "bytes", "nested", "cycle", "deep", "nan", "inf", "surrogate"])
async def test_what_is_no_json_is_output_invalid(host_with: HostWith, what: str) -> None:
    async with host_with() as host:
        result = await host.call("faulty.returns", {"what": what})
        after = await host.call("faulty.echo", {"text": "still here"})

    assert told(result) == (ErrorKind.OUTPUT_INVALID, "", "unknown", False, 1)
    assert after.output == "still here"
    if what == "nested":
        assert "where: tool 'faulty.returns' at /a/1" in result.error


async def test_a_huge_result_is_output_too_large_with_limit_and_size(host_with: HostWith, slow: Slow) -> None:
    async with host_with() as host, asyncio.timeout(slow(5)):
        result = await host.call("faulty.returns", {"what": "huge"})

    assert told(result) == (ErrorKind.OUTPUT_TOO_LARGE, "", "unknown", False, 1)
    assert "more than 1048576 bytes (300000002 or more)" in result.error


async def test_data_is_held_against_the_tools_own_returns(host_with: HostWith) -> None:
    async with host_with() as host:
        good = await host.call("faulty.promises", {"n": 3})
        bad = await host.call("faulty.promises", {"n": "three"})
        failed = await host.call("faulty.promises", {"n": "three", "success": False})

    assert good.data == {"n": 3}
    assert told(bad) == (ErrorKind.OUTPUT_INVALID, "", "unknown", False, 1)
    assert "/n" in bad.error
    assert (failed.error_kind, failed.error) == (ErrorKind.TOOL_ERROR, "half done")


# -- what a tool raises


UNPLANNED = ["ValueError", "SystemExit", "KeyboardInterrupt", "Odd", "StopIteration", "StopAsyncIteration"]
UNPLANNED += ["CancelledError", "GeneratorExit", "Speechless", "TimeoutError"]


@pytest.mark.parametrize("tool", ["raises", "raises_sync"])
@pytest.mark.parametrize("what", UNPLANNED)
async def test_any_exception_is_a_tool_error_and_nothing_comes_out_of_the_call(
    host_with: HostWith, caplog: pytest.LogCaptureFixture, tool: str, what: str
) -> None:
    async with host_with() as host:
        result = await host.call(f"faulty.{tool}", {"what": what})
        after = await host.call("faulty.echo", {"text": "still here"})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "unknown", True, 1)
    assert ("RuntimeError" if what == "StopIteration" else what) in result.error
    assert after.output == "still here"
    (record,) = [record for record in caplog.records if result.error_id in record.getMessage()]
    assert "Traceback (most recent call last)" in record.getMessage()
    assert "Traceback" not in result.error


async def test_an_exit_in_a_thread_is_a_tool_error(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.exits_in_a_thread", {})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "unknown", True, 1)
    assert "SystemExit: exited with status 3" in result.error


async def test_an_exception_of_a_reading_tool_had_no_effect(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.raises_reading", {})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "none", True, 1)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("ArgumentError", (ErrorKind.INVALID_ARGUMENTS, "tool", "none", False, 1)),
        ("ModelRetry", (ErrorKind.INVALID_ARGUMENTS, "tool", "none", False, 1)),
        ("ToolFailure", (ErrorKind.TOOL_ERROR, "", "unknown", False, 1)),
        ("Transient", (ErrorKind.TOOL_ERROR, "", "none", True, 1)),
    ],
)
async def test_what_a_tool_raises_on_purpose_says_what_may_be_done(
    host_with: HostWith, what: str, expected: tuple[Any, ...]
) -> None:
    async with host_with() as host:
        result = await host.call("faulty.raises", {"what": what})

    assert told(result) == expected


async def test_a_long_message_is_cut(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.raises", {"what": "long"})

    assert len(result.error.encode()) <= 2048
    assert "xxx…" in result.error


# -- time


@pytest.mark.parametrize(
    ("tool", "abandoned", "effect", "retryable"),
    [
        ("hangs", 0, "unknown", False),
        ("hangs_reading", 0, "none", True),
        ("swallows", 1, "unknown", False),
        ("answers_late", 0, "unknown", False),
        ("blocks_the_loop", 0, "unknown", False),
        ("blocks_its_thread", 1, "unknown", False),
        ("reports_for_ever", 0, "unknown", False),
        ("indexes_for_ever", 0, "unknown", False),
    ],
)
async def test_a_tool_over_its_limit_times_out_and_what_runs_on_is_counted(
    host_with: HostWith, runtime: str, slow: Slow, tool: str, abandoned: int, effect: str, retryable: bool
) -> None:
    async with host_with() as host:
        async with asyncio.timeout(slow(T + GRACE + 0.5)):
            result = await host.call(f"faulty.{tool}", {})
        after = await host.call("faulty.echo", {"text": "still here"})

        assert told(result) == (ErrorKind.TIMEOUT, "", effect, retryable, 1)
        runs_long = tool.endswith("_for_ever")
        assert ("it ran longer than 0.1 s" if runs_long else "no answer within 0.1 s") in result.error
        assert result.duration_ms >= T * 1000
        assert after.output == "still here"
        # A worker in which something runs on is replaced.
        assert host.plugins.get("faulty").abandoned == (abandoned if runtime == "inline" else 0)


async def test_a_deadline_cuts_the_attempt_short(host_with: HostWith, slow: Slow) -> None:
    async with host_with() as host, asyncio.timeout(slow(0.5)):
        result = await host.call("faulty.fails_slowly", {"seconds": 20}, deadline_s=0.05)

    assert told(result) == (ErrorKind.TIMEOUT, "", "unknown", False, 1)
    assert "no answer within 0.0" in result.error
    assert result.error.splitlines()[-1] == "  mend:  ask for less, or give the call more time: its deadline came first"


async def test_attempts_stop_at_the_deadline(host_with: HostWith, slow: Slow) -> None:
    async with host_with() as host:
        async with asyncio.timeout(slow(2.5)):
            result = await host.call("faulty.fails_slowly", {"seconds": 0.8}, deadline_s=2)
        attempts = (await host.call("faulty.counted", {"what": "fails_slowly"})).data

    assert result.error_kind is ErrorKind.TIMEOUT
    assert 2 <= result.attempts <= 3
    assert attempts == result.attempts


async def test_a_deadline_that_leaves_no_time_for_the_wait_ends_the_call_at_once(host_with: HostWith) -> None:
    waits: list[float] = []
    async with host_with() as host:
        result = await hurried(host, waits).call("faulty.fails_slowly", {"seconds": 0}, deadline_s=0.09)

    assert told(result) == (ErrorKind.TIMEOUT, "", "unknown", True, 1)
    assert "the call's deadline passed after attempt 1, which failed: ValueError: bad value" in result.error
    assert waits == []


async def test_a_deadline_that_passes_during_the_wait_ends_the_call(host_with: HostWith, slow: Slow) -> None:
    limit_s = slow(0.5)  # the first attempt has to fit

    async def oversleep(seconds: float) -> None:
        await asyncio.sleep(limit_s)

    async with host_with() as host:
        pipeline = Pipeline(host._registry, sleep=oversleep, random_=lambda: 0.0)
        result = await pipeline.call("faulty.fails_slowly", {"seconds": 0}, deadline_s=limit_s)

    assert told(result) == (ErrorKind.TIMEOUT, "", "unknown", True, 1)


async def test_a_deadline_that_has_passed_lets_no_tool_begin(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.count", {}, deadline_s=0)
        calls = (await host.call("faulty.count", {})).data

    assert told(result) == (ErrorKind.TIMEOUT, "", "none", True, 0)
    assert calls == 1


# -- attempts


@pytest.mark.parametrize("how", ["Transient", "ValueError"])
async def test_a_tool_that_works_at_the_third_attempt_has_worked(host_with: HostWith, how: str) -> None:
    waits: list[float] = []
    async with host_with() as host:
        result = await hurried(host, waits).call("faulty.works_at_last", {"fails": 2, "how": how})

    assert (result.success, result.data, result.attempts) == (True, 3, 3)
    assert waits == [0.1, 0.2]


async def test_attempts_end_with_max_retries(host_with: HostWith) -> None:
    waits: list[float] = []
    async with host_with() as host:
        result = await hurried(host, waits).call("faulty.works_at_last", {"fails": 9})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "none", True, 3)
    assert "attempt 3 of 3" in result.error
    assert waits == [0.1, 0.2]


@pytest.mark.parametrize("how", ["ArgumentError", "ModelRetry", "ToolFailure"])
async def test_an_error_that_another_attempt_would_not_mend_gets_none(host_with: HostWith, how: str) -> None:
    waits: list[float] = []
    async with host_with() as host:
        result = await hurried(host, waits).call("faulty.works_at_last", {"fails": 9, "how": how})

    assert result.attempts == 1
    assert waits == []


async def test_a_timeout_is_tried_again_where_the_tool_is_idempotent(host_with: HostWith, slow: Slow) -> None:
    waits: list[float] = []
    async with host_with() as host, asyncio.timeout(slow(3 * T + 1)):
        result = await hurried(host, waits).call("faulty.hangs_often", {})

    assert told(result) == (ErrorKind.TIMEOUT, "", "unknown", True, 3)
    assert len(waits) == 2


async def test_each_attempt_gets_fresh_arguments(host_with: HostWith) -> None:
    names = ["Ada"]
    async with host_with() as host:
        result = await hurried(host, []).call("faulty.mutates", {"names": names})

    assert (result.data, result.attempts) == (["Ada", "one more"], 2)
    assert names == ["Ada"]


async def test_what_an_earlier_attempt_may_have_done_is_not_forgotten(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await hurried(host, []).call("faulty.acts_then_backs_out", {})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "unknown", True, 3)


async def test_a_dangerous_tool_gets_no_second_attempt(host_with: HostWith) -> None:
    overrides = {"danger.high": "allow"}
    async with host_with(overrides=overrides) as host:
        result = await hurried(host, []).call("faulty.destroys_or_not", {"how": "Transient"})

    assert told(result) == (ErrorKind.TOOL_ERROR, "", "none", True, 1)


# -- who calls


async def test_the_tool_knows_its_call_on_the_loop_and_in_its_thread(host_with: HostWith) -> None:
    context = CallContext(surface="chat", principal="ada", conversation_id="c1", user_id="u1", idempotency_key="k1")
    async with host_with() as host:
        results = [await host.call(f"faulty.{tool}", {}, context=context) for tool in ("whose", "whose_sync")]

    for result in results:
        assert result.data == {
            "call_id": result.call_id,
            "surface": "chat",
            "conversation_id": "c1",
            "user_id": "u1",
            "idempotency_key": "k1",
            "has_deadline": True,
        }
    assert results[0].call_id != results[1].call_id


async def test_a_cancelled_caller_cancels_the_tool(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with() as host:
        caller = asyncio.create_task(host.call("faulty.tells_its_end", {"folder": str(tmp_path)}))
        await until((tmp_path / "begun").exists)
        caller.cancel()
        await asyncio.wait([caller])

        assert caller.cancelled()
        await until((tmp_path / "cancelled").exists)
        assert (await host.call("faulty.echo", {"text": "still here"})).output == "still here"


# -- forms of tools


@pytest.mark.parametrize("tool", ["greets", "greets_sync"])
async def test_a_tool_in_its_long_form_validates_and_answers(host_with: HostWith, tool: str) -> None:
    async with host_with() as host:
        greeting = await host.call(f"faulty.{tool}", {"name": "Ada"})
        refused = await host.call(f"faulty.{tool}", {"name": "nobody"})
        misfit = await host.call(f"faulty.{tool}", {"nmae": "Ada"})

    assert greeting.output == "Ada，昔涟向你问好♪"
    assert told(refused) == (ErrorKind.INVALID_ARGUMENTS, "tool", "none", False, 1)
    assert f"where: tool 'faulty.{tool}' at /name" in refused.error
    assert told(misfit) == (ErrorKind.INVALID_ARGUMENTS, "schema", "none", False, 0)


async def test_a_tool_is_called_by_every_spelling(host_with: HostWith) -> None:
    async with host_with(tools={"greets": {"alias": "hello_there"}}) as host:
        for spelling in ("faulty.greets", "greets", "faulty__greets", "hello_there", "greeting"):
            assert (await host.call(spelling, {})).output == "开拓者，昔涟向你问好♪"


async def test_a_complex_tool_ends_with_its_result(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.indexes", {"steps": 3})

    assert (result.success, result.output, result.attempts) == (True, "indexed", 1)


@pytest.mark.parametrize(
    ("tool", "kind", "words"),
    [
        ("indexes_badly", ErrorKind.TOOL_ERROR, "ValueError: bad value"),
        ("reports_failure", ErrorKind.TOOL_ERROR, "disk full"),
        ("ends_without_result", ErrorKind.OUTPUT_INVALID, "the execution ended with no result"),
        ("reports_nothing", ErrorKind.OUTPUT_INVALID, "the execution ended with no result"),
    ],
)
async def test_a_complex_tool_that_fails_says_why(host_with: HostWith, tool: str, kind: ErrorKind, words: str) -> None:
    async with host_with() as host:
        result = await host.call(f"faulty.{tool}", {})

    assert result.error_kind is kind
    assert words in result.error


async def test_a_tool_whose_parts_disagree_is_schema_invalid(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.disagrees", {})

    assert told(result) == (ErrorKind.SCHEMA_INVALID, "", "none", False, 0)


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "schema"),
        ({"fails": "many"}, "schema"),
        ({"fails": 1, "extra": 1}, "schema"),
        ([1], "not_object"),
        ("{'fails': 1}", "invalid_json"),
        ('{"fails": 1, "how": "Tra', "truncated"),
        ('{"fails": 1, "fails": 2}', "invalid_json"),
        ({"fails": float("nan")}, "invalid_json"),
        ({"fails": {1}}, "invalid_json"),
        ("[" * 100_000, "schema"),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_tool(host_with: HostWith, arguments: Any, reason: str) -> None:
    async with host_with() as host:
        result = await host.call("faulty.works_at_last", arguments)
        calls = (await host.call("faulty.counted", {"what": "works_at_last"})).data

    assert told(result) == (ErrorKind.INVALID_ARGUMENTS, reason, "none", False, 0)
    assert calls == 0


async def test_arguments_may_come_as_text_and_be_coerced_with_a_note(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.works_at_last", '{"fails": "0"}')

    assert result.data == 1
    assert len(result.notes) == 1
    assert "fails" in result.notes[0]


async def test_an_unknown_tool_is_told_without_any_plugin(
    host_with: HostWith, caplog: pytest.LogCaptureFixture
) -> None:
    async with host_with() as host:
        result = await host.call("faulty.absent\ud800" + "x" * 100, {})

    assert told(result) == (ErrorKind.UNKNOWN_TOOL, "", "none", False, 0)
    assert (result.plugin, result.tool_name) == ("", "faulty.absent?" + "x" * 66)
    caplog.text.encode()


# -- places


async def test_calls_over_concurrency_and_queue_are_overloaded_at_once_and_counted_in_the_log(
    host_with: HostWith, caplog: pytest.LogCaptureFixture, slow: Slow
) -> None:
    async with host_with(limits={"concurrency": 2, "queue_size": 10}) as host, asyncio.timeout(slow(8)):
        calls = [asyncio.create_task(host.call("faulty.pauses", {})) for _ in range(100)]
        refused = await asyncio.gather(*calls[12:])
        assert not any(call.done() for call in calls[:12])
        results = await asyncio.gather(*calls[:12])
        told_then = [record for record in caplog.records if "overloaded" in record.getMessage()]
        await until(lambda: "87 more times" in caplog.text)
        after = await host.call("faulty.counted", {"what": "pauses"})

    assert all(result.output == "done" for result in results)
    assert {told(result) for result in refused} == {(ErrorKind.OVERLOADED, "", "none", True, 0)}
    assert "2 calls run and 10 wait already" in refused[0].error
    assert len(told_then) == 1
    assert {result.error_id for result in refused} == {refused[0].error_id}
    assert f"[{refused[0].error_id}]" in told_then[0].getMessage()
    assert after.data == 12


async def test_a_call_that_finds_no_place_within_its_limit_is_overloaded(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with(limits={"concurrency": 1}) as host:
        first = asyncio.create_task(host.call("faulty.tells_its_end", {"folder": str(tmp_path)}))
        await until((tmp_path / "begun").exists)
        result = await host.call("faulty.echo", {}, deadline_s=0.05)
        first.cancel()
        await asyncio.wait([first])
        after = await host.call("faulty.echo", {"text": "still here"})

    assert told(result) == (ErrorKind.OVERLOADED, "", "none", True, 0)
    assert "no place became free within the call's time limit" in result.error
    assert after.output == "still here"


@pytest.mark.parametrize("runtime", ["inline"], indirect=True)  # elsewhere the worker is replaced, threads and all
async def test_given_up_threads_keep_their_places_until_they_end(host_with: HostWith) -> None:
    async with host_with(limits={"concurrency": 1}) as host:
        await host.call("faulty.blocks_its_thread", {})
        result = await host.call("faulty.echo_sync", {})
        on_the_loop = await host.call("faulty.echo", {"text": "still here"})

    assert told(result) == (ErrorKind.OVERLOADED, "", "none", True, 1)
    assert on_the_loop.output == "still here"


# -- danger


async def test_a_dangerous_call_without_an_approver_needs_approval_and_does_not_run(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.destroys", {"names": ["a"]})
        calls = (await host.call("faulty.counted", {"what": "destroys"})).data

    assert told(result) == (ErrorKind.APPROVAL_REQUIRED, "", "none", False, 0)
    assert calls == 0


async def test_an_approved_call_runs_once_with_the_arguments_that_were_shown(host_with: HostWith) -> None:
    shown: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> bool:
        shown.append(request)
        request.arguments["names"].append("c")  # nobody can change what will run
        return True

    context = CallContext(surface="cli", principal="ada", user_id="u-1", conversation_id="room")
    async with host_with(approver=approve) as host:
        result = await host.call("faulty.destroys", '{"names": ["a", "b"]}', context=context)
        calls = (await host.call("faulty.counted", {"what": "destroys"})).data

    assert (result.data, calls) == (2, 1)
    (request,) = shown
    assert (request.tool_id, request.plugin, request.danger) == ("faulty.destroys", "faulty", "high")
    assert (request.principal, request.surface) == ("ada", "cli")
    assert (request.user_id, request.conversation_id) == ("u-1", "room")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (False, "the person who was asked refused the call"),
        (None, "the person who was asked refused the call"),
        ("yes", "the person who was asked refused the call"),
        (RuntimeError("no terminal"), "a person could not be asked: no terminal"),
    ],
)
async def test_anything_but_a_yes_is_denied(host_with: HostWith, answer: Any, words: str) -> None:
    async def decide(request: ApprovalRequest) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with host_with(approver=decide) as host:
        result = await host.call("faulty.destroys", {"names": ["a"]})
        calls = (await host.call("faulty.counted", {"what": "destroys"})).data

    assert told(result) == (ErrorKind.DENIED, "", "none", False, 0)
    assert words in result.error
    assert calls == 0


async def test_the_time_a_person_takes_counts_against_no_limit(host_with: HostWith, slow: Slow) -> None:
    limit_s = slow(0.5)  # the call itself has to fit

    async def think(request: ApprovalRequest) -> bool:
        await asyncio.sleep(limit_s)
        return True

    async with host_with(approver=think) as host:
        result = await host.call("faulty.destroys", {"names": ["a"]}, deadline_s=limit_s)

    assert result.data == 1


async def test_calls_that_wait_for_a_person_wait_for_a_place_too(host_with: HostWith) -> None:
    async def approve(_: object) -> bool:
        return True

    source = """
        from cyrene_sdk import BasePlugin, PluginMetadata, ToolComplexity, ToolDefinition, ToolResult

        class Eraser:
            def definition(self): return ToolDefinition(name="erase", description="Erase.", danger_level="high")
            def complexity(self): return ToolComplexity.SIMPLE
            def validate(self, args): pass
            def execute(self, args): return ToolResult(success=True, output="erased")

        class Plugin(BasePlugin):
            meta = PluginMetadata(name="eraser", version="1.0.0")
            def tools(self): return [Eraser()]
    """
    limits = {"concurrency": 1}
    async with host_with("eraser", source=textwrap.dedent(source), approver=approve, limits=limits) as host:
        results = await asyncio.gather(*(host.call("eraser.erase", {}) for _ in range(5)))

    assert [result.output or result.error for result in results] == ["erased"] * 5


async def test_nobody_is_asked_about_a_call_that_cannot_run(host_with: HostWith) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        raise AssertionError

    overrides = {"danger.medium": "confirm"}
    async with host_with(approver=approve, overrides=overrides) as host:
        by_schema = await host.call("faulty.destroys", {"names": "a"})
        by_tool = await host.call("faulty.greets", {"name": "nobody"})

    assert told(by_schema) == (ErrorKind.INVALID_ARGUMENTS, "schema", "none", False, 0)
    assert told(by_tool) == (ErrorKind.INVALID_ARGUMENTS, "tool", "none", False, 0)


async def test_a_tool_that_a_person_approved_does_not_validate_again(host_with: HostWith) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        return True

    source = """
        from cyrene_sdk import *

        class Once:
            validations = 0
            def definition(self): return ToolDefinition(name="once")
            def complexity(self): return ToolComplexity.SIMPLE
            def validate(self, args): self.validations += 1
            async def execute(self, args): return self.validations

        class Plugin(BasePlugin):
            meta = PluginMetadata(name="once", version="1.0.0")
            def tools(self): return [Once()]
    """
    overrides = {"danger.medium": "confirm"}
    async with host_with("once", source=textwrap.dedent(source), approver=approve, overrides=overrides) as host:
        assert (await host.call("once.once", {})).data == 1


async def test_a_denied_danger_is_refused_before_its_plugin_starts(host_with: HostWith) -> None:
    async with host_with(overrides={"danger.high": "deny"}, activation="lazy") as host:
        result = await host.call("faulty.destroys", {"names": ["a"]})

        assert told(result) == (ErrorKind.DENIED, "", "none", False, 0)
        assert host.plugins.get("faulty").state == "discovered"


async def test_a_lazy_plugin_starts_with_its_first_call(host_with: HostWith) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        return True

    async with host_with(activation="lazy") as host:
        assert (await host.call("faulty.echo", {"text": "begun"}, deadline_s=20)).output == "begun"
    async with host_with(activation="lazy", approver=approve) as host:
        assert (await host.call("faulty.destroys", {"names": []})).data == 0


async def test_a_deadline_that_passes_while_the_plugin_starts_leaves_it_starting(host_with: HostWith) -> None:
    source = """
        import asyncio
        from cyrene_sdk import *

        class Plugin(BasePlugin):
            meta = PluginMetadata(name="sleepy", version="1.0.0")

            async def start(self, host):
                await asyncio.sleep(0.5)

            @tool
            async def wake(self) -> str:
                return "awake"
    """
    async with host_with("sleepy", source=textwrap.dedent(source), activation="lazy") as host:
        result = await host.call("sleepy.wake", {}, deadline_s=0.1)
        after = await host.call("sleepy.wake", {})

    assert told(result) == (ErrorKind.PLUGIN_UNAVAILABLE, "", "none", True, 0)
    assert "it is still starting, and the call's deadline has passed" in result.error
    assert after.output == "awake"


# -- secrets


SECRET = "s3cret-canary-token"


@pytest.fixture
def secret_host(
    host_with: HostWith, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], AbstractAsyncContextManager[Host]]:
    monkeypatch.setenv("FAULTY_TOKEN", SECRET)
    return lambda: host_with(config={"token": {"$env": "FAULTY_TOKEN"}})


async def test_secrets_are_taken_out_of_results(secret_host: Any) -> None:
    async with secret_host() as host:
        result = await host.call("faulty.shows_secret", {})

    assert SECRET not in result.to_json()
    assert (result.output, result.data, result.notes) == ("token ***", {"***": ["***"]}, ["***"])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("raises_secret", {}),
        ("raises_secret", {"padding": 1470}),  # where the message is cut
        ("returns_secret_failure", {}),
    ],
)
async def test_secrets_are_taken_out_of_errors_and_log(
    secret_host: Any, caplog: pytest.LogCaptureFixture, tool: str, arguments: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with secret_host() as host:
        result = await host.call(f"faulty.{tool}", arguments)

    assert result.error_kind is ErrorKind.TOOL_ERROR
    assert "s3cret" not in result.to_json()
    assert SECRET not in caplog.text
    assert result.error_id in caplog.text


@pytest.mark.parametrize("how", ["ArgumentError", "ValueError", "returned"])
@pytest.mark.parametrize("as_text", [False, True])
async def test_secret_arguments_never_come_into_the_log(
    host_with: HostWith, caplog: pytest.LogCaptureFixture, how: str, as_text: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    arguments = {"user": "ada", "how": how, "password": "correct horse", "pin": "4711", "keys": {"a": [True, "k1-77"]}}
    async with host_with() as host:
        given = json.dumps({**arguments, "keys": json.dumps(arguments["keys"])}) if as_text else arguments
        result = await host.call("faulty.logs_in", given)

    assert "correct horse" in result.error  # the caller knows it already
    assert "no ada with" in caplog.text
    for secret in ("correct horse", "4711", "k1-77"):
        assert secret not in caplog.text


async def test_secret_arguments_that_the_gate_refuses_come_into_no_log(
    host_with: HostWith, caplog: pytest.LogCaptureFixture
) -> None:
    async with host_with() as host:
        result = await host.call("faulty.logs_in", '{"user": "ada", "password": "correct horse"')

    assert result.reason == "truncated"
    assert "correct horse" not in caplog.text + result.error


# -- hooks


async def test_hooks_see_a_call_and_its_result_and_cannot_change_it(host_with: HostWith) -> None:
    seen: list[Any] = []

    @hookimpl
    def before_call(tool_id: str, arguments: Any, context: Any) -> None:
        seen.append((tool_id, context.surface))
        arguments["names"] = ["changed"]
        if tool_id.endswith("echo"):
            raise CallRefusedError("no echo today")

    @hookimpl
    def after_call(tool_id: str, result: ToolResult, context: Any) -> None:
        seen.append((tool_id, result.error_kind))

    module = ModuleType("guard")
    vars(module).update(before_call=before_call, after_call=after_call)
    async with host_with() as host:
        pipeline = Pipeline(host._registry, hooks=Hooks([("guard", module)]))
        changed = await pipeline.call("faulty.mutates", {"names": ["Ada"]})
        refused = await pipeline.call("faulty.echo", {})
        unknown = await pipeline.call("absent", {})

    assert changed.data == ["Ada", "one more"]
    assert told(refused) == (ErrorKind.DENIED, "", "none", False, 0)
    assert refused.plugin == "faulty"
    assert unknown.error_kind is ErrorKind.UNKNOWN_TOOL
    assert seen == [
        ("faulty.mutates", "python"),
        ("faulty.mutates", None),
        ("faulty.echo", "python"),
        ("faulty.echo", ErrorKind.DENIED),
        ("absent", ErrorKind.UNKNOWN_TOOL),
    ]


# -- the end


SCRIPT = """
import asyncio, sys
from cyrene_host import Host

async def main():
    async with Host.open(sys.argv[1], overrides={"host.state_dir": sys.argv[2]}) as host:
        for tool in ("swallows", "blocks_its_thread"):
            print((await host.call(f"faulty.{tool}", {})).error_kind)
        print(host.plugins.get("faulty").abandoned)

asyncio.run(main())
"""


def test_a_program_ends_though_a_tool_swallows_its_cancellation_and_another_blocks(
    host_with: HostWith, runtime: str, plugins_folder: Path, slow: Slow
) -> None:
    host_with()
    file = max(plugins_folder.glob("*.json"), key=lambda path: int(path.stem))

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file), str(plugins_folder / "state")],
        capture_output=True,
        text=True,
        timeout=slow(20),
        check=True,
    )

    assert done.stdout.split() == ["timeout", "timeout", "2" if runtime == "inline" else "0"]
