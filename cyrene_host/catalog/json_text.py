"""Reads JSON text strictly and knows on which line each of its values stands."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from cyrene_sdk.errors import CyreneError

__all__ = ["MAX_DEPTH", "Json", "JsonTextError", "Outline", "Repeated", "line_of", "outline", "parse"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

MAX_DEPTH = 64
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]|[^\s\[\]{}:,"]+')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")

_MENDS: tuple[tuple[str, str], ...] = (
    ("Invalid control character", "write a line break inside a string as \\n"),
    ("Invalid \\escape", "write a backslash as \\\\"),
    ("Invalid \\uXXXX", "write \\u with four hexadecimal digits"),
    ("Extra data", "keep one JSON value and remove what follows it"),
    ("Expecting ',' delimiter", "put a comma between the values, or close the list or object"),
    ("Expecting ':' delimiter", "put a colon between the key and its value"),
    ("Expecting property name", "put the key in double quotes"),
    ("Unterminated string", "close the string with a double quote"),
)


class JsonTextError(CyreneError):
    """A text is not the JSON that is allowed here.

    Args:
        source: what the reader knows the text by, such as `plugins.json`.
        line, column: where it stops being right, both from 1.
    """

    def __init__(self, what: str, *, source: str, line: int, column: int, mend: str) -> None:
        super().__init__(what, where=f"{source} line {line}, column {column}", mend=mend)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that an object has twice: its JSON pointer, the line of the first and of the second."""

    pointer: str
    first_line: int
    line: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The line of every value of a text by JSON pointer (a member has the line of its key)."""

    lines: dict[str, int]
    repeated: list[Repeated]

    def line_of(self, pointer: str) -> int:
        """Return the line (from 1) of `pointer`, or of the nearest parent that the text has."""
        while pointer not in self.lines and pointer:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1)


class _RefusedError(ValueError):
    """A token that is JSON to Python's parser and not to us."""

    def __init__(self, what: str, mend: str, is_culprit: Callable[[str], bool]) -> None:
        super().__init__(what)
        self.mend = mend
        self.is_culprit = is_culprit


def parse(text: str | bytes, *, source: str, refuse_repeated: bool = True) -> Json:
    """Read JSON text (RFC 8259, UTF-8; a byte order mark is skipped) and return its value.

    Refused beyond syntax: NaN and Infinity, numbers that do not fit, lone surrogates, more than 64
    levels, and keys that one object has twice.

    Args:
        text: the text, or its bytes.
        source: what to call it in errors, such as `plugins.json`.
        refuse_repeated: False keeps the last of repeated keys; `outline` tells them.
    Raises:
        JsonTextError: with line and column of the first fault.
    """
    content = _decoded(text, source)
    try:
        value = json.loads(
            content,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_object if refuse_repeated else None,
        )
    except json.JSONDecodeError as error:
        raise _syntax_error(error, source) from error
    except RecursionError as error:
        raise _at(content, _too_deep(content), source, *_TOO_DEEP) from error
    except _RefusedError as error:
        raise _at(content, _culprit(content, error.is_culprit), source, str(error), error.mend) from error
    except _RepeatedKeyError as error:
        raise _repeated_error(content, source) from error
    _check_depth(value, content, source)
    _check_surrogates(value, content, source)
    return value  # type: ignore[no-any-return]


def outline(text: str | bytes) -> Outline:
    """Return the lines of a text that `parse` accepted (repeated keys allowed)."""
    content = text if isinstance(text, str) else text.decode("utf-8-sig")
    found = Outline({}, [])
    for pointer, line, is_key in _places(content):
        if is_key and pointer in found.lines:
            found.repeated.append(Repeated(pointer, found.lines[pointer], line))
        found.lines[pointer] = line
    return found


def line_of(text: str, pointer: str) -> int:
    """Return the line (from 1) where the value at a JSON pointer stands; of its nearest parent if it is absent."""
    return outline(text).line_of(pointer)


class _RepeatedKeyError(ValueError):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _RepeatedKeyError
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise _RefusedError(
        f"'{name}' is no JSON number", "write a finite number, or null", lambda token: token.endswith(name)
    )


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isfinite(number):
        return number
    raise _RefusedError(
        f"the number '{digits[:40]}' is too large", "write a number below 1.8e308", lambda token: token == digits
    )


def _whole(digits: str) -> int:
    if len(digits) <= 400:
        return int(digits)
    raise _RefusedError(
        f"a number of {len(digits)} digits is too long", "write at most 400 digits", lambda token: token == digits
    )


def _decoded(text: str | bytes, source: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        raise JsonTextError(
            f"{source} is not UTF-8 text",
            source=source,
            line=before.count(b"\n") + 1,
            column=error.start - before.rfind(b"\n"),
            mend="save the file as UTF-8",
        ) from error


def _at(content: str, position: int, source: str, what: str, mend: str) -> JsonTextError:
    line = content.count("\n", 0, position) + 1
    return JsonTextError(
        f"{source}: {what}", source=source, line=line, column=position - content.rfind("\n", 0, position), mend=mend
    )


def _culprit(content: str, is_culprit: Callable[[str], bool]) -> int:
    return next((token.start() for token in _TOKEN.finditer(content) if is_culprit(token[0])), 0)


def _repeated_error(content: str, source: str) -> JsonTextError:
    twice = outline(content).repeated[0]
    return JsonTextError(
        f"{source}: the key at {twice.pointer} is given twice, first on line {twice.first_line}",
        source=source,
        line=twice.line,
        column=1,
        mend="remove one of the two",
    )


_TOO_DEEP = (f"more than {MAX_DEPTH} levels of lists and objects", "nest less deeply")


def _too_deep(content: str) -> int:
    depth = 0
    for token in _TOKEN.finditer(content):
        if token[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return token.start()
        elif token[0] in "]}":
            depth -= 1
    return 0


def _check_depth(value: Any, content: str, source: str) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise _at(content, _too_deep(content), source, *_TOO_DEEP)


def _check_surrogates(value: Any, content: str, source: str) -> None:
    suspect = _SURROGATE.search(content)
    if not suspect:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        what = "half of a surrogate pair is no character"
        mend = "write the character itself, or both halves of its pair"
        raise _at(content, suspect.start(), source, what, mend) from error


def _syntax_error(error: json.JSONDecodeError, source: str) -> JsonTextError:
    mend = _syntax_mend(error.msg, error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip())
    what = f"{source} is no valid JSON: {error.msg[0].lower()}{error.msg[1:].removesuffix(' at')}"
    return JsonTextError(what, source=source, line=error.lineno, column=error.colno, mend=mend)


def _syntax_mend(message: str, before: str, rest: str) -> str:
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments: remove it"
    if re.match(r",\s*[}\]]", rest) or (before.endswith(",") and rest.startswith(("}", "]"))):
        return "remove the comma before the closing bracket"
    if rest.startswith("'"):
        return "use double quotes"
    if re.match(r"(True|False|None|undefined)\b", rest):
        return "JSON writes true, false and null"
    if not rest:
        return "the text ends too early: close every string, list and object"
    return next((mend for start, mend in _MENDS if message.startswith(start)), "put a JSON value here")


def _places(content: str) -> Iterator[tuple[str, int, bool]]:
    """Yield (pointer, line, is a key) of every value, in the order of the text."""
    open_pointers: list[str] = []
    counts: list[int] = []  # of the open lists: the index of the next element; -1 for an object
    pointer, line, position, at_key = "", 1, 0, False
    for token in _TOKEN.finditer(content):
        line += content.count("\n", position, token.start())
        position = token.start()
        text = token[0]
        if text == ",":
            at_key = counts[-1] < 0
        elif text in "]}":
            open_pointers.pop()
            counts.pop()
        elif at_key:
            key = json.loads(text) if "\\" in text else text[1:-1]
            pointer = f"{open_pointers[-1]}/{key.replace('~', '~0').replace('/', '~1')}"
            yield pointer, line, True
            at_key = False
        else:
            if not counts:
                yield "", line, False
            elif counts[-1] >= 0:
                pointer = f"{open_pointers[-1]}/{counts[-1]}"
                counts[-1] += 1
                yield pointer, line, False
            if text in "[{":
                open_pointers.append(pointer)
                counts.append(0 if text == "[" else -1)
                at_key = text == "{"
