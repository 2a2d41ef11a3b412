"""A function's signature as a contract: JSON Schemas, what the host injects, and how to bind arguments."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, from_json
from typing_extensions import is_typeddict

from cyrene_sdk.binding import Binder, BoundParameter
from cyrene_sdk.context import CurrentCall
from cyrene_sdk.docstrings import read_docstring
from cyrene_sdk.errors import DefinitionError
from cyrene_sdk.protocols import HostAPI, PluginConfig, Report
from cyrene_sdk.types import Wire

__all__ = ["Signature", "UnresolvedNameError", "place_of", "read_signature", "tidy", "typed_parameters"]

_INJECTED = (Report, CurrentCall, HostAPI, PluginConfig, logging.Logger)
_SCHEMA_MAPS = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_VALUES = frozenset({"default", "const", "enum", "examples", "required"})
_JSON_MEND = "use JSON types, Literal, an enum, date, Path, UUID, a dataclass, a TypedDict or a pydantic model"


class UnresolvedNameError(DefinitionError):
    """An annotation names something that does not exist, or not yet."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function's parameters, annotations and docstring say.

    `returns` is empty unless the function returns a model, dataclass or TypedDict. `injected` maps the
    parameters that the host fills to their type.
    """

    parameters: dict[str, Any]
    returns: dict[str, Any]
    description: str
    injected: dict[str, type]
    bind: Binder


def typed_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters without `self`, once it is certain that each is typed and can be given by name.

    Raises:
        DefinitionError: one is untyped, positional-only, `*args` or `**kwargs`; or a method lacks `self`.
    """
    found = list(inspect.signature(function).parameters.values())
    if _is_method(function):
        if not found or (found[0].name != "self" and found[0].annotation is not inspect.Parameter.empty):
            raise DefinitionError(
                f"tool method '{function.__name__}' has no `self`",
                where=place_of(function),
                mend="write `self` before its other parameters",
            )
        found = found[1:]
    for parameter in found:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            starred = parameter.replace(annotation=parameter.empty, default=parameter.empty)
            raise DefinitionError(
                f"parameter '{starred}' of tool function '{function.__name__}' cannot be given by name",
                where=place_of(function),
                mend="name each parameter; a model sends a JSON object with these names",
            )
        if parameter.annotation is parameter.empty:
            raise DefinitionError(
                f"parameter '{parameter.name}' of tool function '{function.__name__}' has no type",
                where=place_of(function),
                mend=f"write its type, such as `{parameter.name}: str`; it tells the model what to send",
            )
    return found


def read_signature(function: Callable[..., Any], names: Mapping[str, Any] | None = None) -> Signature:
    """Read a function or method.

    Args:
        function: a plain function, or a method as it stands in its class.
        names: names local to where it is defined, for annotations that are text.
    Raises:
        UnresolvedNameError: a name in an annotation is unknown.
        DefinitionError: a parameter cannot be filled from JSON.
    """
    parameters = typed_parameters(function)
    hints = _resolved_hints(function, names or {})
    injected = {p.name: kind for p in parameters if (kind := _injected_type(hints[p.name]))}
    filled = [_bound_parameter(function, p, hints[p.name]) for p in parameters if p.name not in injected]
    description, texts = read_docstring(function.__doc__)
    defaults = {p.name: p.default for p in parameters}
    return Signature(
        parameters=_object_schema(filled, defaults, texts),
        returns=_returns_schema(function, hints.get("return")),
        description=description,
        injected=injected,
        bind=Binder(filled),
    )


def place_of(function: Callable[..., Any]) -> str:
    """Return class and function, file and line, as an error's `where`."""
    code = inspect.unwrap(function).__code__
    return f"{_local_qualname(function)}, {code.co_filename}:{code.co_firstlineno}"


def tidy(schema: Any) -> Any:
    """Return a copy without the titles that pydantic adds; a model reads the names anyway."""
    if isinstance(schema, list):
        return [tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: part
        if key in _VALUES
        else {name: tidy(inner) for name, inner in part.items()}
        if key in _SCHEMA_MAPS
        else tidy(part)
        for key, part in schema.items()
        if key != "title"
    }


def _local_qualname(function: Callable[..., Any]) -> str:
    return function.__qualname__.rpartition("<locals>.")[2]


def _is_method(function: Callable[..., Any]) -> bool:
    return inspect.isfunction(function) and "." in _local_qualname(function)


def _resolved_hints(function: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, localns=dict(names), include_extras=True)
    except NameError as error:
        raise _unresolved(function, error) from error


def _unresolved(function: Callable[..., Any], error: NameError) -> UnresolvedNameError:
    return UnresolvedNameError(
        f"an annotation of tool function '{function.__name__}' names '{error.name}', which is not defined",
        where=place_of(function),
        mend=f"import or define '{error.name}' at module level, outside `if TYPE_CHECKING:`",
    )


def _injected_type(annotation: Any) -> type | None:
    if get_origin(annotation) is Annotated:
        return _injected_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return next(filter(None, map(_injected_type, get_args(annotation))), None)
    return annotation if annotation in _INJECTED else None


def _bound_parameter(function: Callable[..., Any], parameter: inspect.Parameter, annotation: Any) -> BoundParameter:
    if any(isinstance(part, FieldInfo) and not part.is_required() for part in _metadata(annotation)) or isinstance(
        parameter.default, FieldInfo
    ):
        raise DefinitionError(
            f"the default of parameter '{parameter.name}' of tool function '{function.__name__}' stands in a Field",
            where=place_of(function),
            mend=f'write `{parameter.name}: Annotated[<type>, Field(description="…")] = <default>`',
        )
    try:
        adapter = TypeAdapter[Any](annotation)
        adapter.json_schema()
    except PydanticUserError as error:
        raise _no_json_form(function, f"parameter '{parameter.name}'", error) from error
    return BoundParameter(parameter.name, annotation, adapter, parameter.default is parameter.empty)


def _no_json_form(function: Callable[..., Any], what: str, error: PydanticUserError) -> DefinitionError:
    place = place_of(function)
    if error.code == "class-not-fully-defined":
        return UnresolvedNameError(
            f"{what} of tool function '{function.__name__}' has a type that names something which is not defined",
            where=place,
            mend="import or define all parts of the type at module level, outside `if TYPE_CHECKING:`",
        )
    is_old_typed_dict = error.code == "typed-dict-version"
    return DefinitionError(
        f"{what} of tool function '{function.__name__}' has a type without a JSON form",
        where=place,
        mend="import TypedDict from typing_extensions (before Python 3.12)" if is_old_typed_dict else _JSON_MEND,
    )


def _object_schema(
    filled: list[BoundParameter], defaults: Mapping[str, Any], texts: Mapping[str, str]
) -> dict[str, Any]:
    made, shared = TypeAdapter.json_schemas([(p.name, "validation", p.adapter) for p in filled])
    properties = {}
    for parameter in filled:
        schema = tidy(made[parameter.name, "validation"])
        text = _text_in(parameter.annotation) or schema.get("description") or texts.get(parameter.name)
        schema |= {"description": text} if text else {}
        schema |= {} if parameter.is_required else _default_schema(parameter.adapter, defaults[parameter.name])
        properties[parameter.name] = schema
    required = [p.name for p in filled if p.is_required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **({"$defs": tidy(shared)["$defs"]} if "$defs" in shared else {}),
    }


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _text_in(annotation: Any) -> str | None:
    """Return the text of `Annotated[type, "text"]`, also inside a union."""
    own = next((part for part in _metadata(annotation) if isinstance(part, str)), None)
    if own is None and get_origin(annotation) in (Union, UnionType):
        return next(filter(None, map(_text_in, get_args(annotation))), None)
    return own


def _default_schema(adapter: TypeAdapter[Any], default: Any) -> dict[str, Any]:
    """Return the default as the schema's keyword, unless JSON cannot say it and give the same value back."""
    try:
        text = adapter.dump_json(default, warnings=False)
        return {"default": from_json(text)} if adapter.validate_json(text) == default else {}
    except (PydanticSerializationError, ValidationError):
        return {}


def _returns_schema(function: Callable[..., Any], annotation: Any) -> dict[str, Any]:
    returned = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    kind = get_origin(returned) or returned
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, Wire)
    if not (is_model or is_typeddict(kind) or (isinstance(kind, type) and dataclasses.is_dataclass(kind))):
        return {}
    try:
        made: dict[str, Any] = tidy(TypeAdapter[Any](returned).json_schema(mode="serialization"))
    except PydanticUserError as error:
        raise _no_json_form(function, "the result", error) from error
    return made
