"""What one attempt brought: the fields of a ToolResult that a tool may set, as plain JSON."""

from __future__ import annotations

import json
from typing import Any, TypeGuard, cast

from pydantic import BaseModel

from cyrene_sdk._worker.faults import Fault, sentence_of
from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import Image, ToolResult

__all__ = ["OUTPUT_BYTES", "Fields", "fields_of_answer", "is_plain", "outcome_of"]

Fields = dict[str, Any]

OUTPUT_BYTES = 1_048_576
SHORT_TEXT = 65_536
_ONLY_OUTPUT = {"success", "output"}
TOOL_FIELDS: dict[str, tuple[type, ...]] = {
    "success": (bool,),
    "output": (str,),
    "error": (str,),
    "data": (dict, list, str, int, float, bool, type(None)),
    "images": (list,),
    "reason": (str,),
    "retryable": (bool,),
    "effect": (str, type(None)),
    "notes": (list,),
    "need_ai_reply": (bool, type(None)),
    "already_sent": (bool,),
    "send_result_text": (bool,),
    "no_reply": (bool,),
    "save_to_memory": (bool,),
}


def outcome_of(value: object) -> Fields | Fault:
    """Turn what a tool returned into the fields it sets of a ToolResult, or into a fault.

    A str is the output; a dict, list, number, bool, None or model is `data` with its JSON text as output;
    a ToolResult is itself; anything else is `output_invalid`.
    """
    try:
        return _fields_of(value)
    except GateError as refused:
        too_large = refused.rule in ("size", "nodes")
        kind = ErrorKind.OUTPUT_TOO_LARGE if too_large else ErrorKind.OUTPUT_INVALID
        return Fault(kind, f"the tool's result was refused: {refused}", path=refused.path)
    except BaseException as error:  # noqa: BLE001 - a returned model is plugin code too
        return Fault(ErrorKind.OUTPUT_INVALID, f"the tool's result cannot be read: {sentence_of(error)}")


def fields_of_answer(told: object) -> Fields:
    """Return what another process says that a tool set, once it is known to be just that.

    Raises:
        GateError, TypeError, ValueError: it is no plain JSON, too large, or has a key or type that no result has.
    """
    if type(told) is dict and told.keys() == _ONLY_OUTPUT and told["success"] is True and is_plain(told["output"]):
        return told
    fields = checked(told, max_bytes=2 * OUTPUT_BYTES)
    if type(fields) is not dict or type(fields.get("success")) is not bool:
        raise TypeError("it is no result")
    if unknown := fields.keys() - TOOL_FIELDS.keys():
        raise TypeError(f"it has the unknown key '{min(unknown)[:80]}'")
    _check_types(fields)
    if "images" in fields:
        fields["images"] = [Image.from_json(image).to_dict() for image in fields["images"]]
    return fields


def is_plain(value: object) -> TypeGuard[str]:
    """Whether it is a text that is certainly good, as nearly every result is: an output without another look."""
    return type(value) is str and len(value) <= SHORT_TEXT and value.isascii()


def _fields_of(value: object) -> Fields:
    if isinstance(value, str):
        return {"success": True, "output": checked(value, max_bytes=OUTPUT_BYTES)}
    if isinstance(value, ToolResult):
        return _fields_of_result(value)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    data = checked(value, max_bytes=OUTPUT_BYTES)
    return {"success": True, "output": json.dumps(data, ensure_ascii=False), "data": data}


def _fields_of_result(result: ToolResult) -> Fields:
    own = result.model_fields_set
    fields: Fields = {name: getattr(result, name) for name in TOOL_FIELDS if name in own or name == "success"}
    if "images" in fields:
        fields["images"] = [Image.from_json(image.to_dict()).to_dict() for image in result.images]
    own_copy = cast(Fields, checked(fields, max_bytes=2 * OUTPUT_BYTES))
    _check_types(own_copy)
    for text in ("output", "error"):
        if len(own_copy.get(text, "")) > SHORT_TEXT:
            checked(own_copy[text], max_bytes=OUTPUT_BYTES)
    return own_copy


def _check_types(fields: Fields) -> None:
    """Refuse what pydantic lets through unseen, by `model_construct` or `model_copy`."""
    for name, value in fields.items():
        if type(value) not in TOOL_FIELDS[name]:
            raise TypeError(f"its '{name}' is a {type(value).__name__}")
    if fields.get("effect") not in (None, "none", "unknown"):
        raise ValueError("its 'effect' is neither 'none' nor 'unknown'")
    if not all(type(note) is str for note in fields.get("notes", ())):
        raise TypeError("its 'notes' are not all texts")
