"""What goes wrong in plugin code, told apart: a stage of a plugin's life, or one call."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cyrene_sdk.errors import ArgumentError, CyreneError, ErrorKind, ModelRetry, ToolFailure, Transient

__all__ = ["Fault", "Retry", "Stage", "StageError", "fault_of", "sentence_of", "trace_of"]

MESSAGE_CHARS = 2000
TRACE_CHARS = 20_000

Stage = Literal["load", "init", "start", "tools", "health", "stop"]
Retry = Literal["never", "transient", "unplanned", "timeout", "lost"]


class StageError(CyreneError):
    """A plugin failed in one stage of its life.

    Args:
        stage: load (import, class, metadata), init, start, tools, health or stop.
        trace: the traceback, for the log only.
        pointers: JSON pointers into the entry's `config` with one sentence each, where that is at fault.
        timed_out: whether the stage's time limit ended it.
    """

    def __init__(
        self,
        what: str,
        *,
        stage: Stage,
        where: str | None = None,
        mend: str | None = None,
        trace: str = "",
        pointers: tuple[tuple[str, str], ...] = (),
        timed_out: bool = False,
    ) -> None:
        super().__init__(what, where=where, mend=mend)
        self.stage: Stage = stage
        self.trace = trace
        self.pointers = pointers
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Fault:
    """Why one attempt failed.

    `retry` is the class of design rules for another attempt: a fault of the arguments or a final one is
    `never`, `Transient` is `transient`, any other exception `unplanned`.
    """

    kind: ErrorKind
    message: str
    retry: Retry = "never"
    reason: str = ""
    path: str = ""
    exception: str = ""
    trace: str = ""


def sentence_of(error: BaseException) -> str:
    """Return an exception's own text, cut to 2,000 characters; its class name where it has none."""
    text = _text_of(lambda: error)
    if isinstance(error, SystemExit):
        return f"exited with status {text or 0}"
    return text or type(error).__name__


def trace_of(error: BaseException) -> str:
    """Return the traceback as text for the log, its end kept when it is very long."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - plugin code: a hostile exception breaks its own rendering
        text = f"{type(error).__name__} (its traceback could not be rendered)"
    return text[-TRACE_CHARS:].encode("utf-8", "replace").decode()


def fault_of(error: BaseException) -> Fault:
    """Turn what a tool raised into a Fault."""
    message = sentence_of(error)
    if isinstance(error, ArgumentError | ModelRetry):
        path = _text_of(lambda: error.path) if isinstance(error, ArgumentError) else ""
        return Fault(ErrorKind.INVALID_ARGUMENTS, message, reason="tool", path=path)
    if isinstance(error, ToolFailure):
        return Fault(ErrorKind.TOOL_ERROR, message)
    if isinstance(error, Transient):
        return Fault(ErrorKind.TOOL_ERROR, message, retry="transient")
    name = type(error).__name__
    told = message if message == name else f"{name}: {message}"
    return Fault(ErrorKind.TOOL_ERROR, told, retry="unplanned", exception=name, trace=trace_of(error))


def _text_of(part: Callable[[], object]) -> str:
    """Return a part of an exception as plain text; empty where the plugin's code breaks it."""
    try:
        text = str.__str__(str(part()))
    except BaseException:  # noqa: BLE001 - plugin code: __str__ may raise anything
        return ""
    if len(text) > MESSAGE_CHARS:
        text = text[:MESSAGE_CHARS] + "…"
    return text.encode("utf-8", "replace").decode()
