"""What a worker answers, read as what it is: the words of code that nobody vouches for."""

from __future__ import annotations

from typing import Any, cast, get_args

from cyrene_sdk._worker.faults import Fault, Retry, Stage, StageError
from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk._worker.outcomes import OUTPUT_BYTES, Fields, fields_of_answer
from cyrene_sdk._worker.progress import Progress
from cyrene_sdk._worker.runner import ToolListing
from cyrene_sdk._worker.wire import Message
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import PluginMetadata, ProgressStatus, ToolDefinition

__all__ = ["call_answer", "metadata_answer", "progress_told", "stage_failure", "tools_answer"]

TEXT_CHARS = 2_100
TRACE_CHARS = 20_000
MOST_TOOLS = 1_000
MOST_POINTERS = 100
_STATUSES = frozenset(ProgressStatus)
_RETRIES = frozenset(get_args(Retry))
_KINDS = frozenset(
    {
        ErrorKind.INVALID_ARGUMENTS,
        ErrorKind.TOOL_ERROR,
        ErrorKind.TIMEOUT,
        ErrorKind.OUTPUT_INVALID,
        ErrorKind.OUTPUT_TOO_LARGE,
        ErrorKind.OVERLOADED,
        ErrorKind.UNKNOWN_TOOL,
        ErrorKind.CANCELLED,
    }
)


def call_answer(message: Message) -> Fields | Fault:
    """Return the outcome of a call; what is no outcome is `output_invalid`."""
    told = message.get("fault")
    if told is not None:
        return _fault(told)
    try:
        return fields_of_answer(message.get("fields"))
    except (GateError, TypeError, ValueError) as error:
        too_large = isinstance(error, GateError) and error.rule in ("size", "nodes")
        kind = ErrorKind.OUTPUT_TOO_LARGE if too_large else ErrorKind.OUTPUT_INVALID
        return Fault(kind, f"the worker's answer was refused: {str(error)[:TEXT_CHARS]}")


def metadata_answer(message: Message) -> PluginMetadata:
    """Return what a plugin says of itself.

    Raises:
        StageError: it is no metadata.
    """
    try:
        return PluginMetadata.from_json(checked(message["value"]["metadata"]))  # type: ignore[arg-type]  # refused if no object
    except (GateError, ValueError, TypeError, KeyError) as error:
        raise StageError(f"its metadata is refused: {str(error)[:TEXT_CHARS]}", stage="load") from error


def tools_answer(message: Message) -> ToolListing:
    """Return the live definitions.

    Raises:
        StageError: they are no definitions.
    """
    try:
        value = cast("dict[str, Any]", checked(message["value"], max_bytes=4 * OUTPUT_BYTES))
        definitions = [ToolDefinition.from_json(told) for told in value["tools"][:MOST_TOOLS]]
        faults = {str(name): str(sentence)[:TEXT_CHARS] for name, sentence in value["faults"].items()}
        return ToolListing(definitions, faults)
    except (GateError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StageError(f"its tools are refused: {str(error)[:TEXT_CHARS]}", stage="tools") from error


def progress_told(message: Message) -> Progress | None:
    """Return the progress that a worker tells; None for what is none."""
    execution_id, progress = message.get("execution_id"), message.get("progress")
    text, status = message.get("message"), message.get("status")
    if not (isinstance(execution_id, str) and isinstance(text, str) and isinstance(status, str)):
        return None
    if type(progress) not in (int, float) or status not in _STATUSES:
        return None
    return Progress(execution_id, cast(float, progress), text, status)


def stage_failure(told: Any, stage: Stage) -> StageError:
    """Return the error of a stage as the worker tells it."""
    error: dict[str, Any] = told if isinstance(told, dict) else {}
    told_pointers = error.get("pointers")
    pointers = tuple(
        (_text(told[0]), _text(told[1]))
        for told in (told_pointers[:MOST_POINTERS] if isinstance(told_pointers, list) else ())
        if isinstance(told, list) and len(told) == 2
    )
    return StageError(
        _text(error.get("what")) or f"'{stage}' failed",
        stage=stage,
        where=_text(error.get("where")) or None,
        mend=_text(error.get("mend")) or None,
        trace=_text(error.get("trace"), TRACE_CHARS),
        pointers=pointers,
        timed_out=error.get("timed_out") is True,
    )


def _fault(told: Any) -> Fault:
    fault: dict[str, Any] = told if isinstance(told, dict) else {}
    kind = fault.get("kind")
    retry = fault.get("retry")
    return Fault(
        ErrorKind(kind) if isinstance(kind, str) and kind in _KINDS else ErrorKind.TOOL_ERROR,
        _text(fault.get("message")) or "the tool failed and gave no reason",
        retry=cast(Retry, retry) if isinstance(retry, str) and retry in _RETRIES else "never",
        reason="tool" if fault.get("reason") == "tool" else "",
        path=_text(fault.get("path")),
        exception=_text(fault.get("exception")),
        trace=_text(fault.get("trace"), TRACE_CHARS),
    )


def _text(value: Any, chars: int = TEXT_CHARS) -> str:
    return value[:chars] if isinstance(value, str) else ""
