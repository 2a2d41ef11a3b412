"""Binding: checked JSON arguments become the keyword arguments of a Python function."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, to_json

from cyrene_sdk.errors import ArgumentError

__all__ = ["Binder", "BoundParameter", "faults_of"]

_SCALARS = (str, int, float, bool, types.NoneType)
_JSON_TYPES = frozenset({*_SCALARS, list, dict})
_NONE_PLAIN: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """One parameter that a caller fills: its name, resolved annotation and the adapter made from it."""

    name: str
    annotation: Any
    adapter: TypeAdapter[Any]
    is_required: bool


class Binder:
    """Turns a JSON object that fits the schema into keyword arguments.

    A value whose Python type is already the annotated JSON type passes through; any other goes through
    pydantic, which also runs what a schema cannot say (validators, constraints). Defaults stay the function's.
    """

    __slots__ = ("_adapters", "_plain", "_required", "converts")

    def __init__(self, parameters: Sequence[BoundParameter]) -> None:
        self._adapters = {p.name: p.adapter for p in parameters}
        self._plain = {p.name: _plain_types(p.annotation) for p in parameters}
        self._required = frozenset(p.name for p in parameters if p.is_required)
        self.converts = not all(self._plain.values())

    def __call__(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the keyword arguments: those given themselves where none has to be converted.

        Raises:
            ArgumentError: one is missing, unknown or does not fit; `path` points to it.
        """
        converted = {}
        plain = self._plain
        for name, value in arguments.items():
            if name not in plain or type(value) not in plain[name]:
                converted[name] = self._converted(name, value)
        if len(arguments) < len(plain) and not self._required <= arguments.keys():
            missing = min(self._required - arguments.keys())
            raise ArgumentError(f"argument '{missing}' is missing", path=_pointer([missing]))
        return {**arguments, **converted} if converted else arguments

    def _converted(self, name: str, value: Any) -> Any:
        adapter = self._adapters.get(name)
        if adapter is None:
            raise ArgumentError(f"there is no argument '{name}'", path=_pointer([name]))
        try:
            # By way of JSON text, since pydantic takes a date, a path or a tuple only from JSON under `strict`.
            return adapter.validate_json(to_json(value))
        except ValidationError as error:
            inside, message = faults_of(error, value)[0]
            path = _pointer([name]) + inside
            argument = f"argument '{name}', at {path}" if inside else f"argument '{name}'"
            # Not `from error`: pydantic's text shows the value, which may be a secret.
            raise ArgumentError(f"{argument}: {message}", path=path) from None


def faults_of(error: ValidationError, value: Any) -> list[tuple[str, str]]:
    """Return (JSON pointer into `value`, sentence) for each fault; the sentences do not show the values."""
    details = error.errors(include_url=False, include_input=False)
    return [(_pointer(_steps(fault, value)), _message(fault)) for fault in details]


def _message(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    if "error" in context and fault["type"] in ("value_error", "assertion_error"):
        return str(context["error"])
    if fault["type"] == "union_tag_invalid":
        return f"Input should have one of the tags {context['expected_tags']}"
    return fault["msg"]


def _steps(fault: ErrorDetails, value: Any) -> list[str | int]:
    """Keep what leads into the value; pydantic also lists the members of unions and its own functions."""
    steps: list[str | int] = []
    for step in fault["loc"]:
        if isinstance(value, Mapping | list | tuple):
            inside: Mapping[Any, Any] = value if isinstance(value, Mapping) else dict(enumerate(value))
            if step in inside:
                value = inside[step]
                steps.append(step)
    return [*steps, fault["loc"][-1]] if fault["type"] == "missing" else steps


def _pointer(steps: Sequence[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _plain_types(annotation: Any) -> frozenset[Any]:
    """Return the types whose values, once they fit the schema, are already what the annotation says.

    Empty where pydantic has to look: a float inside a list may have come as an integer.
    """
    origin, members = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return _JSON_TYPES
    if annotation is None or annotation in _SCALARS:
        return frozenset({types.NoneType if annotation is None else annotation})
    if annotation in (list, dict):
        return frozenset({annotation})
    if origin is Annotated:
        return _plain_types(members[0]) if all(map(_only_describes, members[1:])) else _NONE_PLAIN
    if origin is Literal:
        return _all_or_nothing(frozenset({type(member)}) & _JSON_TYPES for member in members)
    if origin in (Union, types.UnionType):
        return _all_or_nothing(map(_plain_types, members))
    if origin is list or (origin is dict and members[0] is str):
        inside = _plain_types(members[-1])
        return frozenset({origin}) if inside and (float not in inside or int in inside) else _NONE_PLAIN
    return _NONE_PLAIN


def _only_describes(metadata: Any) -> bool:
    return isinstance(metadata, str) or (isinstance(metadata, FieldInfo) and not metadata.metadata)


def _all_or_nothing(kinds: Iterable[frozenset[Any]]) -> frozenset[Any]:
    found = list(kinds)
    return frozenset[Any]().union(*found) if all(found) else _NONE_PLAIN
