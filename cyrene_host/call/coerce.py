"""Lossless coercion: reads an argument of the wrong type as the right one where that has one certain reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from cyrene_host.call.gate import ArgumentsRefused, read_json
from cyrene_host.catalog.schemas import lookup
from cyrene_sdk._worker.gate import MAX_DIGITS, GateError, checked

__all__ = ["coerce"]

_ALL_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_INTEGER = re.compile(r"-?[1-9][0-9]*|0")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SHOWN = 80
_CHOICES = ("anyOf", "oneOf")
_ARTICLES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
}

MAX_NOTES = 20


def coerce(
    enforced: Mapping[str, Any], arguments: dict[str, Any], *, secret: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments with wrong types read as the declared ones, and one note for each change.

    Where text is not allowed: decimal text becomes an integer or number ("7", not "07" or "7.0" for an integer),
    "true" and "false" a boolean, JSON text a declared array or object. Null for an optional property that does
    not allow it is left out. Nothing is rounded, and an alternative (`anyOf`, `oneOf`) counts only where
    a single one can be meant.

    Args:
        enforced: the schema as `CompiledSchema.enforced` has it.
        arguments: plain JSON that this schema refuses; not changed.
        secret: top-level arguments whose value no note may show.
    Returns:
        A new dict, which may still not fit, and notes such as `/n: text '7' read as the integer 7`.
    """
    reading = _Reading(enforced, secret)
    try:
        changed = reading.object(reading.certain([enforced], arguments), arguments, "")
        checked(changed)
    except (GateError, RecursionError):
        # JSON texts keep the limits each for itself, not always together; references may form a very long chain.
        return dict(arguments), []
    return changed, reading.notes()


class _Reading:
    """One pass over arguments beside their schema."""

    def __init__(self, root: Mapping[str, Any], secret: frozenset[str]) -> None:
        self._root = root
        self._secret = {_step(name) for name in secret}
        self._types: dict[int, frozenset[str]] = {}
        self._notes: list[str] = []
        self._changes = 0

    def notes(self) -> list[str]:
        """The first notes, and how many more there would be."""
        unsaid = self._changes - len(self._notes)
        return [*self._notes, f"and {unsaid} more like these"] if unsaid else self._notes

    def certain(self, schemas: Iterable[Any], value: object) -> list[Mapping[str, Any]]:
        """All schemas that hold for a value: those given, what they refer to, the only alternative for its type."""
        found: dict[int, Mapping[str, Any]] = {}
        left = list(schemas)
        while left:
            schema = left.pop()
            if isinstance(schema, Mapping) and id(schema) not in found:
                found[id(schema)] = schema
                left += self._beside(schema)
                for keyword in _CHOICES:
                    fitting = [sub for sub in schema.get(keyword, ()) if _types_of(value) & self._allowed(sub)]
                    left += fitting if len(fitting) == 1 else []
        return list(found.values())

    def object(self, schemas: list[Mapping[str, Any]], value: dict[str, Any], path: str) -> dict[str, Any]:
        """The object with each of its values read."""
        read: dict[str, Any] = {}
        for key, entry in value.items():
            subs = _for_key(schemas, key)
            place = f"{path}/{_step(key)}"
            if entry is None and "null" not in self._together(subs) and _is_optional(schemas, key):
                self._note(f"{place}: null read as left out")
            else:
                read[key] = self._value(subs, entry, place)
        return read

    def _value(self, schemas: list[Any], value: Any, path: str) -> Any:
        if isinstance(value, (str, float)):
            value = self._scalar(value, self._together(schemas), path)
        if isinstance(value, dict):
            return self.object(self.certain(schemas, value), value, path)
        if isinstance(value, list):
            certain = self.certain(schemas, value)
            return [self._value(_for_index(certain, i), entry, f"{path}/{i}") for i, entry in enumerate(value)]
        return value

    def _scalar(self, value: str | float, allowed: frozenset[str], path: str) -> Any:
        read, name = _read_text(value, allowed) if isinstance(value, str) else _read_whole(value, allowed)
        if name:
            given = "text" if isinstance(value, str) else "the number"
            result = _ARTICLES[name]
            if path.split("/")[1] not in self._secret:
                given += " " + _cut(repr(value))
                result = result if isinstance(read, (dict, list)) else f"the {name} {_cut(json.dumps(read))}"
            self._note(f"{path}: {given} read as {result}")
        return read

    def _note(self, note: str) -> None:
        self._changes += 1
        if self._changes <= MAX_NOTES:
            self._notes.append(note)

    def _together(self, schemas: list[Any]) -> frozenset[str]:
        return _ALL_TYPES.intersection(*map(self._allowed, schemas))

    def _beside(self, schema: Mapping[str, Any]) -> list[Any]:
        referred = [lookup(self._root, schema["$ref"])] if "$ref" in schema else []
        return [*referred, *schema.get("allOf", ())]

    def _allowed(self, schema: Any) -> frozenset[str]:
        """The JSON types that may pass a schema."""
        if not isinstance(schema, Mapping):
            return frozenset() if schema is False else _ALL_TYPES
        known = self._types.get(id(schema))
        if known is None:
            choices = [frozenset().union(*map(self._allowed, schema[key])) for key in _CHOICES if key in schema]
            known = _named_types(schema).intersection(*map(self._allowed, self._beside(schema)), *choices)
            self._types[id(schema)] = known
        return known


def _read_whole(value: float, allowed: frozenset[str]) -> tuple[float, str]:
    """7.0 is a valid integer, but code that asks for an integer may not take it."""
    if "integer" in allowed and "number" not in allowed and value.is_integer():
        return int(value), "integer"
    return value, ""


def _read_text(text: str, allowed: frozenset[str]) -> tuple[Any, str]:
    """What a text stands for and the name of its type; the text and no name where it is allowed, or not certain."""
    if "string" in allowed:
        return text, ""
    if len(text) <= MAX_DIGITS:
        if "integer" in allowed and _INTEGER.fullmatch(text):
            return int(text), "integer"
        if "number" in allowed and _NUMBER.fullmatch(text):
            number = float(text)
            if number - number == 0 and Decimal(repr(number)) == Decimal(text):
                return number, "number"
        if "boolean" in allowed and text in ("true", "false"):
            return text == "true", "boolean"
    return _read_json_text(text, allowed)


def _read_json_text(text: str, allowed: frozenset[str]) -> tuple[Any, str]:
    name = {"[": "array", "{": "object"}.get(text.lstrip()[:1], "")
    if name not in allowed:
        return text, ""
    try:
        return read_json(text), name
    except ArgumentsRefused:
        return text, ""


def _for_key(schemas: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """What is said about the value of a key. Patterns are left out: only the validator's engine may read them."""
    subs = []
    for schema in schemas:
        if key in schema.get("properties", ()):
            subs.append(schema["properties"][key])
        elif "additionalProperties" in schema and "patternProperties" not in schema:
            subs.append(schema["additionalProperties"])
    return [sub for sub in subs if sub is not False]


def _for_index(schemas: Iterable[Mapping[str, Any]], index: int) -> list[Any]:
    subs = []
    for schema in schemas:
        items = schema.get("items", True)
        is_old = isinstance(items, list)  # until draft 2019-09 the list stood in `items`
        first = items if is_old else schema.get("prefixItems", ())
        rest = schema.get("additionalItems", True) if is_old else items
        subs.append(first[index] if index < len(first) else rest)
    return subs


def _is_optional(schemas: list[Mapping[str, Any]], key: str) -> bool:
    is_declared = any(key in schema.get("properties", ()) for schema in schemas)
    return is_declared and not any(key in schema.get("required", ()) for schema in schemas)


def _named_types(schema: Mapping[str, Any]) -> frozenset[str]:
    allowed = _ALL_TYPES
    if "type" in schema:
        named = schema["type"]
        allowed = frozenset([named] if isinstance(named, str) else named)
        if "number" in allowed:
            allowed |= {"integer"}
    if "enum" in schema:
        allowed = allowed.intersection(frozenset().union(*map(_types_of, schema["enum"])))
    return allowed.intersection(_types_of(schema["const"])) if "const" in schema else allowed


def _types_of(value: object) -> frozenset[str]:
    if value is None:
        return frozenset(("null",))
    if isinstance(value, bool):
        return frozenset(("boolean",))
    if isinstance(value, (int, float)):
        is_whole = isinstance(value, int) or value.is_integer()
        return frozenset(("integer", "number")) if is_whole else frozenset(("number",))
    if isinstance(value, str):
        return frozenset(("string",))
    return frozenset(("array",)) if isinstance(value, list) else frozenset(("object",))


def _step(key: str) -> str:
    return _cut(key).replace("~", "~0").replace("/", "~1")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
