"""The argument gate: what a caller gives becomes one plain object, or is refused for a stated reason."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyrene_host.call.gate import ArgumentsRefused, read_arguments, read_json

OBJECTS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    ),
)


def refused(arguments: object) -> ArgumentsRefused:
    with pytest.raises(ArgumentsRefused) as caught:
        read_arguments(arguments)
    return caught.value


@pytest.mark.timeout(240)
@settings(deadline=None)
@given(OBJECTS)
def test_an_object_its_text_and_its_bytes_read_alike(arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    assert read_arguments(arguments) == arguments
    assert read_arguments(text) == arguments
    assert read_arguments(text.encode()) == arguments
    assert read_arguments(json.dumps(text)) == arguments


@pytest.mark.parametrize("nothing", [None, "", b"", " \n\t ", "null", " null ", {}, "{}", "\ufeff"])
def test_no_arguments_are_an_empty_object(nothing: object) -> None:
    assert read_arguments(nothing) == {}


def test_any_mapping_becomes_a_dict_of_its_own() -> None:
    given = {"a": [1]}
    for mapping in (given, MappingProxyType(given)):
        read = read_arguments(mapping)
        assert type(read) is dict
        assert read == given
        assert read["a"] is not given["a"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\ufeff{"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (bytearray(b'{"a": 1}'), {"a": 1}),
        ('{"a": "line1\nline2\tend"}', {"a": "line1\nline2\tend"}),
        ('{"a": "\\u0000"}', {"a": "\0"}),
        ('{"a": "http://x // no comment"}', {"a": "http://x // no comment"}),
        ('"{\\"n\\": 2}"', {"n": 2}),
        ('{"a": "{\\"b\\": 1}"}', {"a": '{"b": 1}'}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": "[[[["}', {"a": "[[[["}),
    ],
)
def test_text_with_one_certain_reading_is_read(text: object, value: object) -> None:
    assert read_arguments(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a"',
        '{"a":',
        '{"a": 1',
        '{"a": 1,',
        '{"a": 1.',
        '{"a": 1e+',
        '{"a": -',
        '{"a": tru',
        '{"a": n',
        '{"a": "abc',
        '{"a": "abc\\',
        '{"a": "abc\\u',
        '{"a": "abc\\u12',
        '{"a": [1, 2',
        '{"a": [{"b": {}}]',
        '[{"a": 1}',
    ],
)
def test_text_that_breaks_off_is_truncated(text: str) -> None:
    assert refused(text).reason == "truncated"


@pytest.mark.timeout(240)
@settings(deadline=None)
@given(OBJECTS, st.data())
def test_every_proper_beginning_of_an_object_is_truncated(arguments: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(1, len(text) - 1))
    assert refused(text[:cut]).reason == "truncated"


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}{"n": 2}',
        '{"n": 1} t',
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": ab',
        '{"a" e',
        '{"a": "\\q"}',
        '{"a": "\\u12zz"}',
        '```json\n{"a": 1}\n```',
        "hello",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1, "a": 1}',
        '{"a": {"b": 1, "c": 2, "b": 3}}',
        '{"a": "\\ud800"}',
        '{"\\ud800": 1}',
        '{"a": "\ud800"}',
        b'{"a": "\xff"}',
        '{"a": 1}'.encode("utf-16"),
        {"a": float("nan")},
        {"a": {1, 2}},
        {"a": "\ud800"},
        {1: 2},
    ],
)
def test_what_is_no_strict_json_is_invalid_json(text: object) -> None:
    assert refused(text).reason == "invalid_json"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ('"hello"', "a string"),
        ("[1]", "an array"),
        ([1], "an array"),
        ("3", "a number"),
        (3.5, "a number"),
        ("true", "a boolean"),
        (True, "a boolean"),
        (object(), "a value of type 'object'"),
    ],
)
def test_another_json_value_is_no_object(arguments: object, kind: str) -> None:
    error = refused(arguments)
    assert error.reason == "not_object"
    assert str(error) == f"the arguments must be a JSON object, not {kind}"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": 1e400}',
        '{"a": -1e400}',
        '{"a": ' + "1" * 401 + "}",
        '{"a": ' + "1" * 5_000 + "}",
        '{"a": 0.' + "1" * 401 + "}",
        {"a": 10**400},
        "[" * 100_000,
        '{"a": ' + "[" * 64 + "]" * 64 + "}",
        '{"a": "' + "x" * 1_048_576 + '"}',
        ('{"a": "' + "开" * 350_000 + '"}').encode(),
        '{"a": "' + "开" * 350_000 + '"}',
        {"a": "x" * 1_048_576},
        '{"a": [' + "0," * 100_000 + "0]}",
        '{"a": [' + "[]," * 100_000 + "0]}",
        {"a": [0] * 200_000},
    ],
    ids=range(15),
)
def test_what_passes_a_limit_is_refused_as_schema_within_half_a_second(
    arguments: object, slow: Callable[[float], float]
) -> None:
    started = time.process_time()
    assert refused(arguments).reason == "schema"
    assert time.process_time() - started < slow(0.5)


def test_the_deepest_text_that_fits_is_read() -> None:
    assert read_arguments('{"a": ' + "[" * 63 + '"[[["' + "]" * 63 + "}")["a"] is not None


def test_wide_text_is_not_deep() -> None:
    assert read_arguments('{"a": [' + "[]," * 1_000 + "0]}")["a"][-1] == 0


def test_sentences_say_line_and_column() -> None:
    assert str(refused('{\n "a": 1,\n b: 2}')) == (
        "the arguments are no JSON at line 3, column 2: Expecting property name enclosed in double quotes"
    )
    assert str(refused('{\n "a": "b')) == "the arguments break off at line 2, column 9: send them whole"
    assert str(refused('{"key": 1, "key": 2}')) == "the arguments have the key 'key' twice in one object"


def test_the_place_inside_the_arguments_is_a_json_pointer() -> None:
    assert refused('{"a": [{"b": "\\ud800"}]}').path == "/a/0/b"
    assert refused({"a": [{"b": float("inf")}]}).path == "/a/0/b"


def test_no_sentence_shows_a_value() -> None:
    for arguments in ('{"a": "canary', '{"a": canary}', {"a": "canary\ud800"}, '"canary"', '{"a": "canary\\ud800"}'):
        assert "canary" not in str(refused(arguments))


def test_a_json_text_of_any_kind_can_be_read_by_the_same_rules() -> None:
    assert read_json('["a", 1]') == ["a", 1]
    with pytest.raises(ArgumentsRefused):
        read_json('["\\ud800"]')
