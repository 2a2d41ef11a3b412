"""The argument gate: turns what a caller gives as arguments into one plain JSON object, or refuses it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from cyrene_sdk._worker.gate import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_NODES, GateError, Json, checked, flat_copy

__all__ = ["ArgumentsRefused", "RefusalReason", "read_arguments", "read_json"]

RefusalReason: TypeAlias = Literal["schema", "invalid_json", "not_object", "truncated"]

# Limits are facts about a schema's reach, not about JSON: the reason says so.
_LIMIT_RULES = ("depth", "nodes", "size")
_SHOWN = 80

_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
# What may be left of the text where the parser stumbled over its end.
_CUT_LITERAL = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-)?\s*")
_CUT_NUMBER = re.compile(r"(?:(?<=\d)(?:\.|[eE][+-]?))?\s*")
_CUT_ESCAPE = re.compile(r"\\?(?:u[0-9a-fA-F]{0,4})?")


class ArgumentsRefused(Exception):
    """The arguments cannot reach any tool; the message never shows their values.

    Attributes:
        reason: the `reason` of the `invalid_arguments` result.
        path: JSON pointer of what is at fault; empty for the arguments as a whole.
    """

    def __init__(self, reason: RefusalReason, message: str, path: str = "") -> None:
        super().__init__(message)
        self.reason: RefusalReason = reason
        self.message = message
        self.path = path


def read_arguments(arguments: object) -> dict[str, Any]:
    """Return the arguments as a fresh dict of plain JSON values.

    None, blank text and the text `null` mean no arguments. Text may begin with a byte order mark, may hold
    raw control characters inside strings, and may be a JSON string whose content is the object's text (some
    models encode twice): each has one certain reading. Nothing else is repaired.

    Args:
        arguments: a mapping, or JSON text as str or UTF-8 bytes (at most 1 MiB, depth 64, 100,000 values).
    Raises:
        ArgumentsRefused: with reason `schema` for size, depth, number of values and overlong numbers; `truncated`
            for text that certainly breaks off; `not_object` for another JSON value; `invalid_json` for the rest:
            NaN, duplicate keys, lone surrogates, values that are no JSON.
    Source: RFC 8259.
    """
    if type(arguments) is dict:
        # Nearly all arguments are flat, and the way by `checked` takes half as long again.
        return flat_copy(arguments) or _gated(arguments)
    if arguments is None:
        return {}
    if isinstance(arguments, (str, bytes, bytearray)):
        return _read_text(arguments)
    if isinstance(arguments, Mapping):
        return _gated(dict(arguments))
    raise _not_object(arguments)


def read_json(text: str) -> Json:
    """Return the value of a JSON text, by the rules of `read_arguments` for text.

    Raises:
        ArgumentsRefused: as `read_arguments`; blank text is None.
    """
    try:
        return checked(_parse(_decoded(text)))
    except GateError as error:
        raise ArgumentsRefused("invalid_json", str(error), error.path) from error


def _gated(arguments: object) -> dict[str, Any]:
    try:
        plain = checked(arguments)
    except GateError as error:
        is_limit = error.rule in _LIMIT_RULES or (error.rule == "number" and error.limit is not None)
        reason: RefusalReason = "schema" if is_limit else "invalid_json"
        raise ArgumentsRefused(reason, str(error), error.path) from error
    if isinstance(plain, dict):
        return plain
    raise _not_object(plain)


def _not_object(arguments: object) -> ArgumentsRefused:
    return ArgumentsRefused("not_object", f"the arguments must be a JSON object, not {_kind(arguments)}")


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, (list, tuple)):
        return "an array"
    return f"a value of type '{type(value).__name__[:_SHOWN]}'"


def _read_text(given: str | bytes | bytearray) -> dict[str, Any]:
    value = _parse(_decoded(given))
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = _parse(_decoded(value))
    return {} if value is None else _gated(value)


def _decoded(given: str | bytes | bytearray) -> str:
    if len(given) > MAX_BYTES:
        raise ArgumentsRefused("schema", f"the arguments have more than {MAX_BYTES} bytes ({len(given)} or more)")
    try:
        if isinstance(given, str):
            size = len(given) if given.isascii() else len(given.encode())
            text = given
        else:
            size = len(given)
            text = given.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise ArgumentsRefused("invalid_json", f"the arguments are no valid UTF-8 text: {error.reason}") from error
    if size > MAX_BYTES:
        raise ArgumentsRefused("schema", f"the arguments have more than {MAX_BYTES} bytes ({size})")
    return text.removeprefix("\ufeff")


def _parse(text: str) -> Any:
    if not text or text.isspace():
        return None
    _check_depth(text)
    try:
        return json.loads(
            text,
            strict=False,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        if _breaks_off(error):
            end = json.JSONDecodeError(error.msg, text, len(text))
            sentence = f"the arguments break off at line {end.lineno}, column {end.colno}: send them whole"
            raise ArgumentsRefused("truncated", sentence) from error
        sentence = f"the arguments are no JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise ArgumentsRefused("invalid_json", sentence) from error


def _check_depth(text: str) -> None:
    """Bound what the parser will meet, before it recurses."""
    opening = text.count("[") + text.count("{")
    if opening <= MAX_DEPTH:
        return
    depth = nodes = 0
    for token in _TOKENS.finditer(text):
        sign = text[token.start()]
        if sign in "[{":
            depth += 1
            nodes += 1
            if depth > MAX_DEPTH:
                raise ArgumentsRefused("schema", f"the arguments are more than {MAX_DEPTH} levels deep")
            if nodes > MAX_NODES:
                raise ArgumentsRefused("schema", f"the arguments have more than {MAX_NODES} values")
        elif sign in "]}":
            depth -= 1


def _breaks_off(error: json.JSONDecodeError) -> bool:
    """Whether every way to go on with this text would have been longer."""
    if error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Invalid \\"):
        return _CUT_ESCAPE.fullmatch(error.doc, error.doc.rindex("\\")) is not None
    cut = _CUT_LITERAL if error.msg == "Expecting value" else _CUT_NUMBER
    return cut.fullmatch(error.doc, error.pos) is not None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ArgumentsRefused("invalid_json", f"the arguments have the key {twice[:_SHOWN]!a} twice in one object")
    return entries


def _integer(token: str) -> int:
    if len(token) > MAX_DIGITS:
        raise ArgumentsRefused("schema", f"the arguments have a number of more than {MAX_DIGITS} characters")
    return int(token)


def _float(token: str) -> float:
    if len(token) > MAX_DIGITS:
        raise ArgumentsRefused("schema", f"the arguments have a number of more than {MAX_DIGITS} characters")
    number = float(token)
    if number in (float("inf"), float("-inf")):
        raise ArgumentsRefused("schema", "the arguments have a number that is too large")
    return number
