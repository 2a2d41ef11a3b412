"""The value gate: turns what plugin code or a caller hands over into plain, bounded JSON, or refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, cast

__all__ = ["GateError", "GateRule", "Json", "checked", "flat_copy"]

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""A plain JSON value: exact built-in types only, all the way down."""

GateRule: TypeAlias = Literal["type", "number", "encoding", "cycle", "depth", "nodes", "size", "key"]

MAX_BYTES = 1_048_576
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_DIGITS = 400

_FIRST_TOO_LONG = 10**MAX_DIGITS
_INFINITY = float("inf")
_SHORT = 1 << 63
_SHOWN = 80
# What the quick way takes. Every limit of its own keeps the work of a value that goes the full way after all small.
_SMALL_ENTRIES = 32
_SMALL_LEVELS = 3
_SMALL_NODES = 1 + _SMALL_ENTRIES + _SMALL_ENTRIES**2 + _SMALL_ENTRIES**3
_SMALL_TEXT = 1024
_FLAT_BYTES = 2 * _SMALL_ENTRIES * (_SMALL_TEXT + 2)


class GateError(ValueError):
    """A value is no plain JSON, or passes a limit; the sentence never shows the value.

    Attributes:
        path: JSON pointer of the first bad value; of the object itself where one of its keys is bad.
        rule: which rule it broke.
        limit: the limit that was passed; None where the rule has none.
        size: what was found in the limit's unit, at least; None where it was not counted.
    """

    def __init__(self, sentence: str, *, path: str, rule: GateRule, limit: int | None = None, size: int | None = None):
        super().__init__(sentence)
        self.path = path
        self.rule: GateRule = rule
        self.limit = limit
        self.size = size


def checked(
    value: object, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES
) -> Json:
    """Return a fresh copy of `value` as plain JSON.

    Tuples become lists; subclasses of dict, list, str, int and float become the plain type. A value that is
    used in several places is copied at each. Nothing is encoded or copied before its size is known to fit.

    Args:
        value: what crosses the boundary.
        max_bytes: UTF-8 bytes of all texts and keys together, two more for every value, and the digits of
            long numbers: never more than the JSON text has.
        max_depth: lists and objects inside one another.
        max_nodes: values in all, keys not counted.
    Raises:
        GateError: what is no JSON (sets, bytes, objects, keys that are no text, NaN, infinities, integers of more
            than 400 digits, lone surrogates, cycles) or passes a limit.
    Source: RFC 8259; RFC 6901 for `GateError.path`.
    """
    if type(value) is dict and max_bytes >= _FLAT_BYTES and max_nodes > _SMALL_ENTRIES:
        flat = flat_copy(value)
        if flat is not None:
            return flat
    try:
        return _small_copy(value, max_bytes, max_depth, max_nodes)
    except _NotSmallError:
        pass  # outside this block, so that a refusal does not carry this error along
    return _Walk(max_bytes, max_depth, max_nodes).copy(value)


class _NotSmallError(Exception):
    """The value is not certainly good: the full pass decides, and knows where."""


def flat_copy(value: dict[Any, Any]) -> dict[str, Any] | None:
    """Return what `checked` does of a small object of short ASCII texts, integers and literals; None of any other.

    There is no size to add up and no depth to watch.
    """
    if len(value) > _SMALL_ENTRIES:
        return None
    copy = value.copy()  # first: a thread of plugin code may change the original meanwhile
    for key, leaf in copy.items():
        if type(key) is not str or not key.isascii() or len(key) > _SMALL_TEXT:
            return None
        kind = type(leaf)
        if kind is str:
            if not leaf.isascii() or len(leaf) > _SMALL_TEXT:
                return None
        elif kind is int:
            if not -_SHORT < leaf < _SHORT:
                return None
        elif kind is not bool and leaf is not None:
            return None
    return copy


def _small_copy(value: object, max_bytes: int, max_depth: int, max_nodes: int) -> Json:
    """The copy of a small value of exact built-in types: nearly every call is one."""
    kind = type(value)
    if kind is str and len(text := cast("str", value)) + 2 <= max_bytes and text.isascii():
        return text
    if (kind is not dict and kind is not list) or max_depth < _SMALL_LEVELS or max_nodes < _SMALL_NODES:
        raise _NotSmallError
    texts: list[str] = []
    copy: Json = _copy_level(value, texts, _SMALL_LEVELS)
    text = "".join(texts)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise _NotSmallError from None
    if size + 2 * _SMALL_NODES > max_bytes:
        raise _NotSmallError
    return copy


def _copy_level(value: Any, texts: list[str], levels: int) -> Any:
    """The copy of one list or object and of those inside it; `texts` takes its keys and texts, for one look at all."""
    if len(value) > _SMALL_ENTRIES or not levels:
        raise _NotSmallError
    copy = value.copy()
    for key, leaf in copy.items() if type(copy) is dict else enumerate(copy):
        kind = type(leaf)
        if kind is str and len(leaf) <= _SMALL_TEXT:
            texts.append(leaf)
        elif kind is dict or kind is list:
            copy[key] = _copy_level(leaf, texts, levels - 1)
        elif not (kind is bool or leaf is None or (kind is int and -_SHORT < leaf < _SHORT)) and not (
            kind is float and -_INFINITY < leaf < _INFINITY
        ):
            raise _NotSmallError
        if type(key) is str:
            texts.append(key)
        elif type(copy) is dict:
            raise _NotSmallError
    return copy


class _Frame(NamedTuple):
    """A list or object on the way down."""

    original: object
    key: str | int  # in the list or object around it
    copy: Any
    left: Iterator[tuple[Any, Any]]  # over the copy: plugin code may change the original meanwhile


class _Walk:
    """One pass over one value with an explicit stack, so that no depth can exhaust the interpreter's."""

    __slots__ = ("_max_bytes", "_max_depth", "_max_nodes", "_nodes", "_size", "_stack")

    def __init__(self, max_bytes: int, max_depth: int, max_nodes: int) -> None:
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._max_nodes = max_nodes
        self._nodes = 1
        self._size = 0
        self._stack: list[_Frame] = []

    def copy(self, value: object) -> Json:
        """The plain copy of the whole value."""
        if not issubclass(type(value), (dict, list, tuple)):
            plain = self._leaf(value, None)
            self._check_size(self._size)
            return plain
        root = self._enter(value, "")
        while self._stack:
            self._advance(self._stack[-1])
        return root

    def _advance(self, frame: _Frame) -> None:
        """Check entries of one list or object up to the next one inside it, or to its end."""
        size = 0
        for key, value in frame.left:
            kind = type(value)
            if kind is str and value.isascii():
                size += len(value)
            elif value is None or kind is bool or (kind is int and -_SHORT < value < _SHORT):
                continue
            elif issubclass(kind, (dict, list, tuple)):
                self._size += size
                frame.copy[key] = self._enter(value, key)
                return
            else:
                frame.copy[key] = self._leaf(value, key)
        self._size += size
        self._check_size(self._size)
        self._stack.pop()

    def _enter(self, value: Any, key: str | int) -> dict[str, Any] | list[Any]:
        if issubclass(type(value), dict):
            self._count(dict.__len__(value), value, key)
            entries = self._with_text_keys(dict.copy(value), key)
            self._stack.append(_Frame(value, key, entries, iter(entries.items())))
            return entries
        is_list = issubclass(type(value), list)
        self._count(list.__len__(value) if is_list else tuple.__len__(value), value, key)
        copy = list.copy(value) if is_list else list(tuple.__iter__(value))
        self._stack.append(_Frame(value, key, copy, enumerate(copy)))
        return copy

    def _count(self, entries: int, value: object, key: str | int) -> None:
        self._nodes += entries
        if self._nodes > self._max_nodes:
            self._refuse_cycle(value, key)
            raise GateError(
                f"the value has more than {self._max_nodes} values, at {_shown(self._pointer(key))}",
                path=self._pointer(key),
                rule="nodes",
                limit=self._max_nodes,
                size=self._nodes,
            )
        if len(self._stack) >= self._max_depth:
            self._refuse_cycle(value, key)
            raise GateError(
                f"the value is more than {self._max_depth} levels deep, at {_shown(self._pointer(key))}",
                path=self._pointer(key),
                rule="depth",
                limit=self._max_depth,
                size=len(self._stack) + 1,
            )
        self._check_size(self._size)

    def _refuse_cycle(self, value: object, key: str | int) -> None:
        """A cycle always runs into the limit of depth or nodes: only then is it worth looking for."""
        above = {id(frame.original) for frame in self._stack}
        if id(value) in above or len(above) < len(self._stack):
            path = self._pointer(key)
            raise GateError(f"the value at {_shown(path)} contains itself", path=path, rule="cycle")

    def _with_text_keys(self, copy: dict[Any, Any], key: str | int) -> dict[str, Any]:
        plain = True
        for name in copy:
            if type(name) is str and name.isascii():
                self._size += len(name)
            elif issubclass(type(name), str):
                plain = plain and type(name) is str
                self._size += self._bytes(name, key, "a key of the object")
            else:
                path = self._pointer(key)
                sentence = f"the object at {_shown(path)} has a key of type '{_type_name(name)}'; JSON keys are text"
                raise GateError(sentence, path=path, rule="key")
        return copy if plain else {str.__str__(name): entry for name, entry in copy.items()}

    def _leaf(self, value: Any, key: str | int | None) -> str | int | float | bool | None:
        # The type itself is asked: an object can make isinstance() say anything.
        kind = type(value)
        if issubclass(kind, str):
            self._size += self._bytes(value, key, "the text")
            return str.__str__(value)
        if value is None or kind is bool:
            return cast("bool | None", value)
        if issubclass(kind, int):
            return self._integer(int.__int__(value), key)
        if issubclass(kind, float):
            number = float.__float__(value)
            if -_INFINITY < number < _INFINITY:
                return number
            path = self._pointer(key)
            raise GateError(f"the number at {_shown(path)} is NaN or infinite, no JSON", path=path, rule="number")
        path = self._pointer(key)
        sentence = f"the value at {_shown(path)} is of type '{_type_name(value)}', which is no JSON"
        raise GateError(sentence, path=path, rule="type")

    def _integer(self, number: int, key: str | int | None) -> int:
        if not -_FIRST_TOO_LONG < number < _FIRST_TOO_LONG:
            path = self._pointer(key)
            sentence = f"the integer at {_shown(path)} has more than {MAX_DIGITS} digits"
            raise GateError(sentence, path=path, rule="number", limit=MAX_DIGITS)
        self._size += number.bit_length() // 4
        return number

    def _bytes(self, text: str, key: str | int | None, what: str) -> int:
        self._check_size(self._size + str.__len__(text))
        try:
            return len(str.encode(text))
        except UnicodeEncodeError:
            path = self._pointer(key)
            sentence = f"{what} at {_shown(path)} holds a lone surrogate, which is no Unicode text"
            raise GateError(sentence, path=path, rule="encoding") from None

    def _check_size(self, texts: int) -> None:
        size = texts + 2 * self._nodes
        if size > self._max_bytes:
            sentence = f"the value has more than {self._max_bytes} bytes ({size} or more)"
            raise GateError(sentence, path="", rule="size", limit=self._max_bytes, size=size)

    def _pointer(self, key: str | int | None) -> str:
        steps = [frame.key for frame in self._stack[1:]]
        if self._stack and key is not None:
            steps.append(key)
        return "".join("/" + _step(step) for step in steps)


def _step(step: str | int) -> str:
    text = str(step)
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    return text.replace("~", "~0").replace("/", "~1")


def _shown(path: str) -> str:
    return f"'{path}'" if path else "the top"


def _type_name(value: object) -> str:
    return type(value).__name__[:_SHOWN]
