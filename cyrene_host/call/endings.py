"""How a call ends: as a result that is told to the log, to the audit, and to the caller."""

from __future__ import annotations

import contextlib

from cyrene_host.call.failure_log import FailureLog
from cyrene_host.call.failures import ended_early, returned_failure
from cyrene_host.call.recorder import CallRecorder
from cyrene_host.call.results import as_failure, failed, finished
from cyrene_host.call.secrecy import hide, redact_error
from cyrene_host.call.tool import CallableTool
from cyrene_host.call.underway import Underway
from cyrene_host.errors import CallFailedError
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk.types import ToolResult

__all__ = ["Endings"]


class Endings:
    """Makes the results of calls.

    Args:
        recorder: writes the audit's records; None without an audit.
    """

    def __init__(self, recorder: CallRecorder | None) -> None:
        self._recorder = recorder
        self._log = FailureLog()

    def answered(self, call: Underway, tool: CallableTool, fields: Fields, given: object) -> ToolResult:
        """Return the result of a tool that answered; `given` are the arguments as they came."""
        if not fields["success"]:
            error_id = self._tell(call, returned_failure(tool, fields), given)
            fields = as_failure(fields, tool.name, error_id, is_read_only=tool.definition.read_only)
        result = finished(fields, tool.name, tool.provider.name, call.id, call.attempts, call.duration_ms(), call.notes)
        if self._recorder is not None:
            self._recorder.ended(call, result)
        return result

    def failed(self, call: Underway, error: CallFailedError, given: object) -> ToolResult:
        """Return the result of a call that came to no answer; one that was refused early is recorded as a whole."""
        tool = call.tool
        result = failed(
            error,
            tool_name=tool.name if tool else call.name[:80].encode("utf-8", "replace").decode(),
            plugin=tool.provider.name if tool else error.plugin or "",
            call_id=call.id,
            error_id=self._tell(call, error, given),
            attempts=call.attempts,
            duration_ms=call.duration_ms(),
            notes=call.notes,
        )
        if self._recorder is not None:
            if not call.is_recorded:
                with contextlib.suppress(CallFailedError):  # it is refused already
                    self._recorder.started(call)
            self._recorder.ended(call, result)
        return result

    def cancelled(self, call: Underway, given: object) -> ToolResult:
        """Return the result of a call whose task was cancelled."""
        acted = call.attempts > 0 and call.tool is not None and not call.tool.definition.read_only
        why = call.track.ending if call.track is not None else None
        return self.failed(call, ended_early(call.tool, why or "left", acted=acted), given)

    def _tell(self, call: Underway, error: CallFailedError, given: object) -> str:
        """Log a failure without the plugin's secrets and the call's secret arguments; return its error id."""
        tool = call.tool
        shown = error
        if tool is not None and tool.provider.redactor is not None:
            redact_error(error, tool.provider.redactor)
        if tool is not None and tool.secret_arguments:
            shown = hide(error, tool.secret_arguments, (given, call.arguments))
        return self._log.tell(call.id, tool.id if tool else "", call.context.surface, shown)
