"""Tool schemas: which are refused at load, what closing takes and refuses, and what faults say."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyrene_host.catalog.schemas import CompiledSchema, Fault, SchemaInvalidError, lookup

Slow = Callable[[float], float]


DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def refused(schema: Any) -> SchemaInvalidError:
    with pytest.raises(SchemaInvalidError) as caught:
        CompiledSchema(schema)
    return caught.value


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def nested(keyword: str, levels: int, wrap: Any = lambda inner: inner) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"end": {}}}
    for _ in range(levels):
        schema = {keyword: wrap(schema)}
    return schema


# What is refused at load


@pytest.mark.parametrize(
    ("schema", "what", "where"),
    [
        ([], "the schema is of type 'list', not an object", ""),
        ({"type": "array"}, 'the arguments of a tool are an object, the schema says "array"', "/type"),
        (obj(a={"type": "strin"}), 'the schema breaks JSON Schema: "strin" cannot stand here', "/properties/a/type"),
        (
            obj(a={"minimum": "x"}),
            'the schema breaks JSON Schema: "x" is not of type "number"',
            "/properties/a/minimum",
        ),
        (
            {"allOf": [obj(a={"type": "strin"}), obj(b={})]},
            'the schema breaks JSON Schema: "strin" cannot stand here',
            "/allOf/0/properties/a/type",
        ),
        (
            {"allOf": [{"patternProperties": {"(": {}}}, obj(b={})]},
            'the pattern "(" is no regular expression that matches in linear time',
            "/allOf/0/patternProperties/(",
        ),
        ({"properties": []}, 'the schema breaks JSON Schema: [] is not of type "object"', "/properties"),
        (
            obj(a={"$ref": "http://127.0.0.1:9/evil.json"}),
            "the reference 'http://127.0.0.1:9/evil.json' leads out of the schema",
            "/properties/a/$ref",
        ),
        (
            obj(a={"items": {"$ref": "file:///etc/hostname"}}),
            "the reference 'file:///etc/hostname' leads out of the schema",
            "/properties/a/items/$ref",
        ),
        (obj(a={"$ref": "#name"}), "the reference '#name' leads out of the schema", "/properties/a/$ref"),
        (obj(a={"$ref": "#/$defs/None"}), "the reference '#/$defs/None' leads to nothing", "/properties/a/$ref"),
        (
            {**obj(a={"$ref": "#/required/0/x"}), "required": ["a"]},
            "the reference '#/required/0/x' leads to nothing",
            "/properties/a/$ref",
        ),
        (obj(a={"$dynamicRef": "#/$defs/a"}), "the schema uses '$dynamicRef'", "/properties/a/$dynamicRef"),
        (obj(a={"$id": "http://x/y"}), "a '$id' inside the schema begins another document", "/properties/a/$id"),
        ({"$ref": "#"}, "the reference '#' leads back to itself and consumes nothing", "/$ref"),
        (
            obj(a={"pattern": "(?<=a)b"}),
            'the pattern "(?<=a)b" is no regular expression that matches in linear time',
            "/properties/a/pattern",
        ),
        (
            {"patternProperties": {"(a)\\1": {}}},
            'the pattern "(a)\\\\1" is no regular expression that matches in linear time',
            "/patternProperties/(a)\\1",
        ),
        (obj(a={"pattern": "a" * 513}), "a pattern has 513 characters, more than 512", "/properties/a/pattern"),
        (obj(a={"description": "x" * 65_536}), "the schema has 65591 bytes, more than 65536", ""),
        (obj(**{f"a{i}": {} for i in range(2_001)}), "the schema has more than 2000 schemas inside it", "/properties"),
    ],
)
def test_a_schema_that_breaks_a_rule_is_refused_with_its_place(schema: Any, what: str, where: str) -> None:
    error = refused(schema)
    assert (error.what, error.where) == (what, where)
    assert error.mend


def test_a_refusal_prints_its_parts() -> None:
    assert str(refused(obj(a={"$ref": "other.json#/x"}))) == (
        "the reference 'other.json#/x' leads out of the schema\n"
        "  where: /properties/a/$ref\n"
        "  mend:  put the shared part under '$defs' and refer to it as '#/$defs/Name'; nothing is ever fetched"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", object()])
def test_a_schema_that_is_no_json_is_refused(value: object) -> None:
    assert refused(obj(a={"default": value})).what.startswith("the schema is no JSON: ")


def test_an_unknown_dialect_is_refused() -> None:
    error = refused({"$schema": "urn:none"})
    assert error.what.startswith("the schema's dialect is unknown: ")
    assert error.where == "/$schema"


@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        {"a": {"allOf": [{"type": "object"}, {"anyOf": [{"$ref": "#/$defs/a"}]}]}},
        {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}},
        {"a": {"dependentSchemas": {"x": {"$ref": "#/$defs/a"}}}},
        {"a": {"$ref": "#/$defs/b/oneOf/0"}, "b": {"oneOf": [{"else": {"$ref": "#/$defs/a"}}]}},
    ],
)
def test_a_reference_loop_that_consumes_nothing_is_refused(definitions: dict[str, Any]) -> None:
    error = refused({**obj(x={"$ref": "#/$defs/a"}), "$defs": definitions})
    assert error.what.endswith("leads back to itself and consumes nothing")


def test_a_loop_outside_the_known_keywords_is_found_too() -> None:
    schema = {**obj(x={"$ref": "#/components/a"}), "components": {"a": {"allOf": [{"$ref": "#/components/a"}]}}}
    assert refused(schema).what == "the reference '#/components/a' leads back to itself and consumes nothing"


def test_a_reference_outside_the_known_keywords_is_followed_and_checked() -> None:
    schema = {**obj(x={"$ref": "#/components/a"}), "components": {"a": {"$ref": "http://127.0.0.1:9/"}}}
    assert refused(schema).what == "the reference 'http://127.0.0.1:9/' leads out of the schema"


KEYWORDS = [
    *("type", "enum", "const", "multipleOf", "maximum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
    *("maxItems", "minItems", "uniqueItems", "maxContains", "maxProperties", "required", "dependentRequired"),
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "items", "prefixItems", "contains"),
    *("additionalItems", "unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "then"),
    *("dependentSchemas", "dependencies", "$defs", "definitions", "$schema", "$id", "id", "$anchor", "$dynamicAnchor"),
    *("$ref", "$dynamicRef", "$recursiveAnchor", "$vocabulary", "$comment", "title", "default", "examples", "format"),
    *("contentEncoding", "contentSchema", "x-a"),
]
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.0, 1.5, 2**53 + 1, 2**64, -(2**64), 10**30, 1e300, 5e-324, "", "a", "string", "date"),
    *("(", "a(?=b)", "#", "#a", "#/x", "#/$defs/b", "#/$defs/c", "#/%24defs/b", "#/type", "http://127.0.0.1:9/"),
    *([], [1], ["a"], ["a", "a"], ["string", "string"], [{}], [True], [{"type": "foo"}], [[]], {}, {"a": 1}, {"a": {}}),
    *({"a": True}, {"a": {"type": "foo"}}, {"a": ["b", "b"]}, {"(": {}}, {"a": {"minLength": 1e300}}, {"$id": "x"}),
    *({"a": {"$anchor": "b"}, "b": {"$anchor": "b"}}, {"pattern": "("}, {"items": {"pattern": "a(?!b)"}}),
]


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("close", [True, False])
def test_what_is_not_refused_when_it_is_loaded_compiles_when_it_is_used(keyword: str, close: bool) -> None:
    for value in ODD_VALUES:
        odd = {keyword: value}
        for schema in (
            odd,
            obj(a=odd),
            {"anyOf": [odd, obj(a=odd)]},
            {**obj(a={"$ref": "#/$defs/b"}), "$defs": {"b": odd}},
        ):
            try:
                loaded = CompiledSchema(schema, close=close)
            except SchemaInvalidError:
                continue
            assert loaded.is_valid({"a": 1}) in (True, False)


def test_recursion_that_consumes_is_fine() -> None:
    tree = obj(label={"type": "string"}, children={"type": "array", "items": {"$ref": "#"}})
    schema = CompiledSchema(tree)
    assert schema.is_valid({"label": "a", "children": [{"label": "b", "children": []}]})
    assert not schema.is_valid({"label": "a", "children": [{"label": 1}]})
    assert not schema.is_valid({"label": "a", "children": [{"zz": 1}]})


@pytest.mark.parametrize(
    "schema",
    [
        nested("allOf", 5_000, lambda inner: [inner]),
        nested("items", 32),
        nested("properties", 32, lambda inner: {"p": inner}),
    ],
    ids=["5000 allOf", "33 items", "33 properties"],
)
def test_a_schema_nested_too_deeply_is_refused(schema: dict[str, Any], slow: Slow) -> None:
    started = time.process_time()
    assert refused(schema).what == "the schema is more than 32 schemas deep"
    assert time.process_time() - started < slow(0.5)


def test_the_deepest_schema_that_fits_compiles() -> None:
    assert CompiledSchema(nested("allOf", 31, lambda inner: [inner])).is_valid({"end": 1})


def test_a_schema_of_ten_megabytes_is_refused_soon(slow: Slow) -> None:
    started = time.process_time()
    assert refused(obj(a={"description": "x" * 10_000_000})).what == "the schema has 10000055 bytes, more than 65536"
    assert time.process_time() - started < slow(0.5)


def test_branches_that_multiply_are_refused_instead_of_closed_for_ever(slow: Slow) -> None:
    # The classic automaton of n states whose deterministic form has 2**n.
    steps = {f"s{i}": obj(a={"$ref": f"#/$defs/s{i + 1}"}, b={"$ref": f"#/$defs/s{i + 1}"}) for i in range(1, 20)}
    again = {"$ref": "#/$defs/s0"}
    steps["s0"] = {"allOf": [obj(a=again, b=again), obj(a={"$ref": "#/$defs/s1"})]}
    started = time.process_time()
    assert "too many branches" in refused({**again, "$defs": {**steps, "s20": obj(end={})}}).what
    assert time.process_time() - started < slow(1)


def _chain(length: int, link: Any) -> dict[str, Any]:
    """A recursive schema that takes `length` schemas to come down one level."""
    links = {f"a{i}": link({"$ref": f"#/$defs/a{i + 1}"}) for i in range(length)}
    end = obj(n={"$ref": "#/$defs/a0"})
    return {**obj(n={"$ref": "#/$defs/a0"}), "$defs": {**links, f"a{length}": end}}


@pytest.mark.parametrize("link", [lambda ref: ref, lambda ref: {"anyOf": [ref, {"type": "null"}]}])
def test_a_chain_of_references_may_be_long_but_not_too_long(link: Any) -> None:
    error = refused(_chain(1_900, link) if link({}) == {} else _chain(40, link))
    assert error.what.endswith("leads through more than 32 schemas to one value")
    value: dict[str, Any] = {}
    for _ in range(62):
        value = {"n": value}
    schema = CompiledSchema(_chain(15, link))
    assert schema.is_valid(value)
    assert not schema.is_valid({"n": {"zz": 1}})


def test_a_pattern_that_backtracks_elsewhere_is_checked_in_no_time(slow: Slow) -> None:
    schema = CompiledSchema(obj(a={"type": "string", "pattern": "^(a+)+$"}))
    started = time.process_time()
    assert not schema.is_valid({"a": "a" * 40 + "!"})
    assert schema.is_valid({"a": "a" * 100_000})
    assert time.process_time() - started < slow(0.5)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": ["object", "null"]}, {"properties": {}}])
def test_a_schema_without_properties_takes_no_arguments(schema: dict[str, Any]) -> None:
    compiled = CompiledSchema(schema)
    assert compiled.is_valid({})
    assert not compiled.is_valid({"x": 1})


def test_tuples_and_other_mappings_are_read_as_the_json_they_become() -> None:
    schema = CompiledSchema(MappingProxyType(obj(unit={"enum": ("c", "f")})))
    assert schema.enforced["properties"]["unit"]["enum"] == ["c", "f"]
    assert schema.is_valid({"unit": "c"})


def test_the_plugin_s_own_schema_is_not_changed() -> None:
    schema = {
        **obj(a={"anyOf": [{"$ref": "#/$defs/A"}, obj(y={})]}, b=obj(c={})),
        "$defs": {"A": obj(x={})},
        "$schema": DRAFT_07,
    }
    before = copy.deepcopy(schema)
    CompiledSchema(schema)
    assert schema == before


def test_formats_are_remarks() -> None:
    for dialect in ({}, {"$schema": DRAFT_07}):
        assert CompiledSchema({**dialect, **obj(a={"format": "date"})}).is_valid({"a": "nope"})


def test_results_are_checked_as_the_plugin_wrote_it() -> None:
    assert CompiledSchema({"type": "array", "items": obj(a={})}, close=False).is_valid([{"a": 1, "b": 2}])
    assert CompiledSchema({"type": "integer"}, close=False).enforced == {"type": "integer"}


# What closing takes and refuses

A = obj(x={"type": "integer"})
B = obj(y={"type": "string"})

CLOSING: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "nested objects": (
        obj(entities={"type": "array", "items": obj(name={}, at=obj(x={}))}),
        [{"entities": [{"name": "a", "at": {"x": 1}}]}, {}],
        [{"entities": [{"zz": 1}]}, {"entities": [{"at": {"y": 1}}]}, {"zz": 1}],
    ),
    "free-form objects": (
        obj(a={"type": "object"}, b={"type": "object", "properties": {}}, c={}),
        [{"a": {"any": 1}, "b": {"any": 1}, "c": {"any": {"any": 1}}}],
        [{"d": 1}],
    ),
    "objects that say it themselves": (
        {**obj(a={**A, "additionalProperties": True}, b={**A, "additionalProperties": B}), "additionalProperties": {}},
        [{"a": {"zz": 1}, "b": {"zz": {"y": "1"}}, "zz": 1}],
        [{"b": {"zz": {"zz": 1}}}],
    ),
    "unevaluatedProperties": (
        {**obj(a={}), "unevaluatedProperties": {"type": "integer"}},
        [{"a": "x", "b": 1}],
        [{"b": "x"}],
    ),
    "patterns declare": (
        {"properties": {"a": {}, "o": {"patternProperties": {"^x-": {}}}}, "patternProperties": {"^x-": {}}},
        [{"a": 1, "x-b": 1, "o": {"x-1": 1}}],
        [{"b": 1}, {"o": {"b": 1}}],
    ),
    "a pattern and a name for one object": (
        {"properties": {"x-a": A}, "patternProperties": {"^x-": B, "a$": obj(z={})}},
        [{"x-a": {"x": 1, "y": "1", "z": 1}, "x-b": {"y": "1"}, "ba": {"z": 1}}],
        [{"x-a": {"w": 1}}, {"x-b": {"w": 1}}, {"b": {}}],
    ),
    "a root union": (
        {"oneOf": [{**A, "required": ["x"]}, {**B, "required": ["y"]}]},
        [{"x": 1}, {"y": "1"}],
        [{"x": 1, "zz": 1}, {}, {"x": "1"}],
    ),
    "a key of the branch that does not hold": (
        {"anyOf": [{**A, "required": ["x"]}, {**B, "required": ["y"]}]},
        [{"x": 1, "y": 3}, {"y": "1", "x": "1"}],
        [{"x": 1, "z": 1}],
    ),
    "allOf of two": (obj(m={"allOf": [A, B]}), [{"m": {"x": 1, "y": "1"}}], [{"m": {"x": 1, "z": 1}}]),
    "one object described in two branches": (
        {"allOf": [obj(p=A), obj(p=B)]},
        [{"p": {"x": 1, "y": "1"}}],
        [{"p": {"z": 1}}, {"q": 1}],
    ),
    "an optional model": (
        {**obj(m={"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "default": None}), "$defs": {"A": A}},
        [{"m": None}, {"m": {"x": 1}}, {}],
        [{"m": {"x": 1, "z": 1}}],
    ),
    "a model or any object": (
        obj(m={"anyOf": [A, {"minProperties": 2}]}),
        [{"m": {"x": 1}}, {"m": {"x": 1}}],
        [{"m": {"z": 1, "w": 1}}],
    ),
    "beside a reference": (
        {**obj(m={"$ref": "#/$defs/A", "properties": {"y": {}}, "description": "d"}), "$defs": {"A": A}},
        [{"m": {"x": 1, "y": 2}}],
        [{"m": {"z": 1}}],
    ),
    "a root reference": (
        {"$ref": "#/$defs/A", "$defs": {"A": A}, "description": "d"},
        [{"x": 1}, {}],
        [{"x": 1, "z": 1}, {"x": "1"}],
    ),
    "a root reference in draft-07, where nothing counts beside it": (
        {"$schema": DRAFT_07, "$ref": "#/definitions/A", "definitions": {"A": A}},
        [{"x": 1}],
        [{"x": 1, "z": 1}, {"x": "1"}],
    ),
    "definitions of draft-07": (
        {"$schema": DRAFT_07, **obj(m={"$ref": "#/definitions/A"}), "definitions": {"A": A}},
        [{"m": {"x": 1}}],
        [{"m": {"z": 1}}, {"z": 1}],
    ),
    "conditions keep their meaning": (
        {
            "properties": {"kind": {}},
            "if": {"properties": {"kind": {"const": "a"}, "in": obj(k={"const": 1})}},
            "then": {"properties": {"x": {"type": "integer"}}},
            "else": {"properties": {"y": {}}},
        },
        [{"kind": "a", "x": 1}, {"kind": "b", "y": 1, "x": "1"}, {"kind": "a", "in": {"k": 1}, "x": 1}],
        [{"kind": "a", "x": "1"}, {"kind": "a", "z": 1}, {"in": {"l": 1}}],
    ),
    "not keeps its meaning": (
        {**obj(a={}, b={}), "not": obj(a={"const": 1}, c={})},
        [{"a": 2, "b": 1}],
        [{"a": 1, "b": 1}, {"a": 2, "c": 1}],
    ),
    "dependent schemas": (
        {**obj(a={}), "dependentSchemas": {"a": B}},
        [{"a": 1, "y": "1"}],
        [{"a": 1, "y": 1}, {"a": 1, "z": 1}],
    ),
    "dependencies of draft-07": (
        {"$schema": DRAFT_07, **obj(a={}, b={}), "dependencies": {"a": B, "b": ["a"]}},
        [{"a": 1, "y": "1"}],
        [{"a": 1, "z": 1}, {"b": 1}],
    ),
    "items described twice": (
        obj(l={"allOf": [{"items": A}, {"items": B}]}, c={"items": A, "contains": B}),
        [{"l": [{"x": 1, "y": "1"}], "c": [{"x": 1, "y": "1"}]}],
        [{"l": [{"z": 1}]}, {"c": [{"z": 1}]}],
    ),
    "tuples": (
        obj(t={"prefixItems": [A, B], "items": obj(z={})}),
        [{"t": [{"x": 1}, {"y": "1"}, {"z": 1}]}],
        [{"t": [{"y": "1"}]}, {"t": [{}, {"x": 1}]}, {"t": [{}, {}, {"x": 1}]}],
    ),
    "required keys count as declared": (
        {**obj(a={}), "required": ["b"]},
        [{"b": 1}, {"a": 1, "b": 1}],
        [{"a": 1}, {"b": 1, "c": 1}],
    ),
    "recursion beside a branch": (
        obj(label={}, kids={"items": {"allOf": [{"$ref": "#"}, obj(extra={})]}}),
        [{"label": 1, "kids": [{"extra": 1, "label": 2, "kids": [{"extra": 1}]}]}],
        [{"extra": 1}, {"kids": [{"zz": 1}]}, {"kids": [{"kids": [{"zz": 1}]}]}],
    ),
    "conditions that declare nothing": ({"if": {"pattern": "x"}}, [{}], [{"a": 1}]),
    "a branch that is open": (
        {"anyOf": [{**A, "additionalProperties": True}, B]},
        [{"x": 1, "zz": 1}],
        [{"x": "1", "y": 1}],
    ),
    "other keys of one branch": (
        {"allOf": [{"properties": {"p": A}, "additionalProperties": B}, {"properties": {"q": {}}}]},
        [{"p": {"x": 1}, "r": {"y": "1"}}],
        [{"p": {"x": 1, "y": "1"}}, {"r": {"x": 1}}],
    ),
    "a branch that only requires": ({"allOf": [A, {"required": ["b"]}]}, [{"b": 1}], [{"x": 1}, {"b": 1, "c": 1}]),
    "a name for the document": (
        {"$id": "http://x/y", "anyOf": [{"$ref": "#/$defs/A"}, B], "$defs": {"A": A}},
        [{"x": 1}, {"y": "1"}],
        [{"z": 1}],
    ),
    "a reference out of the usual places": (
        {**obj(m={"$ref": "#/x-models/A~1b%25"}), "x-models": {"A/b%": A}},
        [{"m": {"x": 1}}],
        [{"m": {"z": 1}}],
    ),
}


@pytest.mark.parametrize(("schema", "fitting", "unfit"), CLOSING.values(), ids=CLOSING)
def test_closing_takes_declared_keys_and_refuses_others(
    schema: dict[str, Any], fitting: list[Any], unfit: list[Any]
) -> None:
    closed = CompiledSchema(schema)
    assert [value for value in fitting if not closed.is_valid(value)] == []
    assert [value for value in unfit if closed.is_valid(value)] == []
    again = CompiledSchema(closed.enforced, close=False)
    assert [value for value in unfit if again.is_valid(value)] == []


def test_a_simple_schema_is_closed_where_it_stands() -> None:
    assert CompiledSchema(obj(a=obj(b={}))).enforced == {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {}}, "additionalProperties": False}},
        "additionalProperties": False,
    }


NAMES = st.sampled_from("abcd")
LEAVES = st.sampled_from([{}, {"type": "integer"}, {"type": "object"}, {"const": 1}, True])
REFERENCES = st.sampled_from([{"$ref": "#/$defs/M"}, {"$ref": "#/$defs/N"}])


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.fixed_dictionaries({"properties": st.dictionaries(NAMES, inner, min_size=1, max_size=3)})
    lists = st.fixed_dictionaries({"items": inner})
    branches = st.builds(
        lambda keyword, subs, beside: {**beside, keyword: subs},
        st.sampled_from(["allOf", "anyOf", "oneOf"]),
        st.lists(inner, min_size=1, max_size=3),
        objects | st.just({}),
    )
    conditions = st.builds(lambda i, t, o: {**o, "if": i, "then": t}, inner, inner, objects)
    return objects | lists | branches | conditions


SCHEMAS = st.recursive(LEAVES | REFERENCES, _composed, max_leaves=8)
DEFINITIONS = st.fixed_dictionaries({"M": st.recursive(LEAVES, _composed, max_leaves=4), "N": st.just(obj(a={}))})
VALUES = st.recursive(
    st.sampled_from([1, "x", None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def _declared(root: Mapping[str, Any], schemas: list[Any]) -> tuple[list[Any], bool]:
    """All schemas in place among these, and whether any declares keys: written anew, plainly, as the oracle."""
    found = [schema for schema in schemas if isinstance(schema, dict)]
    for schema in found:  # grows while it is read
        found += [sub for key in ("allOf", "anyOf", "oneOf") for sub in schema.get(key, ()) if isinstance(sub, dict)]
        found += [schema[key] for key in ("if", "then") if isinstance(schema.get(key), dict)]
        if "$ref" in schema and isinstance(target := lookup(root, schema["$ref"]), dict):
            found.append(target)
    return found, any(schema.get("properties") for schema in found)


def _uses_declared_keys_only(root: Mapping[str, Any], schemas: list[Any], value: Any, *, is_root: bool = False) -> bool:
    found, has_keys = _declared(root, schemas)
    if isinstance(value, list):
        items = [schema["items"] for schema in found if "items" in schema]
        return all(_uses_declared_keys_only(root, items, entry) for entry in value)
    if not isinstance(value, dict):
        return True
    subs = {key: [s["properties"][key] for s in found if key in s.get("properties", ())] for key in value}
    if (has_keys or is_root) and not all(subs.values()):
        return False
    return all(_uses_declared_keys_only(root, subs[key], entry) for key, entry in value.items())


@settings(deadline=None, max_examples=400)
@given(st.dictionaries(NAMES, SCHEMAS, max_size=3), SCHEMAS, DEFINITIONS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_closed_is_open_with_declared_keys_only(
    properties: dict[str, Any], branch: Any, definitions: dict[str, Any], value: dict[str, Any]
) -> None:
    schema = {"properties": properties, "allOf": [branch], "$defs": definitions}
    expected = CompiledSchema(schema, close=False).is_valid(value) and _uses_declared_keys_only(
        schema, [schema], value, is_root=True
    )
    assert CompiledSchema(schema).is_valid(value) is expected


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(NAMES, SCHEMAS, max_size=3), DEFINITIONS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_closed_is_open_with_declared_keys_only_where_no_branch_is_at_the_root(
    properties: dict[str, Any], definitions: dict[str, Any], value: dict[str, Any]
) -> None:
    schema = {"properties": properties, "$defs": definitions}
    expected = CompiledSchema(schema, close=False).is_valid(value) and _uses_declared_keys_only(
        schema, [schema], value, is_root=True
    )
    assert CompiledSchema(schema).is_valid(value) is expected


# What faults say

WEATHER = {
    **obj(
        city={"type": "string", "maxLength": 20},
        unit={"enum": ["c", "f"]},
        days={"type": "integer", "minimum": 1},
        when={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        place={"oneOf": [{"$ref": "#/$defs/Point"}, {"$ref": "#/$defs/Named"}]},
        fixed={"const": {"a": 1}},
    ),
    "required": ["city"],
    "$defs": {
        "Point": {**obj(kind={"const": "point"}, x={"type": "number"}), "required": ["kind"]},
        "Named": {**obj(kind={"const": "named"}, label={"type": "string"}), "required": ["kind"]},
    },
}


@pytest.mark.parametrize(
    ("value", "path", "rule", "message"),
    [
        ({}, "", "required", "the key 'city' is missing"),
        ({"city": 3}, "/city", "type", "must be a string, not a number"),
        ({"city": "x", "unit": "kelvin"}, "/unit", "enum", 'must be one of "c", "f"'),
        ({"city": "x", "units": "c"}, "", "additionalProperties", "unexpected key 'units'; did you mean 'unit'?"),
        (
            {"city": "x", "zzz": 1},
            "",
            "additionalProperties",
            "unexpected key 'zzz'; known: city, unit, days, when, place, fixed",
        ),
        ({"city": "x", "days": 0}, "/days", "minimum", "the value is less than the minimum of 1"),
        ({"city": "x" * 21}, "/city", "maxLength", "the value is longer than 20 characters"),
        ({"city": "x", "when": "now"}, "/when", "anyOf", "must be an integer or null, not a string"),
        ({"city": "x", "place": {"kind": "point", "x": "1"}}, "/place/x", "type", "must be a number, not a string"),
        ({"city": "x", "place": {"kind": "nowhere"}}, "/place", "oneOf", "must fit one of 2 alternatives, fits none"),
        ({"city": "x", "fixed": 1}, "/fixed", "const", 'must be {"a":1}'),
        (
            {"city": "x", "place": {"kind": "point", "lable": "1"}},
            "/place",
            "additionalProperties",
            "unexpected key 'lable'; did you mean 'label'?",
        ),
    ],
)
def test_a_fault_says_place_rule_and_what_would_fit(value: Any, path: str, rule: str, message: str) -> None:
    assert CompiledSchema(WEATHER).faults(value) == [Fault(path, message, rule)]


def test_a_value_that_fits_has_no_faults() -> None:
    assert CompiledSchema(WEATHER).faults({"city": "x", "place": {"kind": "named", "label": "y"}}) == []


def test_values_are_never_shown() -> None:
    secret = "canary"
    faults = CompiledSchema(WEATHER).faults(
        {"city": secret * 9, "unit": secret, "days": secret, "when": secret, "place": {"kind": secret}, "fixed": secret}
    )
    assert len(faults) == 6
    assert not [fault for fault in faults if secret in fault.message]


def test_other_alternatives_are_told_apart() -> None:
    both = CompiledSchema(obj(a={"oneOf": [{"minimum": 0}, {"maximum": 9}]}))
    assert both.faults({"a": 5}) == [Fault("/a", "must fit exactly one of the alternatives, fits several", "oneOf")]
    none = CompiledSchema({"properties": {"a": False}})
    assert none.faults({"a": 5}) == [Fault("/a", "must be left out", "falseSchema")]
    no_keys = CompiledSchema({"additionalProperties": False})
    assert no_keys.faults({"a": 5}) == [Fault("", "takes no keys", "falseSchema")]
    nothing = CompiledSchema({})
    assert nothing.faults({"a": 5})[0].message == "unexpected key 'a'; none are known here"


def test_pointers_are_escaped_and_long_keys_cut() -> None:
    schema = CompiledSchema({"additionalProperties": {"type": "integer"}})
    assert schema.faults({"a/b~c": "x"})[0].path == "/a~1b~0c"
    assert schema.faults({"k" * 500: "x"})[0].path == "/" + "k" * 80
    closed = CompiledSchema(obj(a={}))
    assert closed.faults({"k" * 500: "x"})[0].message == f"unexpected key '{'k' * 80}'; known: a"


def test_messages_have_at_most_200_characters() -> None:
    schema = CompiledSchema(obj(a={"enum": ["x" * 500, *map(str, range(500))]}, b={"pattern": "b" * 400}))
    faults = schema.faults({"a": "y", "b": "c"})
    assert [len(fault.message) for fault in faults] == [200, 200]


def test_there_are_at_most_20_faults() -> None:
    schema = CompiledSchema({"properties": {"a": {"items": {"type": "string"}}}, "additionalProperties": False})
    assert [fault.path for fault in schema.faults({"a": [0] * 1_000})] == [f"/a/{i}" for i in range(20)]
    assert len(schema.faults({f"k{i}": 0 for i in range(1_000)})) == 20


@pytest.mark.parametrize("value", [[0] * 99_990, ["x"] * 99_990 + [0]])
def test_of_a_very_large_value_only_the_first_fault_is_named(value: list[Any]) -> None:
    schema = CompiledSchema(obj(a={"items": {"type": "string"}}))
    [fault] = schema.faults({"a": value})
    assert fault == Fault(f"/a/{value.index(0)}", "must be a string, not a number", "type")


def _deeper(value: dict[str, Any], levels: int) -> dict[str, Any]:
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "type_name"),
    [(None, "null"), (True, "a boolean"), ([], "an array"), ({}, "an object"), (1.5, "a number")],
)
def test_a_fault_names_the_type_that_was_found(value: object, type_name: str) -> None:
    [fault] = CompiledSchema(obj(a={"type": "string"})).faults({"a": value})
    assert fault.message == f"must be a string, not {type_name}"


def test_without_declared_keys_none_are_suggested() -> None:
    schema = CompiledSchema({"unevaluatedProperties": False, "patternProperties": {"^x": {}}})
    assert schema.faults({"a": 1})[0].message == "unexpected key 'a'; none are known here"


def test_alternatives_that_multiply_do_not_hang(slow: Slow) -> None:
    both = {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/m"}]}
    node = {"properties": {"a": both, "z": {"minimum": 5}}}
    schema = CompiledSchema({**obj(n={"$ref": "#/$defs/n"}), "$defs": {"n": node, "m": node}})
    value = _deeper({"z": 1}, 60)
    started = time.process_time()
    [fault] = schema.faults({"n": value})
    assert schema.faults({"n": _deeper({"z": 5}, 60)}) == []
    assert time.process_time() - started < slow(0.3)  # every way is 2**60
    assert fault == Fault("", "the value does not fit the schema; it is too large to say where", "schema")


@pytest.mark.parametrize("value", [{"a": "\ud800"}, {"a": {1}}, {"a": object()}])
def test_what_the_validator_cannot_take_is_a_fault(value: Any) -> None:
    [fault] = CompiledSchema(obj(a={"pattern": "x"})).faults(value)
    assert fault.message.startswith("the value cannot be checked (")


def test_a_large_value_that_fits_has_no_faults() -> None:
    assert CompiledSchema(obj(a={"items": {"type": "string"}})).faults({"a": ["x"] * 50_000}) == []


def test_the_enforced_schema_is_plain_json() -> None:
    enforced = CompiledSchema(WEATHER).enforced
    assert json.loads(json.dumps(enforced)) == enforced
