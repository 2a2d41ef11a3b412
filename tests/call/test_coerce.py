"""Lossless coercion: what is read as the declared type, what is left alone, and what the notes say."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyrene_host.call.coerce import coerce
from cyrene_host.catalog.schemas import CompiledSchema

UNTOUCHED = object()


def read(schema: Any, value: Any, *, required: bool = True) -> Any:
    """What one argument becomes; UNTOUCHED if it stays as it is, and then without a note."""
    whole = {"type": "object", "properties": {"n": schema}, **({"required": ["n"]} if required else {})}
    changed, notes = coerce(CompiledSchema(whole).enforced, {"n": value})
    if not notes:
        assert repr(changed) == repr({"n": value})
        return UNTOUCHED
    return changed.get("n")


INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("schema", "value", "result"),
    [
        (INTEGER, "7", 7),
        (INTEGER, "-7", -7),
        (INTEGER, "0", 0),
        (INTEGER, "9" * 400, int("9" * 400)),
        (INTEGER, 7.0, 7),
        (NUMBER, "7", 7),
        (NUMBER, "1.5", 1.5),
        (NUMBER, "1.50", 1.5),
        (NUMBER, "-0.1", -0.1),
        (NUMBER, "1e3", 1000.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "array"}, ' ["a"]', ["a"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "7", 7),
        ({"oneOf": [INTEGER, {"type": "boolean"}]}, "true", True),
        ({"allOf": [NUMBER, INTEGER]}, "7", 7),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": True}, "true", True),
    ],
)
def test_text_with_one_certain_reading_becomes_it(schema: Any, value: Any, result: Any) -> None:
    changed = read(schema, value)
    assert (type(changed), changed) == (type(result), result)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, "7.5"),
        (INTEGER, "7.0"),
        (INTEGER, "07"),
        (INTEGER, "+7"),
        (INTEGER, " 7"),
        (INTEGER, "-0"),
        (INTEGER, "1e3"),
        (INTEGER, "0x10"),
        (INTEGER, "1_000"),
        (INTEGER, "\u0667"),
        (INTEGER, "9" * 401),
        (INTEGER, ""),
        (INTEGER, 7.5),
        (INTEGER, True),
        (INTEGER, [7]),
        (NUMBER, 7.0),
        (NUMBER, "1e400"),
        (NUMBER, "NaN"),
        (NUMBER, ".5"),
        (NUMBER, "0.10000000000000000000001"),
        ({"type": "boolean"}, "True"),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, 1),
        ({"type": "string"}, 7),
        ({"type": "string"}, True),
        ({"type": "string"}, '{"a": 1}'),
        ({"type": ["integer", "string"]}, "7"),
        ({"anyOf": [INTEGER, {"type": "string"}]}, "7"),
        ({}, "7"),
        (True, "7"),
        ({"type": "array"}, '{"a": 1}'),
        ({"type": "array"}, "[1, 2"),
        ({"type": "array"}, "a, b"),
        ({"type": "array"}, "[NaN]"),
        ({"type": "array"}, '["\\ud800"]'),
        ({"type": "array"}, "[" * 65 + "]" * 65),
        ({"type": "object"}, '{"a": 1, "a": 2}'),
        ({"type": "null"}, "null"),
        ({"type": ["integer", "null"]}, "null"),
        ({"enum": ["c", "f"]}, "C"),
        ({"enum": ["1", "2"]}, 1),
    ],
)
def test_what_is_not_certain_or_not_lossless_stays(schema: Any, value: Any) -> None:
    assert read(schema, value) is UNTOUCHED


@settings(deadline=None)
@given(st.integers(-(10**30), 10**30))
def test_every_integer_is_read_from_its_own_text_only(number: int) -> None:
    assert read(INTEGER, str(number)) == number
    assert read(INTEGER, f"{number}.0") is UNTOUCHED


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_is_read_only_if_nothing_is_lost(number: Decimal) -> None:
    changed = read(NUMBER, str(number))
    assert changed is UNTOUCHED or Decimal(repr(changed)) == number


def test_null_for_an_optional_key_is_left_out() -> None:
    schema = CompiledSchema(
        {"type": "object", "properties": {"a": {"type": "string"}, "b": INTEGER}, "required": ["b"]}
    ).enforced
    assert coerce(schema, {"a": None, "b": 1}) == ({"b": 1}, ["/a: null read as left out"])


@pytest.mark.parametrize("schema", [{"type": ["string", "null"]}, {}, {"anyOf": [INTEGER, {"type": "null"}]}])
def test_null_that_is_allowed_stays(schema: Any) -> None:
    assert read(schema, None, required=False) is UNTOUCHED


def test_null_for_a_required_or_undeclared_key_stays() -> None:
    assert read(INTEGER, None, required=True) is UNTOUCHED
    assert coerce({"additionalProperties": INTEGER}, {"x": None}) == ({"x": None}, [])
    assert coerce({"properties": {}, "additionalProperties": False}, {"x": None}) == ({"x": None}, [])


def test_values_inside_objects_lists_and_references_are_read_too() -> None:
    schema = CompiledSchema(
        {
            "properties": {
                "list": {"type": "array", "items": INTEGER},
                "tuple": {"prefixItems": [INTEGER, {"type": "string"}], "items": {"type": "boolean"}},
                "map": {"type": "object", "additionalProperties": INTEGER},
                "model": {"$ref": "#/$defs/M"},
                "maybe": {"anyOf": [{"$ref": "#/$defs/M"}, {"type": "null"}]},
                "both": {"allOf": [{"$ref": "#/$defs/M"}, {"properties": {"o": INTEGER}}]},
            },
            "$defs": {"M": {"type": "object", "properties": {"n": INTEGER, "m": {"$ref": "#/$defs/M"}}}},
        }
    )
    changed, notes = coerce(
        schema.enforced,
        {
            "list": '["1", 2]',
            "tuple": ["1", "2", "true"],
            "map": {"a/b": "1"},
            "model": {"n": "1", "m": {"n": "2"}},
            "maybe": '{"n": "3"}',
            "both": {"n": "4", "o": "5"},
        },
    )
    assert changed == {
        "list": [1, 2],
        "tuple": [1, "2", True],
        "map": {"a/b": 1},
        "model": {"n": 1, "m": {"n": 2}},
        "maybe": {"n": 3},
        "both": {"n": 4, "o": 5},
    }
    assert schema.is_valid(changed)
    assert "/map/a~1b: text '1' read as the integer 1" in notes
    assert "/maybe/n: text '3' read as the integer 3" in notes


def test_lists_of_schemas_in_draft_07_are_read_by_place() -> None:
    schema = CompiledSchema(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"t": {"type": "array", "items": [INTEGER], "additionalItems": {"type": "boolean"}}},
        }
    )
    assert coerce(schema.enforced, {"t": ["1", "true"]})[0] == {"t": [1, True]}


def test_alternatives_for_one_type_are_not_chosen_between() -> None:
    one, other = ({"type": "object", "properties": {"n": schema}} for schema in (INTEGER, {}))
    assert read({"anyOf": [one, other]}, {"n": "7"}) is UNTOUCHED


def test_notes_show_what_was_read_as_what() -> None:
    schema = {"properties": {"n": INTEGER, "l": {"type": "array"}, "f": INTEGER}}
    _, notes = coerce(schema, {"n": "7", "l": "[1]", "f": 7.0})
    assert notes == [
        "/n: text '7' read as the integer 7",
        "/l: text '[1]' read as an array",
        "/f: the number 7.0 read as the integer 7",
    ]


def test_notes_cut_long_values() -> None:
    _, [note] = coerce({"properties": {"n": INTEGER}}, {"n": "9" * 300})
    assert note == f"/n: text '{'9' * 78}… read as the integer {'9' * 79}…"


def test_notes_of_secret_arguments_show_no_value() -> None:
    schema = {"properties": {"pin": INTEGER, "in": {"properties": {"pin": INTEGER}}}}
    _, notes = coerce(schema, {"pin": "1234", "in": {"pin": "5678"}}, secret=frozenset({"pin", "in"}))
    assert notes == ["/pin: text read as an integer", "/in/pin: text read as an integer"]


def test_there_are_at_most_20_notes_and_a_count_of_the_others() -> None:
    _, notes = coerce({"properties": {"l": {"items": INTEGER}}}, {"l": ["1"] * 100})
    assert len(notes) == 21
    assert notes[-1] == "and 80 more like these"


def test_the_arguments_given_are_not_changed() -> None:
    given_arguments = {"l": ["1"], "o": {"n": "1"}, "x": None}
    before = json.dumps(given_arguments)
    coerce(
        {"properties": {"l": {"items": INTEGER}, "o": {"properties": {"n": INTEGER}}, "x": INTEGER}}, given_arguments
    )
    assert json.dumps(given_arguments) == before


def test_texts_that_pass_a_limit_only_together_stay_texts() -> None:
    text = "[" + "0," * 60_000 + "0]"
    given_arguments = {"a": text, "b": text}
    schema = {"properties": {"a": {"type": "array"}, "b": {"type": "array"}}}
    assert coerce(schema, given_arguments) == (given_arguments, [])
    assert len(coerce(schema, {"a": text})[0]["a"]) == 60_001


def test_a_very_long_chain_of_references_leaves_the_arguments_alone() -> None:
    chain: dict[str, Any] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(1_900)}
    schema = {"properties": {"n": {"$ref": "#/$defs/a0"}}, "$defs": {**chain, "a1900": INTEGER}}
    assert coerce(schema, {"n": "7"}) == ({"n": "7"}, [])
