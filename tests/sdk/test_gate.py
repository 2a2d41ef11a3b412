"""The value gate: only plain, bounded JSON passes, and what is refused is named by its place."""

from __future__ import annotations

import enum
import json
import tracemalloc
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyrene_sdk._worker.gate import GateError, checked

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


class Color(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Ratio(float):
    pass


class Point(NamedTuple):
    x: int
    y: int


class Impostor:
    """Says it is a dict, as some mocks do."""

    __class__ = dict  # type: ignore[assignment]


def refused(value: object, **limits: int) -> GateError:
    with pytest.raises(GateError) as caught:
        checked(value, **limits)
    return caught.value


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@settings(deadline=None)
@given(JSON)
def test_plain_json_passes_unchanged_as_a_fresh_copy(value: Any) -> None:
    copy = checked(value)
    assert json.dumps(copy) == json.dumps(value)
    assert not isinstance(value, (dict, list)) or copy is not value


def test_inner_lists_and_objects_are_copied_too() -> None:
    value = {"a": [1, {"b": []}], "c": {"d": {"e": {"f": [2]}}}}
    copy: Any = checked(value)
    copy["a"][1]["b"].append(3)
    copy["c"]["d"]["e"]["f"].append(3)
    assert value == {"a": [1, {"b": []}], "c": {"d": {"e": {"f": [2]}}}}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (Color.RED, "red"),
        ({Color.RED: Color.RED}, {"red": "red"}),
        ([Level.HIGH], [3]),
        ({"r": Ratio(0.5)}, {"r": 0.5}),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        ({"a": [True, None, Level.HIGH]}, {"a": [True, None, 3]}),
    ],
)
def test_subclasses_and_tuples_become_the_plain_types(value: object, plain: object) -> None:
    copy = checked(value)
    assert repr(copy) == repr(plain)
    assert [type(key) for key in copy] == [str] if isinstance(copy, dict) else True


@pytest.mark.parametrize(
    ("value", "path", "rule"),
    [
        ({"a": [1, {2}]}, "/a/1", "type"),
        ({"a": b"x"}, "/a", "type"),
        (object(), "", "type"),
        ({"a": {"b": Impostor()}}, "/a/b", "type"),
        ({"a": float("nan")}, "/a", "number"),
        ([0.5, float("-inf")], "/1", "number"),
        (Ratio("inf"), "", "number"),
        ({"deep": [[["x", {"y": "\ud800"}]]]}, "/deep/0/0/1/y", "encoding"),
        ("\udfff", "", "encoding"),
        ({"a": {"\ud800": 1}}, "/a", "encoding"),
        ({"a": {"b": {1: 2}}}, "/a/b", "key"),
        ({(1, 2): 3}, "", "key"),
        ({"a/b": {"c~d": {3}}}, "/a~1b/c~0d", "type"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(value: object, path: str, rule: str) -> None:
    error = refused(value)
    assert (error.path, error.rule, error.limit) == (path, rule, None)


def test_a_sentence_says_the_type_and_the_place() -> None:
    assert str(refused({"a": [1, {2}]})) == "the value at '/a/1' is of type 'set', which is no JSON"
    assert str(refused({1: 2})) == "the object at the top has a key of type 'int'; JSON keys are text"


def test_a_long_key_is_cut_in_the_path() -> None:
    assert refused({"k" * 500: {1}}).path == "/" + "k" * 79 + "…"


def test_a_cycle_is_named_as_one() -> None:
    loop: list[Any] = [1]
    loop.append({"back": loop})
    error = refused({"a": loop})
    assert (error.rule, error.limit) == ("cycle", None)
    wide: list[Any] = []
    wide.extend([wide] * 2_000)
    assert refused(wide).rule == "cycle"


def test_a_value_used_twice_is_copied_twice() -> None:
    shared = {"x": 1}
    copy: Any = checked([shared, shared, {"again": [shared]}])
    assert copy == [{"x": 1}, {"x": 1}, {"again": [{"x": 1}]}]
    assert copy[0] is not copy[1]


def test_the_limit_of_depth_is_exact() -> None:
    assert checked(nested(64)) == nested(64)
    error = refused(nested(65))
    assert (error.rule, error.limit, error.size, error.path) == ("depth", 64, 65, "/0" * 64)
    assert checked([[1]], max_depth=2) == [[1]]
    assert refused([[[1]]], max_depth=2).rule == "depth"
    assert refused([], max_depth=0).rule == "depth"


def test_a_value_of_any_depth_is_refused_at_once() -> None:
    assert refused(nested(100_000)).rule == "depth"


def test_the_limit_of_nodes_is_exact() -> None:
    assert checked([0] * 99_999) == [0] * 99_999
    error = refused([0] * 100_000)
    assert (error.rule, error.limit, error.size) == ("nodes", 100_000, 100_001)
    assert refused({"a": 1, "b": 2}, max_nodes=2).rule == "nodes"


def test_values_shared_many_times_count_each_time() -> None:
    value: list[Any] = [0] * 30
    for _ in range(9):
        value = [value] * 30
    assert refused(value).rule == "nodes"


@pytest.mark.parametrize("text", ["a", "é", "开", "😀"])
def test_text_counts_in_utf8_bytes(text: str) -> None:
    fitting = {"k": text * 5_000}
    size = 5_000 * len(text.encode()) + len("k") + 2 * 2
    assert checked(fitting, max_bytes=size) == fitting
    error = refused(fitting, max_bytes=size - 1)
    assert (error.rule, error.limit, error.size, error.path) == ("size", size - 1, size, "")


def test_bare_text_has_the_limit_too() -> None:
    assert checked("ab", max_bytes=4) == "ab"
    assert refused("abc", max_bytes=4).rule == "size"
    assert checked("é", max_bytes=4) == "é"
    assert refused("éa", max_bytes=4).rule == "size"


def test_keys_and_long_numbers_count() -> None:
    assert refused({"k" * 100: 1}, max_bytes=100).rule == "size"
    assert refused([10**399] * 5, max_bytes=1_000).rule == "size"


def test_many_small_texts_add_up() -> None:
    assert refused([["x" * 1_000] * 30] * 40).rule == "size"


def test_a_huge_text_is_refused_without_being_encoded() -> None:
    huge = "开" * 100_000_000
    tracemalloc.start()
    try:
        error = refused({"a": huge})
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000  # encoded it has 300 MB
    assert (error.rule, error.limit) == ("size", 1_048_576)
    assert error.size is not None
    assert error.size >= 100_000_000


def test_integers_may_have_400_digits() -> None:
    longest = 10**400 - 1
    assert checked({"n": longest, "m": -longest}) == {"n": longest, "m": -longest}
    error = refused({"n": 10**400})
    assert (error.rule, error.limit, error.path) == ("number", 400, "/n")


def test_no_sentence_shows_the_value() -> None:
    for value in ({"a": "canary\ud800"}, {"a": [{"canary"}]}, ["canary" * 1_000_000], {"a": 10**400 + 123}):
        assert "canary" not in str(refused(value))
        assert "123" not in str(refused(value))
