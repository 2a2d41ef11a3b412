"""The sentences of a call's errors, each in its four parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from cyrene_host.call.execution import Held
from cyrene_host.call.tool import CallableTool
from cyrene_host.call.usage import usage
from cyrene_host.catalog.schemas import Fault as SchemaFault
from cyrene_host.errors import CallFailedError
from cyrene_sdk._worker.faults import Fault
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import DangerLevel

__all__ = [
    "arguments_do_not_fit",
    "attempt_failed",
    "closed_without_approver",
    "deadline_passed",
    "ended_early",
    "held",
    "not_permitted",
    "not_ready",
    "queue_full",
    "returned_failure",
    "returns_do_not_fit",
    "schema_unusable",
]

MESSAGE_BYTES = 1500
MENDS = {
    ErrorKind.TIMEOUT: "ask for less, or let the operator raise tools.{name}.timeout_ms in the entry",
    ErrorKind.TOOL_ERROR: "the tool says so itself; do as its words ask",
    ErrorKind.OVERLOADED: "call again later",
    ErrorKind.WORKER_CRASHED: "its author has to look: the plugin's log has what it printed; it is started again",
    ErrorKind.RESOURCE_EXCEEDED: "ask for less, or let the operator raise the limit in the entry",
    ErrorKind.OUTPUT_INVALID: "the tool has to return a str, JSON, or a ToolResult: tell its author",
    ErrorKind.OUTPUT_TOO_LARGE: "ask for less, or let the tool return a part: at most 1 MiB",
    ErrorKind.UNKNOWN_TOOL: "the plugin no longer has this tool: start the host again",
}


def schema_unusable(tool: CallableTool) -> CallFailedError:
    """The tool's own definition cannot be used."""
    fault = tool.fault
    return CallFailedError(
        ErrorKind.SCHEMA_INVALID,
        fault.what if fault else f"the definition of '{tool.id}' cannot be used",
        plugin=tool.provider.name,
        where=(fault.where if fault else None) or f"tool '{tool.id}'",
        mend=(fault.mend if fault else None) or "the plugin's author has to mend the definition",
    )


def arguments_do_not_fit(tool: CallableTool, reason: str, faults: Sequence[str]) -> CallFailedError:
    """The arguments are refused by the gate or by the schema; the tool's code was not entered.

    Several faults have a line each.
    """
    told = f" {faults[0]}" if len(faults) == 1 else "".join(f"\n    {fault}" for fault in faults)
    return CallFailedError(
        ErrorKind.INVALID_ARGUMENTS,
        f"the arguments of '{tool.name}' do not fit:{told}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', arguments",
        mend=_usage(tool),
        reason=reason,
    )


def returns_do_not_fit(tool: CallableTool, faults: Iterable[SchemaFault]) -> CallFailedError:
    """The tool's data breaks the schema that it promised."""
    told = "; ".join(map(str, faults))
    return CallFailedError(
        ErrorKind.OUTPUT_INVALID,
        f"the result of '{tool.name}' does not fit its own 'returns': {told}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', result data",
        mend="the plugin's author has to mend the tool or its 'returns'",
        acted=not tool.definition.read_only,
    )


def not_ready(tool: CallableTool) -> CallFailedError:
    """The plugin is still starting when the caller's deadline passes; the start goes on."""
    return CallFailedError(
        ErrorKind.PLUGIN_UNAVAILABLE,
        "it is still starting, and the call's deadline has passed",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', start of its plugin",
        mend="call again in a moment",
        retryable=True,
    )


def deadline_passed(tool: CallableTool, fault: Fault | None, *, attempt: int, acted: bool) -> CallFailedError:
    """The caller's deadline leaves no time for an attempt; `fault` is what became of the last one."""
    last = f" after attempt {attempt}, which failed: {_fitting(tool, fault.message)}" if fault else " before it was run"
    return CallFailedError(
        ErrorKind.TIMEOUT,
        f"tool '{tool.name}': the call's deadline passed{last}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', deadline of the call",
        mend="give the call more time",
        retryable=True,
        acted=acted,
        trace=fault.trace if fault else "",
    )


def returned_failure(tool: CallableTool, fields: Fields) -> CallFailedError:
    """The tool returned a result that says it failed."""
    said = fields.get("error") or fields.get("output") or "it gave no reason"
    return CallFailedError(
        ErrorKind.TOOL_ERROR,
        f"tool '{tool.name}' returned a failure: {said[:MESSAGE_BYTES]}",
        plugin=tool.provider.name,
    )


def not_permitted(tool: CallableTool, danger: DangerLevel, why: str, *, trace: str = "") -> CallFailedError:
    """The operator's policy or a person said no."""
    return CallFailedError(
        ErrorKind.DENIED,
        f"the call of '{tool.name}' (danger {danger}) was refused: {why}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', danger '{danger}'",
        mend="the operator decides this in cyrene.toml [danger]",
        trace=trace,
    )


def closed_without_approver(tool: CallableTool, danger: DangerLevel, *, why: str = "") -> CallFailedError:
    """The policy wants a person's word, and nobody is there to give it; `why`: it cannot be waited for either."""
    kept = f" (and the call cannot be kept until somebody can: {why})" if why else ""
    return CallFailedError(
        ErrorKind.APPROVAL_REQUIRED,
        f"the call of '{tool.name}' (danger {danger}) needs a person's approval, and nobody can be asked here{kept}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', danger '{danger}'",
        mend="call it from a terminal (`cyrene call` asks; --yes approves), or open the host with an approver",
    )


def held(tool_name: str, plugin: str, danger: str, at: Held) -> CallFailedError:
    """The call waits for a person's word."""
    return CallFailedError(
        ErrorKind.APPROVAL_REQUIRED,
        f"the call of '{tool_name}' (danger {danger}) waits for a person's approval",
        plugin=plugin,
        where=f"approval '{at.approval_id}', execution '{at.execution_id}'",
        mend=f"`cyrene approvals approve {at.approval_id}` runs it once, as long as nothing about it has changed",
        details={"approval_id": at.approval_id, "execution_id": at.execution_id, "expires_at": at.expires_at},
    )


def ended_early(
    tool: CallableTool | None, why: Literal["cancelled", "interrupted", "left"], *, acted: bool
) -> CallFailedError:
    """The call was ended before its tool was done."""
    name = f"'{tool.name}' " if tool is not None else ""
    kind = ErrorKind.INTERRUPTED if why == "interrupted" else ErrorKind.CANCELLED
    causes = {
        "cancelled": "was cancelled",
        "interrupted": "was interrupted: its host stopped",
        "left": "was cancelled: its caller left",
    }
    return CallFailedError(
        kind,
        f"the call {name and 'of ' + name}{causes[why]}",
        plugin=tool.provider.name if tool is not None else None,
        where=f"tool '{tool.id}'" if tool is not None else None,
        mend="start it again if it is still wanted",
        acted=acted,
    )


def queue_full(tool: CallableTool, *, waited: bool) -> CallFailedError:
    """As many calls of the plugin run and wait as may."""
    admission = tool.provider.admission
    what = (
        "no place became free within the call's time limit"
        if waited
        else f"{admission.concurrency} calls run and {admission.queue_size} wait already"
    )
    return CallFailedError(
        ErrorKind.OVERLOADED,
        f"the plugin is busy: {what}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}', limits.concurrency and limits.queue_size",
        mend=MENDS[ErrorKind.OVERLOADED],
        retryable=True,
    )


def attempt_failed(
    tool: CallableTool, fault: Fault, *, attempt: int, of: int, acted: bool, retryable: bool, is_late: bool = False
) -> CallFailedError:
    """The tool was entered and failed; `is_late`: the caller's deadline has passed."""
    place = f", attempt {attempt} of {of}" if of > 1 else ""
    at = f" at {fault.path}" if fault.path else ""
    if fault.reason:
        mend = _usage(tool)
    elif fault.trace and fault.kind is not ErrorKind.RESOURCE_EXCEEDED:
        mend = "its author has to look: the log has the traceback (`cyrene --debug` shows it)"
    elif is_late and fault.kind is ErrorKind.TIMEOUT:
        mend = "ask for less, or give the call more time: its deadline came first"
    else:
        mend = MENDS.get(fault.kind, "see the log under the error id")
    return CallFailedError(
        fault.kind,
        f"tool '{tool.name}': {_fitting(tool, fault.message)}",
        plugin=tool.provider.name,
        where=f"tool '{tool.id}'{at}{place}",
        mend=mend.replace("{name}", tool.name),
        reason=fault.reason,
        retryable=retryable or fault.kind is ErrorKind.OVERLOADED,
        acted=acted,
        trace=fault.trace,
    )


def _fitting(tool: CallableTool, message: str) -> str:
    """A tool's own words without the plugin's secrets, and then short: half a secret would not be found."""
    redactor = tool.provider.redactor
    text = redactor.redact(message) if redactor else message
    encoded = text.encode()
    return text if len(encoded) <= MESSAGE_BYTES else encoded[:MESSAGE_BYTES].decode("utf-8", "ignore") + "…"


def _usage(tool: CallableTool) -> str:
    return f"arguments of '{tool.name}': {usage(tool.definition.parameters) or 'none'}"
