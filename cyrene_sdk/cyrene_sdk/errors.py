"""The one tree of errors: four-part errors of the host and SDK, and those a tool raises on purpose."""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "ArgumentError",
    "CyreneError",
    "DefinitionError",
    "ErrorKind",
    "ModelRetry",
    "NoCurrentCallError",
    "ToolError",
    "ToolFailure",
    "Transient",
]


class ErrorKind(StrEnum):
    """What went wrong with a tool call. The same word in Python, CLI, HTTP, MCP, chat and audit."""

    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    APPROVAL_REQUIRED = "approval_required"
    DENIED = "denied"
    OVERLOADED = "overloaded"
    PLUGIN_UNAVAILABLE = "plugin_unavailable"
    SCHEMA_INVALID = "schema_invalid"
    AUDIT_UNAVAILABLE = "audit_unavailable"
    TIMEOUT = "timeout"
    TOOL_ERROR = "tool_error"
    WORKER_CRASHED = "worker_crashed"
    RESOURCE_EXCEEDED = "resource_exceeded"
    OUTPUT_INVALID = "output_invalid"
    OUTPUT_TOO_LARGE = "output_too_large"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


class CyreneError(Exception):
    """An error in four parts: what happened, to which plugin, where, and how to mend it.

    Args:
        what: one sentence with the wrong value in quotes (cut to 80 characters, never a secret).
        plugin: the plugin's name in this host; None where no single plugin is at fault.
        where: file, line, JSON pointer, stage or attempt.
        mend: what the reader can do about it.
    """

    def __init__(
        self,
        what: str,
        *,
        plugin: str | None = None,
        where: str | None = None,
        mend: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.plugin = plugin
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        lines = [f"plugin '{self.plugin}': {self.what}" if self.plugin else self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.mend:
            lines.append(f"  mend:  {self.mend}")
        return "\n".join(lines)


class DefinitionError(CyreneError):
    """A tool or plugin class cannot be turned into definitions (raised while the class is made)."""


class NoCurrentCallError(CyreneError, LookupError):
    """`current_call()` was used outside a tool call."""


class ToolError(Exception):
    """Base of the errors that a tool raises on purpose; its text is shown to the model."""


class ArgumentError(ToolError):
    """The arguments are at fault; the model is told and may correct them.

    Args:
        message: what is wrong, for the model.
        path: JSON pointer of the argument, such as `/city`; empty for all of them.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ModelRetry(ToolError):
    """The model should call again with other arguments, as the message says."""


class ToolFailure(ToolError):
    """The world is at fault and another attempt would not help."""


class Transient(ToolError):
    """Nothing has happened yet and another attempt may work."""
