"""A failure is told once in the log, and its repeats are counted."""

from __future__ import annotations

import logging

import pytest
from anyio.lowlevel import checkpoint

from cyrene_host.call import failure_log
from cyrene_host.call.failure_log import FailureLog
from cyrene_host.errors import CallFailedError
from cyrene_sdk import ErrorKind


def failure(what: str = "busy", kind: ErrorKind = ErrorKind.OVERLOADED) -> CallFailedError:
    return CallFailedError(kind, what, trace="")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(failure_log, "WINDOW_S", 0.05)
    caplog.set_level(logging.INFO)


async def test_repeats_are_counted_under_the_first_ones_id(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog()

    ids = {log.tell(f"call_{number}", "a.b", "python", failure()) for number in range(4)}

    (error_id,) = ids
    assert lines(caplog) == [f"call 'call_0' of 'a.b' from python ended as overloaded [{error_id}]: busy"]
    while len(caplog.records) < 2:
        await checkpoint()
    assert lines(caplog)[1] == f"calls of 'a.b' ended as overloaded 3 more times like [{error_id}]"


async def test_after_the_window_the_same_failure_is_told_anew(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog()
    first = log.tell("call_1", "a.b", "python", failure())
    while log._told:
        await checkpoint()

    assert log.tell("call_2", "a.b", "python", failure()) != first
    assert len(lines(caplog)) == 2


async def test_another_failure_tool_or_kind_is_told(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog()

    ids = {
        log.tell("call_1", "a.b", "python", failure()),
        log.tell("call_2", "a.c", "python", failure()),
        log.tell("call_3", "a.b", "python", failure(kind=ErrorKind.TIMEOUT)),
        log.tell("call_4", "a.b", "python", failure("busier")),
    }

    assert len(ids) == len(lines(caplog)) == 4


async def test_a_failure_that_another_one_follows_is_still_summed_up(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog()
    first = log.tell("call_1", "a.b", "python", failure())
    log.tell("call_2", "a.b", "python", failure())
    log.tell("call_3", "a.b", "python", failure("busier"))

    while log._told:
        await checkpoint()

    assert lines(caplog)[2:] == [f"calls of 'a.b' ended as overloaded 1 more times like [{first}]"]


async def test_the_traceback_comes_behind_its_line(caplog: pytest.LogCaptureFixture) -> None:
    FailureLog().tell("call_1", "a.b", "cli", CallFailedError(ErrorKind.TOOL_ERROR, "bad", trace="Traceback …"))

    assert lines(caplog)[0].endswith(": bad\nTraceback …")
