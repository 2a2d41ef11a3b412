"""What is wrong with a value, in sentences for a model: bounded, with the place, without the value."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from pydantic_core import to_json

from cyrene_host.catalog.faults import nearest
from cyrene_host.catalog.schemas.rules import evaluations

__all__ = ["MAX_FAULTS", "Fault", "explain", "pointer"]

MAX_FAULTS = 20

_MAX_CHARS = 200
_SHOWN = 80
_SUGGESTED_FROM = 200
# The validator lists all faults before it gives the first: 100,000 take 0.7 s. So it only lists what is few.
_MAX_EVALUATIONS = 2_000

_ARTICLES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a value.

    Attributes:
        path: JSON pointer into the value; of the object where a key is missing or unexpected.
        message: one sentence of at most 200 characters; it never shows the value.
        rule: the schema keyword that is not kept.
    """

    path: str
    message: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def explain(
    validator: jsonschema_rs.Validator, enforced: dict[str, Any], value: object, *, is_explosive: bool
) -> list[Fault]:
    """Return at most 20 faults of a value; none if it fits.

    Args:
        validator: of `enforced`.
        enforced: the schema, for suggestions.
        value: what `validator.is_valid` refused.
        is_explosive: the schema has alternatives and references: the alternatives of one value may multiply.
    """
    try:
        if sum(itertools.islice(evaluations(enforced, value), _MAX_EVALUATIONS)) < _MAX_EVALUATIONS:
            return _bounded(validator.iter_errors(value), enforced)
        if not is_explosive:
            return _first(validator, enforced, value)
        fault = Fault("", "the value does not fit the schema; it is too large to say where", "schema")
        return [] if validator.is_valid(value) else [fault]
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        return [Fault("", f"the value cannot be checked ({type(error).__name__})", "schema")]


def _first(validator: jsonschema_rs.Validator, enforced: dict[str, Any], value: object) -> list[Fault]:
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return _bounded(iter([error]), enforced)
    return []


def _bounded(errors: Iterator[jsonschema_rs.ValidationError], enforced: dict[str, Any]) -> list[Fault]:
    faults = (fault for error in errors for fault in _faults(error, enforced))
    return list(dict.fromkeys(itertools.islice(faults, MAX_FAULTS)))


def pointer(path: Sequence[str | int]) -> str:
    """Return a path as a JSON pointer, long keys cut to 80 characters."""
    return "".join("/" + str(step)[:_SHOWN].replace("~", "~0").replace("/", "~1") for step in path)


def _faults(error: jsonschema_rs.ValidationError, enforced: dict[str, Any]) -> Iterator[Fault]:
    rule = error.kind.name
    if rule in ("anyOf", "oneOf"):
        yield from _faults_of_branches(error, enforced)
    elif rule in ("additionalProperties", "unevaluatedProperties"):
        known = _declared(error, enforced)
        for key in error.kind.as_dict()["unexpected"]:
            yield _fault(error, _unexpected(key, known))
    else:
        yield _fault(error, _sentence(error))


def _fault(error: jsonschema_rs.ValidationError, message: str) -> Fault:
    if len(message) > _MAX_CHARS:
        message = message[: _MAX_CHARS - 1] + "…"
    return Fault(pointer(error.instance_path), message, error.kind.name)


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    facts = error.kind.as_dict()
    match error.kind.name:
        case "type":
            return f"must be {_types(facts['types'])}, not {_ARTICLES[_type(error.instance)]}"
        case "required":
            return f"the key '{facts['property'][:_SHOWN]}' is missing"
        case "enum":
            return f"must be one of {', '.join(map(_json, facts['options']))}"
        case "const":
            return f"must be {_json(facts['expected_value'])}"
        case "falseSchema":
            return "takes no keys" if error.schema_path[-1:] == ["additionalProperties"] else "must be left out"
        case _:
            return error.message


def _faults_of_branches(error: jsonschema_rs.ValidationError, enforced: dict[str, Any]) -> Iterator[Fault]:
    """The faults of the one alternative that was meant, if that is plain; else one fault for all."""
    here = error.instance_path
    context: list[list[jsonschema_rs.ValidationError]] = error.kind.as_dict()["context"]
    branches = [branch for branch in context if branch]
    fitting = [branch for branch in branches if not any(_is_about(nested, here, "type") for nested in branch)]
    if len(fitting) > 1:
        # Alternatives told apart by a constant, such as "kind": the one whose constant is met.
        fitting = [branch for branch in fitting if not any(_is_about(nested, None, "const") for nested in branch)]
    if len(fitting) == 1:
        for nested in fitting[0]:
            yield from _faults(nested, enforced)
    elif branches and all(_is_about(branch[0], here, "type") for branch in branches):
        types = [name for branch in branches for name in branch[0].kind.as_dict()["types"]]
        yield _fault(error, f"must be {_types(types)}, not {_ARTICLES[_type(error.instance)]}")
    elif len(branches) < len(context):
        yield _fault(error, "must fit exactly one of the alternatives, fits several")
    else:
        yield _fault(error, f"must fit one of {len(branches)} alternatives, fits none")


def _is_about(error: jsonschema_rs.ValidationError, path: Sequence[str | int] | None, rule: str) -> bool:
    return error.kind.name == rule and (path is None or error.instance_path == path)


def _declared(error: jsonschema_rs.ValidationError, enforced: Any) -> list[str]:
    """The keys that the schema which refused a key declares."""
    schema: Any = enforced
    try:
        for step in error.schema_path[:-1]:
            schema = schema[str(step) if isinstance(schema, dict) else step]
        return list(schema["properties"])
    except (KeyError, IndexError, TypeError):
        return []


def _unexpected(key: str, known: list[str]) -> str:
    sentence = f"unexpected key '{key[:_SHOWN]}'"
    near = nearest(key[:_SHOWN], known[:_SUGGESTED_FROM])
    if near:
        return f"{sentence}; did you mean '{near}'?"
    return f"{sentence}; known: {', '.join(known)}" if known else f"{sentence}; none are known here"


def _types(names: Sequence[str]) -> str:
    return " or ".join(_ARTICLES.get(name, name) for name in sorted(set(names)))


def _type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (dict, list)):
        return "object" if isinstance(value, dict) else "array"
    return "number"


def _json(value: object) -> str:
    text = to_json(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
