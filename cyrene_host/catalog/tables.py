"""The strict frozen model behind each object of the operator's files, and what its refusals mean to a person."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from cyrene_host.catalog.faults import nearest

__all__ = ["Problem", "Table", "Texts", "key_of", "keys_of", "problems", "refusal"]

Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]

_SECRET_KEYS = frozenset({"api_key", "config", "env", "headers"})
_WANTED = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "an object",
    "string_too_short": "a string that is not empty",
    "string_type": "a string",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}


class Table(BaseModel):
    """Strict, frozen, closed: a key it does not know is a fault, and so is a value that needs converting."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True, allow_inf_nan=False, hide_input_in_errors=True
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal of a model: the keys and indexes that lead to it, what is wrong, how to mend it."""

    keys: tuple[str | int, ...]
    what: str
    mend: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer."""
        return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in self.keys)


def refusal(what: str, mend: str) -> PydanticCustomError:
    """Make the error by which a validator refuses a value: two parts, pydantic adds the place."""
    return PydanticCustomError("cyrene", "{what}", {"what": what, "mend": mend})


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return what a model reads: each key (all spellings of it) with its field."""
    known = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        spellings = alias.choices if isinstance(alias, AliasChoices) else [alias or name]
        known.update({str(spelling): field for spelling in spellings})
    return known


def key_of(name: str, field: FieldInfo) -> str:
    """Return the first spelling of a field's key."""
    alias = field.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else str(alias or name)


def problems(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Say in plain words, for each refusal of `model`, what is wrong and how to mend it.

    A key that is missing because it is misspelt is told once, as the unknown key.
    """
    refusals = error.errors(include_url=False)
    misspelt = [details["loc"] for details in refusals if details["type"] == "extra_forbidden"]
    meant = {(*keys[:-1], nearest(str(keys[-1]), _known_at(model, keys[:-1]))) for keys in misspelt}
    return [
        _problem(details, model) for details in refusals if details["type"] != "missing" or details["loc"] not in meant
    ]


def _problem(details: ErrorDetails, model: type[BaseModel]) -> Problem:
    keys = tuple(details["loc"])
    kind, context = details["type"], details.get("ctx", {})
    if kind == "cyrene":
        return Problem(keys, context["what"], context["mend"])
    parents = _known_at(model, keys[:-1])
    name = _spoken(keys)
    if kind == "extra_forbidden":
        return Problem(keys, f"unknown key {name}", _nearest_key(str(keys[-1]), parents))
    if kind == "missing":
        return Problem(keys, f"key {name} is missing", f"add {name}: {_first_sentence(parents[str(keys[-1])])}")
    if kind in ("literal_error", "enum"):
        near = nearest(str(details["input"]), context["expected"].replace("'", "").replace(" or ", ", ").split(", "))
        mend = f"did you mean '{near}'?" if near else f"write {context['expected']}"
        return Problem(keys, f"{name} must be {context['expected']}, not {_shown(details)}", mend)
    wanted = _WANTED.get(kind) or _bound(kind, context) or f"right: {details['msg'].lower()}"
    return Problem(keys, f"{name} must be {wanted}, not {_shown(details)}", _mend_of(keys, parents, wanted))


def _first_sentence(field: FieldInfo) -> str:
    return (field.description or "").partition(". ")[0]


def _bound(kind: str, context: dict[str, Any]) -> str:
    words, key = _BOUNDS.get(kind, ("", ""))
    return f"{words} {context[key]:g}" if words else ""


def _spoken(keys: tuple[str | int, ...]) -> str:
    if not keys:
        return "the value"
    last = keys[-1]
    return f"{last + 1}. value of '{keys[-2]}'" if isinstance(last, int) and len(keys) > 1 else f"'{last}'"


def _shown(details: ErrorDetails) -> str:
    value = details["input"]
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if _SECRET_KEYS.intersection(details["loc"]):
        return "this value"
    text = f"'{value}'" if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _nearest_key(key: str, known: dict[str, FieldInfo]) -> str:
    near = nearest(key, known)
    return f"did you mean '{near}'?" if near else f"known keys: {', '.join(known) or 'none'}"


def _mend_of(keys: tuple[str | int, ...], parents: dict[str, FieldInfo], wanted: str) -> str:
    field = parents.get(str(keys[-1])) if keys else None
    if field is None or field.is_required() or field.default_factory is not None or field.default in (None, (), {}):
        return f"write {wanted}" if wanted in _WANTED.values() else "correct the value"
    return f"write another value, or leave it out for the default {json.dumps(field.default)}"


def _known_at(model: type[BaseModel], keys: tuple[str | int, ...]) -> dict[str, FieldInfo]:
    """Return the keys that the object at `keys` may have; empty where any key may be."""
    kind: Any = model
    for key in keys:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = _without_none(keys_of(kind)[str(key)].annotation)
        else:
            kind = _without_none((get_args(kind) or (None,))[-1])
    return keys_of(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    return next(kind for kind in get_args(annotation) if kind is not type(None))
