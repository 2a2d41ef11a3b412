"""What a tool returns becomes plain fields of a result, or a fault that says what is wrong with it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer

from cyrene_sdk import ErrorKind, Image, ToolResult
from cyrene_sdk._worker.faults import Fault
from cyrene_sdk._worker.outcomes import outcome_of


class Forecast(BaseModel):
    city: str
    high: float = 21.5


def fault(value: object) -> Fault:
    outcome = outcome_of(value)
    assert isinstance(outcome, Fault), outcome
    return outcome


@pytest.mark.parametrize("text", ["", "hello", "昔涟向你问好♪", "x" * 100_000])
def test_a_text_is_the_output(text: str) -> None:
    assert outcome_of(text) == {"success": True, "output": text}


def test_a_kind_of_text_becomes_plain_text() -> None:
    class Shout(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "never asked"

    outcome = outcome_of(Shout("hello"))

    assert outcome == {"success": True, "output": "hello"}
    assert type(outcome["output"]) is str


@pytest.mark.parametrize("value", [{"a": [1, 2.5]}, [1, "二"], 7, 1.5, True, None, {}, []])
def test_json_is_the_data_with_its_text_as_output(value: Any) -> None:
    assert outcome_of(value) == {"success": True, "output": json.dumps(value, ensure_ascii=False), "data": value}


def test_a_tuple_is_a_list() -> None:
    assert outcome_of((1, 2)) == {"success": True, "output": "[1, 2]", "data": [1, 2]}


def test_a_model_is_its_json() -> None:
    assert outcome_of(Forecast(city="Oslo")) == {
        "success": True,
        "output": '{"city": "Oslo", "high": 21.5}',
        "data": {"city": "Oslo", "high": 21.5},
    }


def test_data_is_a_copy() -> None:
    inner: list[int] = [1]
    outcome = outcome_of({"inner": inner})
    inner.append(2)

    assert isinstance(outcome, dict)
    assert outcome["data"] == {"inner": [1]}


def test_a_result_keeps_what_the_tool_set_and_nothing_else() -> None:
    image = Image(mime="image/png", base64="aGk=")
    flags = {"need_ai_reply": False, "already_sent": True, "send_result_text": True, "no_reply": True}
    result = ToolResult(
        success=True,
        output="drawn",
        data={"id": 1},
        images=[image],
        notes=["cached"],
        save_to_memory=False,
        tool_name="forged",
        plugin="forged",
        call_id="forged",
        error_kind=ErrorKind.DENIED,
        duration_ms=99,
        attempts=99,
        error_id="forged",
        **flags,
    )

    assert outcome_of(result) == {
        "success": True,
        "output": "drawn",
        "data": {"id": 1},
        "images": [{"mime": "image/png", "base64": "aGk="}],
        "notes": ["cached"],
        "save_to_memory": False,
        **flags,
    }


def test_a_failed_result_keeps_its_words_about_the_failure() -> None:
    result = ToolResult(success=False, error="no stock", retryable=True, effect="none", reason="stock")

    assert outcome_of(result) == {
        "success": False,
        "error": "no stock",
        "retryable": True,
        "effect": "none",
        "reason": "stock",
    }


def test_a_result_that_says_nothing_is_a_failure() -> None:
    assert outcome_of(ToolResult()) == {"success": False}


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path", "sentence"),
    [
        ({1}, "", "the value at the top is of type 'set', which is no JSON"),
        (object(), "", "the value at the top is of type 'object', which is no JSON"),
        (b"x", "", "the value at the top is of type 'bytes', which is no JSON"),
        ({"a": [1, {2}]}, "/a/1", "the value at '/a/1' is of type 'set', which is no JSON"),
        ({"a": {1: "x"}}, "/a", "the object at '/a' has a key of type 'int'; JSON keys are text"),
        ({"n": math.nan}, "/n", "the number at '/n' is NaN or infinite, no JSON"),
        ([math.inf], "/0", "the number at '/0' is NaN or infinite, no JSON"),
        ("\ud800", "", "the text at the top holds a lone surrogate, which is no Unicode text"),
        ({"t": "\ud800"}, "/t", "the text at '/t' holds a lone surrogate, which is no Unicode text"),
        (ToolResult(success=True, data={"x": {1}}), "/data/x", "the value at '/data/x' is of type 'set'"),
        (ToolResult(success=True, output="\ud800"), "/output", "the text at '/output' holds a lone surrogate"),
        (Forecast(city="x", high=math.nan), "/high", "the number at '/high' is NaN or infinite, no JSON"),
    ],
)
def test_what_is_no_json_is_output_invalid_at_the_place_of_the_first_bad_value(
    value: object, path: str, sentence: str
) -> None:
    told = fault(value)

    assert (told.kind, told.retry, told.path) == (ErrorKind.OUTPUT_INVALID, "never", path)
    assert told.message.startswith(f"the tool's result was refused: {sentence}")


def test_what_contains_itself_is_output_invalid() -> None:
    assert fault(cyclic()).kind is ErrorKind.OUTPUT_INVALID
    assert fault(cyclic()).message.endswith("contains itself")


def test_what_is_nested_too_deep_is_output_invalid() -> None:
    assert fault(deep()).message.startswith("the tool's result was refused: the value is more than 64 levels deep")
    assert fault(deep()).kind is ErrorKind.OUTPUT_INVALID


@pytest.mark.parametrize(
    "value",
    [
        *("x" * 1_048_577, "é" * 600_000, {"t": "x" * 1_048_577}, list(range(100_001))),
        *(ToolResult(output="x" * 1_048_577), ToolResult(error="é" * 600_000), ToolResult(data="x" * 2_097_153)),
    ],
    ids=["text", "bytes of text", "data", "values", "output", "error", "result"],
)
def test_what_is_too_large_says_the_limit(value: object) -> None:
    told = fault(value)

    assert told.kind is ErrorKind.OUTPUT_TOO_LARGE
    assert told.retry == "never"
    assert any(limit in told.message for limit in ("1048576", "100000", "2097152"))


def test_a_model_whose_serializer_raises_is_output_invalid() -> None:
    class Broken(BaseModel):
        n: int = 1

        @field_serializer("n")
        def _broken(self, n: int) -> int:
            raise ValueError("cannot")

    assert fault(Broken()).kind is ErrorKind.OUTPUT_INVALID
    assert fault(Broken()).message.startswith("the tool's result cannot be read: Error calling function `_broken`")


def test_an_object_that_pretends_to_be_text_is_output_invalid() -> None:
    class Pretender:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            return str

    assert fault(Pretender()).kind is ErrorKind.OUTPUT_INVALID


def test_an_object_whose_class_cannot_be_asked_is_output_invalid() -> None:
    class Hostile:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise SystemExit(3)

    assert fault(Hostile()).message == "the tool's result cannot be read: exited with status 3"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"output": 3}, "its 'output' is a int"),
        ({"success": "yes"}, "its 'success' is a str"),
        ({"notes": "one"}, "its 'notes' is a str"),
        ({"notes": [1]}, "its 'notes' are not all texts"),
        ({"effect": "some"}, "its 'effect' is neither 'none' nor 'unknown'"),
        ({"need_ai_reply": 1}, "its 'need_ai_reply' is a int"),
    ],
)
def test_a_result_with_fields_that_were_never_checked_is_output_invalid(changed: dict[str, Any], sentence: str) -> None:
    built = {"success": True, **changed}

    for result in (ToolResult(success=True).model_copy(update=changed), ToolResult.model_construct(**built)):
        assert fault(result) == Fault(ErrorKind.OUTPUT_INVALID, f"the tool's result cannot be read: {sentence}")


@pytest.mark.parametrize("images", [[Image(url="x").model_copy(update={"url": ""})], ["picture"], 5])
def test_a_result_with_an_image_that_is_none_is_output_invalid(images: Any) -> None:
    result = ToolResult(success=True).model_copy(update={"images": images})

    assert fault(result).kind is ErrorKind.OUTPUT_INVALID
