"""The audit's records of calls, written by the rules that the danger of a call asks for."""

from __future__ import annotations

import anyio.to_thread

from cyrene_host.call.secrecy import without_secrets
from cyrene_host.call.underway import Underway
from cyrene_host.errors import CallFailedError
from cyrene_host.record.approval import Approval
from cyrene_host.record.audit import Audit, AuditUnavailableError
from cyrene_host.record.audit_records import ended_fields, started_fields
from cyrene_host.record.execution import Execution
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import DangerLevel, ToolResult

__all__ = ["Auditor"]

# Their sentences show none of the call's arguments.
_REFUSALS = frozenset(
    {
        *(ErrorKind.UNKNOWN_TOOL, ErrorKind.DENIED, ErrorKind.APPROVAL_REQUIRED, ErrorKind.OVERLOADED),
        *(ErrorKind.PLUGIN_UNAVAILABLE, ErrorKind.AUDIT_UNAVAILABLE),
    }
)


class Auditor:
    """Records calls: a dangerous one not without its record, and one of danger high not before the disk has it."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def started(self, call: Underway, *, is_approved: bool = False) -> None:
        """Record that a call begins."""
        call.is_recorded = True
        tool, context, arguments = call.tool, call.context, call.arguments
        is_light = tool is None or call.danger is DangerLevel.LOW
        fields = started_fields(
            call_id=call.id,
            tool=tool.id if tool is not None else call.name[:200],
            plugin=tool.provider.name if tool is not None else "",
            principal=context.principal,
            surface=context.surface,
            arguments=without_secrets(tool, arguments) if tool is not None and arguments is not None else None,
            danger=call.danger if tool is not None else "",
            decision="" if tool is None else "approved" if is_approved else call.decision,
            fingerprint=tool.fingerprint if tool is not None else None,
            user_id=context.user_id,
            conversation_id=context.conversation_id,
            parent_call_id=context.parent_call_id,
            execution_id=call.track.id if call.track is not None else None,
        )
        if is_light:
            self._audit.append_or_count("started", fields)
            return
        try:
            self._audit.append("started", fields)
        except AuditUnavailableError as error:
            raise _unavailable(call, error) from error

    async def secured(self, call: Underway) -> None:
        """Return when what was recorded is on the disk."""
        try:
            await anyio.to_thread.run_sync(self._audit.sync)
        except AuditUnavailableError as error:
            raise _unavailable(call, error) from error

    def ended(self, call: Underway, result: ToolResult) -> None:
        """Record how it ended; of a refusal, by which rule."""
        tool, kind = call.tool, result.error_kind
        self._audit.append_or_count(
            "ended",
            ended_fields(
                call_id=call.id,
                tool=tool.id if tool is not None else result.tool_name,
                principal=call.context.principal,
                success=result.success,
                attempts=result.attempts,
                duration_ms=result.duration_ms,
                error_kind=kind.value if kind is not None else None,
                error_id=result.error_id or None,
                effect=result.effect,
                refusal=result.error.partition("\n")[0] if kind in _REFUSALS else None,
            ),
        )

    def decided(self, approval: Approval, decision: str, by: str) -> None:
        """Record what a person, or the clock, made of a call that waited."""
        self._audit.append_or_count(
            "approval",
            {
                "approval_id": approval.id,
                "execution_id": approval.execution_id,
                "tool": approval.tool_id,
                "principal": approval.principal,
                "decision": decision,
                "by": by,
                "fingerprint": approval.fingerprint,
            },
        )

    def accepted(self, tool_id: str, fingerprint: str, by: str) -> None:
        """Record that somebody accepted a changed definition."""
        fields = {"tool": tool_id, "decision": "accepted", "by": by, "fingerprint": fingerprint}
        self._audit.append_or_count("approval", fields)

    def interrupted(self, execution: Execution) -> None:
        """Record the end of a call whose host ended before it did."""
        if execution.call_id:
            self._audit.append_or_count(
                "ended",
                ended_fields(
                    call_id=execution.call_id,
                    tool=execution.tool_id,
                    principal=execution.principal,
                    success=False,
                    attempts=0,
                    duration_ms=0,
                    error_kind=ErrorKind.INTERRUPTED,
                    effect="unknown",
                ),
            )

    def plugin_changed(self, plugin: str, state: str, reason: str) -> None:
        """Record a plugin that a person, or its own failures, switched off or on."""
        self._audit.append_or_count("plugin", {"plugin": plugin, "state": state, "reason": reason})


def _unavailable(call: Underway, error: AuditUnavailableError) -> CallFailedError:
    name = call.tool.provider.name if call.tool is not None else None
    return CallFailedError(
        ErrorKind.AUDIT_UNAVAILABLE,
        f"a call of danger {call.danger} does not run without a record of it: {error.what}",
        plugin=name,
        where=error.where,
        mend=error.mend,
        retryable=True,
    )
