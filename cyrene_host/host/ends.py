"""How executions end where no tool gives their result."""

from __future__ import annotations

from cyrene_host.call.results import failed
from cyrene_host.errors import CallFailedError
from cyrene_host.record.execution import Execution, ExecutionState
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import ToolResult

__all__ = ["failed_result", "interrupted", "state_after", "withdrawn"]


def state_after(result: ToolResult) -> ExecutionState:
    """Return the state of an execution with this result."""
    if result.success:
        return "completed"
    if result.error_kind is ErrorKind.CANCELLED:
        return "cancelled"
    return "interrupted" if result.error_kind is ErrorKind.INTERRUPTED else "failed"


def failed_result(execution: Execution, error: CallFailedError) -> ToolResult:
    """Return the result of one that came to none."""
    return failed(
        error,
        tool_name=execution.tool_id.rpartition(".")[2],
        plugin=execution.plugin,
        call_id=execution.call_id,
        error_id="",
        attempts=0,
        duration_ms=0,
        notes=[],
    )


def interrupted(execution: Execution) -> ToolResult:
    """Return the result of one whose host ended before it did."""
    error = CallFailedError(
        ErrorKind.INTERRUPTED,
        f"the execution of '{execution.tool_id}' was interrupted: its host ended before it did",
        plugin=execution.plugin,
        where=f"execution '{execution.id}'",
        mend="start it again if it is still wanted: nothing is run twice by itself",
        acted=True,
    )
    return failed_result(execution, error)


def withdrawn(execution: Execution) -> CallFailedError:
    """Return why one came to nothing that was cancelled while it waited for a person."""
    return CallFailedError(
        ErrorKind.CANCELLED,
        f"the call of '{execution.tool_id}' was cancelled before it ran",
        plugin=execution.plugin,
        mend="start it again if it is still wanted",
    )
