"""A signature becomes a JSON Schema."""

from __future__ import annotations

import logging
import sys
import typing
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Union

import pytest
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict

from cyrene_sdk import CurrentCall, DefinitionError, HostAPI, PluginConfig, Report, ToolResult
from cyrene_sdk.signature import UnresolvedNameError, read_signature

if TYPE_CHECKING:
    from fractions import Fraction


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Mood(StrEnum):
    FINE = "fine"
    GRIM = "grim"


class Place(BaseModel):
    """A place on Earth."""

    title: str = "here"
    latitude: float = Field(ge=-90, le=90)


class Tree(BaseModel):
    children: list[Tree] = []


@dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict):
    year: int


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("an even number is needed")
    return number


STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
PLACE: dict[str, Any] = {
    "type": "object",
    "description": "A place on Earth.",
    "properties": {
        "title": {"type": "string", "default": "here"},
        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
    },
    "required": ["latitude"],
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}},
}

# annotation: (schema of the parameter, $defs beside it)
ANNOTATIONS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "str": (str, STRING, {}),
    "int": (int, INTEGER, {}),
    "float": (float, {"type": "number"}, {}),
    "bool": (bool, {"type": "boolean"}, {}),
    "any": (Any, {}, {}),
    "text": (Annotated[str, "who"], STRING | {"description": "who"}, {}),
    "field": (
        Annotated[int, Field(gt=0, description="many")],
        INTEGER | {"exclusiveMinimum": 0, "description": "many"},
        {},
    ),
    "text over field": (Annotated[str, "a", Field(description="b")], STRING | {"description": "a"}, {}),
    "text in union": (
        Annotated[str, "who"] | None,
        {"anyOf": [STRING, {"type": "null"}], "description": "who"},
        {},
    ),
    "validator": (Annotated[int, AfterValidator(_even)], INTEGER, {}),
    "literal": (Literal["a", "b"], STRING | {"enum": ["a", "b"]}, {}),
    "one literal": (Literal["a"], STRING | {"const": "a"}, {}),
    "enum": (Colour, {"$ref": "#/$defs/Colour"}, {"Colour": STRING | {"enum": ["red", "blue"]}}),
    "int enum": (Size, {"$ref": "#/$defs/Size"}, {"Size": INTEGER | {"enum": [1, 2]}}),
    "str enum": (Mood, {"$ref": "#/$defs/Mood"}, {"Mood": STRING | {"enum": ["fine", "grim"]}}),
    "optional": (Optional[int], {"anyOf": [INTEGER, {"type": "null"}]}, {}),  # noqa: UP045 - both spellings count
    "union": (Union[int, str], {"anyOf": [INTEGER, STRING]}, {}),  # noqa: UP007 - both spellings count
    "list": (list[str], {"type": "array", "items": STRING}, {}),
    "bare list": (list, {"type": "array", "items": {}}, {}),
    "dict": (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, {}),
    "bare dict": (dict, {"type": "object", "additionalProperties": True}, {}),
    "tuple": (
        tuple[int, str],
        {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
        {},
    ),
    "set": (set[str], {"type": "array", "items": STRING, "uniqueItems": True}, {}),
    "path": (Path, STRING | {"format": "path"}, {}),
    "uuid": (uuid.UUID, STRING | {"format": "uuid"}, {}),
    "datetime": (datetime, STRING | {"format": "date-time"}, {}),
    "date": (date, STRING | {"format": "date"}, {}),
    "model": (Place, {"$ref": "#/$defs/Place"}, {"Place": PLACE}),
    "models": (list[Place], {"type": "array", "items": {"$ref": "#/$defs/Place"}}, {"Place": PLACE}),
    "tree": (Tree, {"$ref": "#/$defs/Tree"}, {"Tree": TREE}),
    "dataclass": (
        Point,
        {"$ref": "#/$defs/Point"},
        {"Point": {"type": "object", "properties": {"x": INTEGER, "y": INTEGER | {"default": 0}}, "required": ["x"]}},
    ),
    "typed dict": (
        Movie,
        {"$ref": "#/$defs/Movie"},
        {"Movie": {"type": "object", "properties": {"year": INTEGER}, "required": ["year"]}},
    ),
}


def _function(annotation: Any, *default: Any) -> Callable[..., None]:
    def sample(value): ...  # type: ignore[no-untyped-def]

    sample.__annotations__ = {"value": annotation}
    sample.__defaults__ = default
    return sample


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_an_annotation_becomes_a_schema(name: str) -> None:
    annotation, expected, definitions = ANNOTATIONS[name]
    schema = read_signature(_function(annotation)).parameters
    assert schema["properties"]["value"] == expected
    assert schema.get("$defs", {}) == definitions
    Draft202012Validator.check_schema(schema)


def test_the_whole_schema_is_a_closed_object_in_the_order_of_the_signature() -> None:
    def sample(name: str, count: int = 1, *, loud: bool) -> None: ...

    assert read_signature(sample).parameters == {
        "type": "object",
        "properties": {"name": STRING, "count": {"type": "integer", "default": 1}, "loud": {"type": "boolean"}},
        "required": ["name", "loud"],
        "additionalProperties": False,
    }
    assert list(read_signature(sample).parameters["properties"]) == ["name", "count", "loud"]


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def sample() -> None: ...

    assert read_signature(sample).parameters == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (str, "x", "x"),
        (int | None, None, None),
        (Colour, Colour.BLUE, "blue"),
        (Path, Path("a/b"), "a/b"),
        (date, date(2026, 1, 2), "2026-01-02"),
        (Point, Point(1), {"x": 1, "y": 0}),
        (Place, Place(latitude=1), {"title": "here", "latitude": 1.0}),
        (list[int], [1], [1]),
        (tuple[int, int], (1, 2), [1, 2]),
    ],
)
def test_a_default_is_shown_as_json(annotation: Any, default: Any, shown: Any) -> None:
    schema = read_signature(_function(annotation, default)).parameters
    assert schema["properties"]["value"]["default"] == shown
    assert "required" not in schema


@pytest.mark.parametrize(
    ("annotation", "default"), [(str, None), (Any, object()), (float, float("nan")), (float, float("inf")), (int, "x")]
)
def test_a_default_that_json_cannot_say_or_the_type_forbids_is_left_out(annotation: Any, default: Any) -> None:
    schema = read_signature(_function(annotation, default)).parameters
    assert "default" not in schema["properties"]["value"]
    assert "required" not in schema


def test_the_docstring_describes_what_annotations_do_not() -> None:
    def sample(city: str, unit: Annotated[str, "C or F"], day: Annotated[str, Field(description="which")]) -> None:
        """Tell the weather.

        Args:
            city: where
            unit: unused
            day: unused
        """

    signature = read_signature(sample)
    assert signature.description == "Tell the weather."
    described = {name: part["description"] for name, part in signature.parameters["properties"].items()}
    assert described == {"city": "where", "unit": "C or F", "day": "which"}


def test_a_property_named_title_survives_although_titles_are_dropped() -> None:
    class Book(BaseModel):
        title: str = Field(title="The Title")

    assert read_signature(_function(Book)).parameters["$defs"]["Book"] == {
        "type": "object",
        "properties": {"title": STRING},
        "required": ["title"],
    }


def test_what_the_host_injects_is_not_asked_of_the_model() -> None:
    def sample(
        name: str,
        report: Report,
        call: CurrentCall | None,
        host: Annotated[HostAPI, "the host"],
        config: PluginConfig,
        log: logging.Logger,
    ) -> None: ...

    signature = read_signature(sample)
    assert list(signature.parameters["properties"]) == ["name"]
    assert signature.injected == {
        "report": Report,
        "call": CurrentCall,
        "host": HostAPI,
        "config": PluginConfig,
        "log": logging.Logger,
    }


def test_text_annotations_find_the_names_around_the_function() -> None:
    class Local(BaseModel):
        size: int

    def sample(value: Local) -> None: ...

    signature = read_signature(sample, {"Local": Local})
    assert signature.parameters["$defs"]["Local"]["properties"] == {"size": INTEGER}
    with pytest.raises(UnresolvedNameError):
        read_signature(sample)


def test_self_is_left_out_and_a_bound_method_needs_nothing_more() -> None:
    class Sample:
        def method(self, name: str) -> None: ...

    assert list(read_signature(Sample.method).parameters["properties"]) == ["name"]
    assert list(read_signature(Sample().method).parameters["properties"]) == ["name"]


@pytest.mark.parametrize(
    ("returned", "schema"),
    [
        (Place, PLACE),
        (Annotated[Place, "where"], PLACE),
        (Movie, {"type": "object", "properties": {"year": INTEGER}, "required": ["year"]}),
        (
            Point,
            {"type": "object", "properties": {"x": INTEGER, "y": INTEGER | {"default": 0}}, "required": ["x"]},
        ),
        (str, {}),
        (None, {}),
        (Any, {}),
        (dict[str, Any], {}),
        (list[Place], {}),
        (ToolResult, {}),
    ],
)
def test_only_a_returned_model_dataclass_or_typed_dict_is_described(returned: Any, schema: dict[str, Any]) -> None:
    def sample() -> None: ...

    sample.__annotations__ = {"return": returned}
    assert read_signature(sample).returns == schema


def _line(function: Callable[..., Any]) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno}"


class Faulty:
    """Methods that cannot be tools."""

    def untyped(self, name: str, count=3) -> None: ...  # type: ignore[no-untyped-def]

    def starred(self, *names: str) -> None: ...

    def double_starred(self, **names: str) -> None: ...

    def positional(self, name: str, /) -> None: ...

    def opaque(self, work: Callable[[], None]) -> None: ...

    def arbitrary(self, thing: Faulty) -> None: ...

    def unknown(self, part: Mapping[str, Fraction]) -> None: ...

    def field_default(self, size: int = Field(3, gt=0)) -> None: ...

    def field_default_inside(self, size: Annotated[int, Field(default=3)]) -> None: ...

    def opaque_result(self) -> Opaque: ...

    def unknown_part(self, half: Half) -> None: ...


class Half(BaseModel):
    part: Fraction


@dataclass
class Opaque:
    work: Callable[[], None]


JSON_MEND = "use JSON types, Literal, an enum, date, Path, UUID, a dataclass, a TypedDict or a pydantic model"
FAULTS = {
    "untyped": (
        "parameter 'count' of tool function 'untyped' has no type",
        "write its type, such as `count: str`; it tells the model what to send",
    ),
    "starred": (
        "parameter '*names' of tool function 'starred' cannot be given by name",
        "name each parameter; a model sends a JSON object with these names",
    ),
    "double_starred": (
        "parameter '**names' of tool function 'double_starred' cannot be given by name",
        "name each parameter; a model sends a JSON object with these names",
    ),
    "positional": (
        "parameter 'name' of tool function 'positional' cannot be given by name",
        "name each parameter; a model sends a JSON object with these names",
    ),
    "opaque": ("parameter 'work' of tool function 'opaque' has a type without a JSON form", JSON_MEND),
    "arbitrary": ("parameter 'thing' of tool function 'arbitrary' has a type without a JSON form", JSON_MEND),
    "unknown": (
        "an annotation of tool function 'unknown' names 'Fraction', which is not defined",
        "import or define 'Fraction' at module level, outside `if TYPE_CHECKING:`",
    ),
    "unknown_part": (
        "parameter 'half' of tool function 'unknown_part' has a type that names something which is not defined",
        "import or define all parts of the type at module level, outside `if TYPE_CHECKING:`",
    ),
    "field_default": (
        "the default of parameter 'size' of tool function 'field_default' stands in a Field",
        'write `size: Annotated[<type>, Field(description="…")] = <default>`',
    ),
    "field_default_inside": (
        "the default of parameter 'size' of tool function 'field_default_inside' stands in a Field",
        'write `size: Annotated[<type>, Field(description="…")] = <default>`',
    ),
    "opaque_result": ("the result of tool function 'opaque_result' has a type without a JSON form", JSON_MEND),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_a_tool_is_refused_with_its_place_and_its_mend(name: str) -> None:
    function = getattr(Faulty, name)
    what, mend = FAULTS[name]
    with pytest.raises(DefinitionError) as refused:
        read_signature(function)
    assert str(refused.value) == f"{what}\n  where: Faulty.{name}, {_line(function)}\n  mend:  {mend}"


def test_an_old_typed_dict_is_refused_with_the_place_of_the_new_one() -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("from Python 3.12 on both work")
    old = typing.TypedDict("old", {"year": int})  # type: ignore[misc]  # noqa: UP013
    with pytest.raises(DefinitionError) as refused:
        read_signature(_function(old))
    assert refused.value.mend == "import TypedDict from typing_extensions (before Python 3.12)"


def test_a_decimal_is_a_number_or_its_text() -> None:
    schema = read_signature(_function(Decimal)).parameters["properties"]["value"]
    assert Draft202012Validator(schema).is_valid("1.50")
    assert Draft202012Validator(schema).is_valid(1.5)
    assert not Draft202012Validator(schema).is_valid([1])
