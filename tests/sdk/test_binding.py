"""Checked JSON arguments become keyword arguments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cyrene_sdk import ArgumentError
from cyrene_sdk.binding import Binder
from cyrene_sdk.signature import read_signature


class Colour(Enum):
    RED = "red"


class Place(BaseModel):
    model_config = ConfigDict(strict=True)
    latitude: float = Field(ge=-90, le=90)
    since: date | None = None


class Dog(BaseModel):
    kind: Literal["dog"]


class Cat(BaseModel):
    kind: Literal["cat"]


@dataclass
class Point:
    x: int


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("an even number is needed")
    return number


def _binder(annotation: Any) -> Binder:
    def sample(value): ...  # type: ignore[no-untyped-def]

    sample.__annotations__ = {"value": annotation}
    return read_signature(sample).bind


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (str, "x"),
        (int, 3),
        (bool, True),
        (float, 1.5),
        (Any, {"a": [1]}),
        (Annotated[str, "text"], "x"),
        (Annotated[str, Field(description="text")], "x"),
        (Literal["a", 1], 1),
        (list, [1]),
        (list[str], ["a"]),
        (dict[str, int], {"a": 1}),
        (list[dict[str, list[int]]], [{"a": [1]}]),
        (int | None, None),
        (list[float | int], [1]),
    ],
)
def test_plain_json_passes_through_untouched(annotation: Any, given: Any) -> None:
    binder = _binder(annotation)
    assert not binder.converts
    assert binder({"value": given})["value"] is given


@pytest.mark.parametrize(
    ("annotation", "given", "made"),
    [
        (float, 1, 1.0),
        (int, 3.0, 3),
        (list[float], [1, 2.5], [1.0, 2.5]),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (float | None, 1, 1.0),
        (Path, "a/b", Path("a/b")),
        (date, "2026-01-02", date(2026, 1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[str], ["a"], {"a"}),
        (Colour, "red", Colour.RED),
        (Point, {"x": 1}, Point(1)),
        (list[Point], [{"x": 1}], [Point(1)]),
        (Place, {"latitude": 1, "since": "2026-01-02"}, Place(latitude=1.0, since=date(2026, 1, 2))),
        (Annotated[int, AfterValidator(_even)], 4, 4),
        (None, None, None),
    ],
)
def test_anything_else_becomes_the_python_value(annotation: Any, given: Any, made: Any) -> None:
    bound = _binder(annotation)({"value": given})["value"]
    assert bound == made
    assert type(bound) is type(made)
    assert repr(bound) == repr(made)


def test_the_arguments_themselves_are_left_alone_and_defaults_are_left_to_the_function() -> None:
    def sample(path: Path, count: int = 3) -> None: ...

    arguments = {"path": "a"}
    assert read_signature(sample).bind(arguments) == {"path": Path("a")}
    assert arguments == {"path": "a"}


FAULTS: list[tuple[Any, dict[str, Any], str, str]] = [
    (str, {}, "argument 'value' is missing", "/value"),
    (str, {"value": "x", "valve": 1}, "there is no argument 'valve'", "/valve"),
    (str, {"value": 7}, "argument 'value': Input should be a valid string", "/value"),
    (Annotated[int, Field(gt=0)], {"value": 0}, "argument 'value': Input should be greater than 0", "/value"),
    (Annotated[int, AfterValidator(_even)], {"value": 3}, "argument 'value': an even number is needed", "/value"),
    (
        Place,
        {"value": {"latitude": 91.5}},
        "argument 'value', at /value/latitude: Input should be less than or equal to 90",
        "/value/latitude",
    ),
    (Place, {"value": {}}, "argument 'value', at /value/latitude: Field required", "/value/latitude"),
    (
        dict[str, list[Place]],
        {"value": {"a/b~c": [{"latitude": 1}, {"latitude": "x"}]}},
        "argument 'value', at /value/a~1b~0c/1/latitude: Input should be a valid number",
        "/value/a~1b~0c/1/latitude",
    ),
    (
        Place | list[Place],
        {"value": {"latitude": 91}},
        "argument 'value', at /value/latitude: Input should be less than or equal to 90",
        "/value/latitude",
    ),
    (
        Annotated[Dog | Cat, Field(discriminator="kind")],
        {"value": {"kind": "secret"}},
        "argument 'value': Input should have one of the tags 'dog', 'cat'",
        "/value",
    ),
]


@pytest.mark.parametrize(("annotation", "arguments", "message", "path"), FAULTS)
def test_a_fault_is_told_with_its_place_and_without_the_value(
    annotation: Any, arguments: dict[str, Any], message: str, path: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        _binder(annotation)(arguments)
    assert (str(refused.value), refused.value.path) == (message, path)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
