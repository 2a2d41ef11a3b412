"""JSON text is read strictly, and each fault is told with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_host.catalog.json_text import JsonTextError, line_of, outline, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _refused(text: str | bytes) -> JsonTextError:
    with pytest.raises(JsonTextError) as caught:
        parse(text, source="plugins.json")
    return caught.value


@given(JSON)
def test_what_json_writes_is_read_unchanged(value: object) -> None:
    assert parse(json.dumps(value), source="x") == value


@given(JSON)
def test_every_value_of_a_text_has_a_line(value: object) -> None:
    text = json.dumps(value, indent=1)
    lines = outline(text).lines
    assert lines.keys() == set(_pointers(value, ""))
    assert max(lines.values()) <= text.count("\n") + 1


def _pointers(value: object, pointer: str) -> list[str]:
    found = [pointer]
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += _pointers(child, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse(b"\xef\xbb\xbf[1]", source="x") == [1]
    assert parse("\ufeff[1]", source="x") == [1]
    assert outline(b"\xef\xbb\xbf[1]").lines == {"": 1, "/0": 1}


def test_a_syntax_fault_is_told_with_line_and_column_in_four_parts() -> None:
    error = _refused('{\n  "a": 1,\n  "b": tru\n}')
    assert (error.line, error.column) == (3, 8)
    assert str(error) == (
        "plugins.json is no valid JSON: expecting value\n"
        "  where: plugins.json line 3, column 8\n"
        "  mend:  put a JSON value here"
    )


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ('{"a": 1 // one\n}', "JSON has no comments: remove it"),
        ('// one\n{"a": 1}', "JSON has no comments: remove it"),
        ('{"a": 1, /* one */ "b": 2}', "JSON has no comments: remove it"),
        ('{"a": 1,\n# one\n"b": 2}', "JSON has no comments: remove it"),
        ('{"a": 1,}', "remove the comma before the closing bracket"),
        ('{"a": [1,\n]}', "remove the comma before the closing bracket"),
        ("{'a': 1}", "use double quotes"),
        ('{"a": True}', "JSON writes true, false and null"),
        ('[{"a": None}]', "JSON writes true, false and null"),
        ('[{"a": 1}', "the text ends too early: close every string, list and object"),
        ("", "the text ends too early: close every string, list and object"),
        ('{"a": 1} {"b": 2}', "keep one JSON value and remove what follows it"),
        ('{"a": 1 "b": 2}', "put a comma between the values, or close the list or object"),
        ('{"a" 1}', "put a colon between the key and its value"),
        ("{a: 1}", "put the key in double quotes"),
        ('["a\nb"]', "write a line break inside a string as \\n"),
        ('["C:\\dir"]', "write a backslash as \\\\"),
        ('["\\u12"]', "write \\u with four hexadecimal digits"),
        ('["a]', "close the string with a double quote"),
    ],
)
def test_the_usual_slips_are_told_with_their_cure(text: str, mend: str) -> None:
    assert _refused(text).mend == mend


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ('["NaN",\n NaN]', "plugins.json: 'NaN' is no JSON number", (2, 2)),
        ("[-Infinity]", "plugins.json: '-Infinity' is no JSON number", (1, 2)),
        ('{"a":\n 1e400}', "plugins.json: the number '1e400' is too large", (2, 2)),
        (f"[{'9' * 401}]", "plugins.json: a number of 401 digits is too long", (1, 2)),
        ('["ok", "\\ud800"]', "plugins.json: half of a surrogate pair is no character", (1, 9)),
        ('["\ud800"]', "plugins.json: half of a surrogate pair is no character", (1, 3)),
        ("[" * 65 + "]" * 65, "plugins.json: more than 64 levels of lists and objects", (1, 65)),
        ("[" * 99_999 + "]" * 99_999, "plugins.json: more than 64 levels of lists and objects", (1, 65)),
        ('[[1], "[",' + "[" * 64 + "]" * 65, "plugins.json: more than 64 levels of lists and objects", (1, 74)),
        (b'{"a":\n"\xff"}', "plugins.json is not UTF-8 text", (2, 2)),
        ('{"a": 1,\n"b": {"c": 1,\n"c": 2}}', "plugins.json: the key at /b/c is given twice, first on line 2", (3, 1)),
    ],
)
def test_what_is_no_json_to_everyone_is_refused_where_it_stands(
    text: str | bytes, what: str, place: tuple[int, int]
) -> None:
    error = _refused(text)
    assert error.what == what
    assert (error.line, error.column) == place


def test_what_is_just_within_the_limits_is_read() -> None:
    assert parse("[" * 64 + "]" * 64, source="x")
    assert parse(f"[{'9' * 400}]", source="x") == [int("9" * 400)]
    assert parse('["\\ud83d\\ude00"]', source="x") == ["😀"]


def test_repeated_keys_can_be_kept_and_are_in_the_outline() -> None:
    text = '{\n"a": 1,\n"b": {"a": 2},\n"a": 3\n}'
    assert parse(text, source="x", refuse_repeated=False) == {"a": 3, "b": {"a": 2}}
    (twice,) = outline(text).repeated
    assert (twice.pointer, twice.first_line, twice.line) == ("/a", 2, 4)


def test_a_line_is_found_by_pointer_and_an_absent_value_has_that_of_its_parent() -> None:
    text = '{\n "plugins": [\n  {"a/b": 1},\n  {\n   "c~d": [\n    true]}]}'
    assert line_of(text, "/plugins/0/a~1b") == 3
    assert line_of(text, "/plugins/1") == 4
    assert line_of(text, "/plugins/1/c~0d/0") == 6
    assert line_of(text, "/plugins/1/absent/key") == 4
    assert line_of(text, "/absent") == 1
