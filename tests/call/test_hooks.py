"""Hooks see calls, may refuse them, and can do no other harm."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any

import pytest

from cyrene_host.call import hooks as hooks_module
from cyrene_host.call.hooks import Hooks
from cyrene_host.errors import CallFailedError
from cyrene_sdk import ErrorKind, ToolResult
from cyrene_sdk.hooks import CallRefusedError, hookimpl

RESULT = ToolResult(success=True, output="done")


class Odd(BaseException):
    """What no `except Exception` sees."""


def package(**functions: Callable[..., Any]) -> object:
    """A module with these functions as hooks."""
    module = ModuleType("hooks_of_a_package")
    vars(module).update({name: hookimpl(function) for name, function in functions.items()})
    return module


def spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that a test can wait for."""
    monkeypatch.setattr(hooks_module, "LIMIT_S", 0.05)


async def refusal(hooks: Hooks) -> CallFailedError:
    with pytest.raises(CallFailedError) as refused:
        await hooks.before_call("weather.forecast", {"city": "Oslo"}, None)
    return refused.value


async def test_all_packages_are_told_in_their_order() -> None:
    seen: list[Any] = []

    async def later(tool_id: str, arguments: Any, context: Any) -> None:
        seen.append(("async", tool_id, arguments, context))

    hooks = Hooks(
        [
            ("one", package(before_call=lambda tool_id, arguments: seen.append(("sync", tool_id, arguments)))),
            ("two", package(before_call=later, after_call=lambda result: seen.append(result))),
            ("three", package(plugin_state_changed=lambda plugin, old, new, reason: seen.append((plugin, new)))),
        ]
    )
    await hooks.before_call("weather.forecast", {"city": "Oslo"}, "context")
    await hooks.after_call("weather.forecast", RESULT, "context")
    await hooks.plugin_state_changed("weather", "starting", "started", "start ended")

    assert seen == [
        ("sync", "weather.forecast", {"city": "Oslo"}),
        ("async", "weather.forecast", {"city": "Oslo"}, "context"),
        RESULT,
        ("weather", "started"),
    ]


def test_hooks_know_whether_anyone_listens_to_calls() -> None:
    assert not Hooks().any_before_call
    assert not Hooks().any_after_call
    deaf = Hooks([("deaf", package(plugin_state_changed=lambda: None))])
    assert not deaf.any_before_call
    assert not deaf.any_after_call
    assert Hooks([("one", package(before_call=lambda: None))]).any_before_call
    assert Hooks([("one", package(after_call=lambda: None))]).any_after_call


async def test_before_call_refuses_with_its_own_words_and_the_log_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> None:
        raise CallRefusedError("not on Sundays")

    error = await refusal(Hooks([("calendar", package(before_call=refuse))]))

    assert error.kind is ErrorKind.DENIED
    assert str(error) == (
        "the hook 'calendar' refused the call: not on Sundays\n"
        "  where: tool 'weather.forecast', hook before_call\n"
        "  mend:  ask the operator, who enabled this hook in cyrene.toml [hooks]"
    )
    assert not caplog.records


@pytest.mark.parametrize(
    "error", [ValueError("bug"), SystemExit(3), KeyboardInterrupt(), Odd(), asyncio.CancelledError()]
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_raising_before_call_refuses_the_call_and_is_logged_by_name(
    caplog: pytest.LogCaptureFixture, error: BaseException, kind: str
) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    refused = await refusal(Hooks([("broken", package(before_call=fail if kind == "def" else fail_later))]))

    assert refused.kind is ErrorKind.DENIED
    assert "the hook 'broken' refused the call" in refused.what
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("cyrene.hooks", logging.ERROR)
    assert record.getMessage().startswith("hook 'broken': before_call raised and is skipped\nTraceback")


async def test_after_the_first_refusal_no_other_package_is_asked() -> None:
    def refuse() -> None:
        raise CallRefusedError

    seen: list[str] = []
    hooks = Hooks([("no", package(before_call=refuse)), ("next", package(before_call=lambda: seen.append("asked")))])

    await refusal(hooks)

    assert seen == []


@pytest.mark.parametrize("error", [ValueError("bug"), SystemExit(3), Odd()])
async def test_a_raising_hook_is_skipped_and_the_next_is_told(
    caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    seen: list[str] = []
    hooks = Hooks(
        [
            ("broken", package(after_call=fail, plugin_state_changed=fail)),
            (
                "next",
                package(after_call=lambda: seen.append("after"), plugin_state_changed=lambda: seen.append("state")),
            ),
        ]
    )
    await hooks.after_call("weather.forecast", RESULT, None)
    await hooks.plugin_state_changed("weather", "a", "b", "c")

    assert seen == ["after", "state"]
    assert [record.getMessage().split("\n")[0] for record in caplog.records] == [
        "hook 'broken': after_call raised and is skipped",
        "hook 'broken': plugin_state_changed raised and is skipped",
    ]


async def forever() -> None:
    await asyncio.Event().wait()


async def swallowing() -> None:
    for _ in range(3):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("hook", [forever, swallowing, lambda: spin(0.06)])
async def test_a_hook_over_its_limit_is_logged_by_name_and_skipped(
    caplog: pytest.LogCaptureFixture, slow: Callable[[float], float], hook: Callable[..., Any]
) -> None:
    seen: list[str] = []
    hooks = Hooks([("slow", package(before_call=hook)), ("next", package(before_call=lambda: seen.append("asked")))])

    await asyncio.wait_for(hooks.before_call("weather.forecast", {}, None), slow(5))

    assert seen == ["asked"]
    assert [record.getMessage() for record in caplog.records] == [
        "hook 'slow': before_call took over 0.05 s and is skipped"
    ]


@pytest.mark.usefixtures("short")
async def test_a_refusal_that_comes_late_is_still_a_refusal() -> None:
    def refuse() -> None:
        spin(0.06)
        raise CallRefusedError("too late?")

    assert "too late?" in (await refusal(Hooks([("slow", package(before_call=refuse))]))).what


async def test_a_cancelled_call_cancels_the_hook_that_it_waits_for() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.create_task(Hooks([("slow", package(before_call=wait))]).before_call("a.b", {}, None))
    await begun.wait()
    caller.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()


async def test_a_wrapper_runs_around_its_own_package_and_may_refuse() -> None:
    seen: list[str] = []

    @hookimpl(wrapper=True)
    def before_call() -> Generator[None, Any, Any]:
        seen.append("before")
        yield
        raise CallRefusedError("wrapped")

    @hookimpl(wrapper=True)
    def after_call() -> Generator[None, Any, None]:
        yield
        seen.append("after")  # and answers None instead of the list

    module = ModuleType("hooks_that_wrap")
    vars(module).update(before_call=before_call, after_call=after_call)
    hooks = Hooks([("wrapper", module)])

    assert "wrapped" in (await refusal(hooks)).what
    await hooks.after_call("a.b", RESULT, None)
    assert seen == ["before", "after"]


async def test_what_a_wrapper_answers_is_awaited() -> None:
    seen: list[str] = []

    async def later() -> None:
        seen.append("later")

    @hookimpl(wrapper=True)
    def after_call() -> Generator[None, Any, list[Any]]:
        yield
        return [None, later()]

    module = ModuleType("hooks_that_wrap")
    vars(module).update(after_call=after_call)
    await Hooks([("wrapper", module)]).after_call("a.b", RESULT, None)

    assert seen == ["later"]


def test_a_package_with_an_unknown_hook_is_refused() -> None:
    with pytest.raises(Exception, match="unknown hook 'before_cal'"):
        Hooks([("misspelled", package(before_cal=lambda: None))])
