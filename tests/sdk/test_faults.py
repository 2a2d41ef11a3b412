"""What a tool raises is told apart, and no exception can break the telling."""

from __future__ import annotations

from typing import Any

import pytest

from cyrene_sdk import ArgumentError, ErrorKind, ModelRetry, ToolFailure, Transient
from cyrene_sdk._worker.faults import Fault, fault_of, sentence_of, trace_of


class Odd(BaseException):
    """What no `except Exception` sees."""


class Speechless(Exception):
    def __str__(self) -> str:
        raise Odd


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001
        return caught


def test_what_a_tool_raises_on_purpose_is_told_in_its_own_words() -> None:
    assert fault_of(ArgumentError("no such city", path="/city")) == Fault(
        ErrorKind.INVALID_ARGUMENTS, "no such city", reason="tool", path="/city"
    )
    assert fault_of(ModelRetry("give a year")) == Fault(ErrorKind.INVALID_ARGUMENTS, "give a year", reason="tool")
    assert fault_of(ToolFailure("closed")) == Fault(ErrorKind.TOOL_ERROR, "closed")
    assert fault_of(Transient("busy")) == Fault(ErrorKind.TOOL_ERROR, "busy", retry="transient")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (Odd("x"), "Odd: x"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (SystemExit(3), "SystemExit: exited with status 3"),
        (SystemExit(), "SystemExit: exited with status 0"),
        (Speechless(), "Speechless"),
    ],
)
def test_any_other_exception_is_told_with_its_type(error: BaseException, message: str) -> None:
    fault = fault_of(raised(error))

    assert (fault.kind, fault.message, fault.retry) == (ErrorKind.TOOL_ERROR, message, "unplanned")
    assert fault.exception == type(error).__name__
    assert "test_faults.py" in fault.trace


def test_a_long_message_is_cut() -> None:
    assert sentence_of(ValueError("x" * 1_000_000)) == "x" * 2000 + "…"
    assert sentence_of(ValueError("x" * 2000)) == "x" * 2000


def test_a_long_traceback_keeps_its_end() -> None:
    trace = trace_of(raised(ValueError("x" * 1_000_000 + "end")))

    assert len(trace) == 20_000
    assert trace.endswith("end\n")


def test_a_message_that_is_no_unicode_text_is_made_one() -> None:
    error = raised(ValueError("a\ud800b"))

    assert sentence_of(error) == "a?b"
    assert "ValueError: a?b" in trace_of(error)


def test_a_message_of_another_kind_of_text_becomes_plain_text() -> None:
    class Shout(str):
        __slots__ = ()

        def __len__(self) -> int:
            raise Odd

    class Loud(Exception):
        def __str__(self) -> str:
            return Shout("hello")

    assert type(sentence_of(Loud())) is str
    assert sentence_of(Loud()) == "hello"


def test_an_argument_error_with_a_broken_path_is_told_without_it() -> None:
    class Careless(ArgumentError):
        def __init__(self, message: str) -> None:
            Exception.__init__(self, message)

    assert fault_of(Careless("bad")).path == ""
    assert fault_of(ArgumentError("bad", path="/\ud800")).path == "/?"
    assert fault_of(ArgumentError("bad", path="x" * 3000)).path == "x" * 2000 + "…"


def test_an_exception_that_breaks_its_own_traceback_is_told_by_its_type() -> None:
    class Unprintable(Exception):
        @property
        def __traceback__(self) -> Any:  # type: ignore[override]
            raise Odd

    assert trace_of(Unprintable()) == "Unprintable (its traceback could not be rendered)"
