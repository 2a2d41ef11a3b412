"""A tool's schema, compiled: what arguments and results are checked against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jsonschema_rs
from pydantic_core import from_json, to_json

from cyrene_host.catalog.schemas.closing import closed
from cyrene_host.catalog.schemas.explain import Fault, explain, pointer
from cyrene_host.catalog.schemas.rules import MAX_DEPTH, SchemaInvalidError, Survey

__all__ = ["MAX_BYTES", "CompiledSchema"]

MAX_BYTES = 65_536

_MASK = "the value"
_SHOWN = 160


class CompiledSchema:
    """A JSON Schema that keeps the rules: checked when its plugin is loaded, compiled when it is first used.

    The check makes sure that it can be compiled, in a fifth of the time. Nothing is ever fetched.
    `format` is a remark, not a check. Without `$schema` draft 2020-12 is meant.

    Args:
        schema: the plugin's schema (at most 64 KiB as JSON, 2,000 schemas inside it, 32 of them inside one another);
            it is not changed.
        close: for arguments: the root must take an object, and objects take declared keys only (see `closed`).
            False for results: any root, as the plugin wrote it.
    Raises:
        SchemaInvalidError: `what` names the rule, `where` is a JSON pointer into the schema.
    Attributes:
        enforced: the schema that values are checked against, a copy.
    Source: JSON Schema 2020-12; earlier drafts by their `$schema`.
    """

    def __init__(self, schema: Mapping[str, Any], *, close: bool = True) -> None:
        plain = _plain(schema)
        survey = Survey(plain)
        try:
            if survey.needs_compiler or not jsonschema_rs.meta.is_valid(plain):
                _compiled(plain)
        except jsonschema_rs.ValidationError as error:
            raise _broken(error) from error
        if close:
            _refuse_other_than_object(plain)
            plain = closed(plain, survey)
        self.enforced = plain
        self._is_explosive = survey.has_choices and bool(survey.holders)

    @cached_property
    def is_valid(self) -> Callable[[object], bool]:
        """Whether a plain JSON value fits: the validator's own method, since every call passes here."""
        return self._validator.is_valid

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return _compiled(self.enforced)

    def faults(self, value: object) -> list[Fault]:
        """Return what is wrong with a plain JSON value: at most 20 faults, none if it fits."""
        return explain(self._validator, self.enforced, value, is_explosive=self._is_explosive)


def _plain(schema: object) -> dict[str, Any]:
    """The schema as the JSON it will be sent as: a fresh copy, its texts and numbers checked on the way."""
    if not isinstance(schema, (dict, Mapping)):
        raise SchemaInvalidError(
            f"the schema is of type '{type(schema).__name__}', not an object",
            where="",
            mend='an object schema looks like {"type": "object", "properties": {…}}',
        )
    try:
        text = to_json(schema if isinstance(schema, dict) else dict(schema), inf_nan_mode="constants")
        if len(text) > MAX_BYTES:
            raise SchemaInvalidError(
                f"the schema has {len(text)} bytes, more than {MAX_BYTES}",
                where="",
                mend="shorten its descriptions and lists, or take a free-form object",
            )
        plain: dict[str, Any] = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _no_json(error) from error
    return plain


def _no_json(error: ValueError) -> SchemaInvalidError:
    if any(words in str(error) for words in ("depth exceeded", "recursion limit")):
        what, mend = f"the schema is more than {MAX_DEPTH} schemas deep", "take flatter arguments, or free-form objects"
    else:
        what = f"the schema is no JSON: {str(error)[:_SHOWN]}"
        mend = "use text, finite numbers, booleans, None, lists and dicts only"
    return SchemaInvalidError(what, where="", mend=mend)


def _refuse_other_than_object(schema: dict[str, Any]) -> None:
    named = schema.get("type", "object")
    if named != "object" and not (isinstance(named, list) and "object" in named):
        raise SchemaInvalidError(
            f"the arguments of a tool are an object, the schema says {to_json(named).decode()[:_SHOWN]}",
            where="/type",
            mend='say "type": "object" and name each argument under "properties"',
        )


def _compiled(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        schema,
        offline=True,
        validate_formats=False,
        mask=_MASK,
        pattern_options=jsonschema_rs.RegexOptions(),
    )


def _broken(error: jsonschema_rs.ValidationError) -> SchemaInvalidError:
    where = pointer(error.instance_path)
    shown = to_json(error.instance).decode()[:_SHOWN]
    if error.kind.name == "format":
        return SchemaInvalidError(
            f"the pattern {shown} is no regular expression that matches in linear time",
            where=where,
            mend="do without look-around and back-references, or check the text in the tool (Tool.validate)",
        )
    if "meta-schema" in error.message:
        return SchemaInvalidError(
            f"the schema's dialect is unknown: {error.message[:_SHOWN]}",
            where="/$schema",
            mend="leave '$schema' out (draft 2020-12 is meant), or name draft 4, 6, 7, 2019-09 or 2020-12",
        )
    sentence = f"{shown} cannot stand here" if error.kind.name == "anyOf" else error.message.replace(_MASK, shown, 1)
    return SchemaInvalidError(
        f"the schema breaks JSON Schema: {sentence[:_SHOWN]}",
        where=where,
        mend="see json-schema.org for what this keyword takes",
    )
