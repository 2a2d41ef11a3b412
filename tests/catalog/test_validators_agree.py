"""jsonschema as the second opinion: where both agree, and each known difference of docs/dev/validators.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyrene_host.catalog.schemas import CompiledSchema, SchemaInvalidError

PAGE = Path(__file__).parents[2] / "docs" / "dev" / "validators.md"
DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def ours(schema: dict[str, Any], value: object) -> bool | None:
    """Whether the value fits; None if the schema is refused."""
    try:
        return CompiledSchema(schema, close=False).is_valid(value)
    except SchemaInvalidError:
        return None


def theirs(schema: dict[str, Any], value: object) -> bool | None:
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator.check_schema(schema)
        return bool(validator(schema).is_valid(value))
    except (jsonschema.SchemaError, jsonschema.exceptions._WrappedReferencingError):
        return None


AGREEING: dict[str, tuple[dict[str, Any], object, bool | None]] = {
    "1.0 is an integer": ({"type": "integer"}, 1.0, True),
    "1.5 is no integer": ({"type": "integer"}, 1.5, False),
    "true is no integer": ({"type": "integer"}, True, False),
    "an integer of 401 digits": ({"type": "integer"}, 10**400, True),
    "a maximum for it": ({"maximum": 10}, 10**400, False),
    "formats are remarks": ({"format": "date-time"}, "nope", True),
    "a pattern is searched for": ({"pattern": "b"}, "abc", True),
    "length counts characters": ({"minLength": 2}, "😀", False),
    "1 and 1.0 are one constant": ({"const": 1}, 1.0, True),
    "1 and true are two constants": ({"const": 1}, True, False),
    "0 and false are two options": ({"enum": [0]}, False, False),
    "1 and true are unique": ({"uniqueItems": True}, [1, True], True),
    "1 and 1.0 are not unique": ({"uniqueItems": True}, [1, 1.0], False),
    "objects are equal in any order": ({"const": {"a": 1, "b": 2}}, {"b": 2, "a": 1}, True),
    "items of draft-07": ({**DRAFT_07, "items": [{"type": "string"}]}, [1], False),
    "prefixItems of 2020-12": ({"prefixItems": [{"type": "string"}]}, [1], False),
    "a reference with company": ({"$ref": "#/$defs/a", "minimum": 5, "$defs": {"a": {}}}, 3, False),
    "a reference in draft-07 has none": (
        {**DRAFT_07, "$ref": "#/definitions/a", "minimum": 5, "definitions": {"a": {}}},
        3,
        True,
    ),
    "unevaluatedProperties": ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"b": 2}, False),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, False),
    "if and then": ({"if": {"type": "integer"}, "then": {"minimum": 5}}, 3, False),
    "contains with bounds": ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], False),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, False),
    "a type that does not exist": ({"type": "strin"}, 1, None),
    "a reference to nothing": ({"$ref": "#/$defs/none"}, 1, None),
    "properties that are no object": ({"properties": []}, {}, None),
}

# case: schema, value, what we say, what jsonschema says.
DIFFERENT: dict[str, tuple[dict[str, Any], object, bool | None, bool | None]] = {
    "multipleOf with fractions": ({"multipleOf": 0.1}, 0.3, True, False),
    "digits of other scripts": ({"pattern": "^\\d$"}, "\u0663", False, True),
    "$ before a line break": ({"pattern": "^a$"}, "a\n", False, True),
    "Unicode classes": ({"pattern": "^\\p{L}+$"}, "abc", True, None),
    "look-around": ({"pattern": "(?<=a)b"}, "ab", None, True),
    "back-references": ({"pattern": "(a)\\1"}, "aa", None, True),
    "\\Z": ({"pattern": "a\\Z"}, "a", None, True),
    "an unknown dialect": ({"$schema": "urn:none", "type": "string"}, 1, None, False),
    "references by anchor": ({"$ref": "#a", "$defs": {"x": {"$anchor": "a", "type": "string"}}}, 1, None, False),
    "a document inside": ({"properties": {"a": {"$id": "urn:x", "type": "string"}}}, {"a": 1}, None, False),
    "a tuple": ({"type": "array"}, (1, 2), True, False),
    "NaN": ({"type": "number"}, float("nan"), False, True),
}


@pytest.mark.parametrize(("schema", "value", "verdict"), AGREEING.values(), ids=AGREEING)
def test_both_validators_agree(schema: dict[str, Any], value: object, verdict: bool | None) -> None:
    assert (ours(schema, value), theirs(schema, value)) == (verdict, verdict)


@pytest.mark.parametrize(("schema", "value", "our", "their"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_known_difference_is_still_there(
    schema: dict[str, Any], value: object, our: bool | None, their: bool | None
) -> None:
    assert (ours(schema, value), theirs(schema, value)) == (our, their)


def test_every_known_difference_is_written_down() -> None:
    words = {True: "fits", False: "does not fit", None: "schema refused"}
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    written = {case: (our, their) for case, our, their in rows[1:]}
    assert written == {case: (words[our], words[their]) for case, (_, _, our, their) in DIFFERENT.items()}


NAMES = st.sampled_from("ab")
SCALARS = st.sampled_from([0, 1, 1.0, 2.5, "", "x", True, False, None])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=6
)
LEAVES = st.sampled_from(
    [
        {},
        True,
        False,
        {"type": "integer"},
        {"type": ["string", "null"]},
        {"enum": [1, "x", None]},
        {"const": 0},
        {"minimum": 1},
        {"maxLength": 0},
        {"minItems": 1},
        {"uniqueItems": True},
        {"required": ["a"]},
        {"minProperties": 1},
        {"$ref": "#/$defs/tree"},
    ]
)


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    one = st.sampled_from(["items", "not", "contains", "additionalProperties", "unevaluatedProperties", "if", "then"])
    many = st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"])
    return st.dictionaries(one, inner, min_size=1, max_size=3) | st.builds(
        lambda keyword, subs, properties: {keyword: subs, "properties": properties},
        many,
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(NAMES, inner, max_size=2),
    )


@settings(deadline=None, max_examples=150)
@given(st.recursive(LEAVES, _composed, max_leaves=6), VALUES)
def test_both_validators_agree_on_made_up_schemas(inner: Any, value: object) -> None:
    tree = {"properties": {"a": {"$ref": "#/$defs/tree"}}, "items": {"$ref": "#/$defs/tree"}}
    schema = {"allOf": [inner], "$defs": {"tree": tree}}
    assert ours(schema, value) is theirs(schema, value)
