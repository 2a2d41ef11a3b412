"""Errors of the host, and what each kind of a call's error is on every surface."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from cyrene_sdk.errors import CyreneError, ErrorKind

__all__ = ["TRAITS", "CallFailedError", "HostStateError", "KindTraits"]


class HostStateError(CyreneError):
    """The embedding code used a host that is not open, or in a way that cannot work."""


class CallFailedError(CyreneError):
    """Why a call came to no result; the pipeline turns it into a ToolResult.

    Args:
        kind: the error kind that every surface shows.
        what, plugin, where, mend: the four parts.
        reason: of `invalid_arguments`: schema, invalid_json, not_object, truncated, stream_dropped, tool.
        retryable: whether the same call may succeed later.
        acted: whether the tool may have acted before it failed.
        trace: the traceback, for the log only.
        details: what a program needs to go on: ids of what waits for a person.
    """

    def __init__(
        self,
        kind: ErrorKind,
        what: str,
        *,
        plugin: str | None = None,
        where: str | None = None,
        mend: str | None = None,
        reason: str = "",
        retryable: bool = False,
        acted: bool = False,
        trace: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(what, plugin=plugin, where=where, mend=mend)
        self.kind = kind
        self.reason = reason
        self.retryable = retryable
        self.acted = acted
        self.trace = trace
        self.details = details


class KindTraits(NamedTuple):
    """What an error kind is elsewhere: the HTTP status, the MCP form, the exit code of `cyrene call`."""

    http: int
    mcp: Literal["-32602", "isError", "elicitation"]
    exit: int


_FAILED = KindTraits(200, "isError", 1)
_UNAVAILABLE = KindTraits(503, "isError", 1)

TRAITS: Mapping[ErrorKind, KindTraits] = MappingProxyType(
    {
        ErrorKind.UNKNOWN_TOOL: KindTraits(404, "-32602", 2),
        ErrorKind.INVALID_ARGUMENTS: KindTraits(422, "isError", 2),
        ErrorKind.APPROVAL_REQUIRED: KindTraits(202, "elicitation", 1),
        ErrorKind.DENIED: KindTraits(403, "isError", 1),
        ErrorKind.OVERLOADED: KindTraits(429, "isError", 1),
        ErrorKind.PLUGIN_UNAVAILABLE: _UNAVAILABLE,
        ErrorKind.SCHEMA_INVALID: _UNAVAILABLE,
        ErrorKind.AUDIT_UNAVAILABLE: _UNAVAILABLE,
        ErrorKind.TIMEOUT: _FAILED,
        ErrorKind.TOOL_ERROR: _FAILED,
        ErrorKind.WORKER_CRASHED: _FAILED,
        ErrorKind.RESOURCE_EXCEEDED: _FAILED,
        ErrorKind.OUTPUT_INVALID: _FAILED,
        ErrorKind.OUTPUT_TOO_LARGE: _FAILED,
        ErrorKind.INTERRUPTED: _FAILED,
        ErrorKind.CANCELLED: _FAILED,
    }
)
