"""Keeps secrets out of what leaves a call: the plugin's, and the call's secret arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from cyrene_host.call.gate import ArgumentsRefused, read_arguments
from cyrene_host.call.tool import CallableTool
from cyrene_host.catalog.secrets import MIN_REDACTED, Redactor
from cyrene_host.errors import CallFailedError
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk._worker.progress import Progress

__all__ = ["hide", "redact_error", "redact_fields", "without_secrets", "without_secrets_told"]

HIDDEN = "***"


def without_secrets(tool: CallableTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as they may be kept and shown."""
    shown = {name: HIDDEN if name in tool.secret_arguments else value for name, value in arguments.items()}
    redactor = tool.provider.redactor
    return shown if redactor is None else _redacted(shown, redactor)


def without_secrets_told(tool: CallableTool, tell: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Return what tells a tool's progress on, without its plugin's secrets."""
    redactor = tool.provider.redactor
    if redactor is None:
        return tell

    def redacted(report: Progress) -> None:
        own_id, message = redactor.redact(report.execution_id), redactor.redact(report.message)
        tell(report._replace(execution_id=own_id, message=message))

    return redacted


def redact_error(error: CallFailedError, redactor: Redactor) -> None:
    """Take the plugin's secrets out of an error's texts, in place."""
    error.what = redactor.redact(error.what)
    error.where = redactor.redact(error.where) if error.where else error.where
    error.trace = redactor.redact(error.trace)


def redact_fields(fields: Fields, redactor: Redactor) -> Fields:
    """Return the fields of a result without the plugin's secrets, in texts and in data."""
    return {key: _redacted(value, redactor) for key, value in fields.items()}


def _redacted(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.redact(value)
    if isinstance(value, list):
        return [_redacted(part, redactor) for part in value]
    if isinstance(value, dict):
        return {redactor.redact(key): _redacted(part, redactor) for key, part in value.items()}
    return value


def hide(error: CallFailedError, names: Collection[str], given: Iterable[object]) -> CallFailedError:
    """Return an error for the log: the same, without the values of secret arguments.

    Args:
        names: the secret arguments.
        given: the arguments as they came and as they were coerced.
    """
    words = {word for arguments in given for word in _secret_texts(names, arguments) if word}
    redactor = Redactor(words)
    short = sorted((word for word in words if len(word) < MIN_REDACTED), key=len, reverse=True)

    def without(text: str) -> str:
        text = redactor.redact(text)
        for word in short:
            text = text.replace(word, HIDDEN)
        return text

    return CallFailedError(error.kind, without(error.what), plugin=error.plugin, trace=without(error.trace))


def _secret_texts(names: Collection[str], arguments: object) -> Iterator[str]:
    try:
        read = read_arguments(arguments)
    except ArgumentsRefused:
        return  # the error's sentence is the gate's, which shows no values
    for name in names:
        yield from _texts(read.get(name))


def _texts(value: Any) -> Iterator[str]:
    """The texts and numbers in a JSON value, as an error's sentence may show them."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
