"""Waits with a person for the end of an execution."""

from __future__ import annotations

import asyncio
import contextlib
import time

from cyrene_host.call.execution import Held
from cyrene_host.call.failures import held
from cyrene_host.call.results import failed
from cyrene_host.cli.options import Choices
from cyrene_host.cli.progress import Progress
from cyrene_host.errors import TRAITS, CallFailedError
from cyrene_host.host.approvals import Approvals
from cyrene_host.host.executions import Executions
from cyrene_host.record.execution import Execution
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import ToolResult

__all__ = ["cancelled", "follow", "held_result", "refusal", "show_result"]

CANCEL_S = 4.0
"""Seconds that Ctrl-C gives a tool to end: less than the command waits for all."""


async def follow(
    executions: Executions, execution_id: str, progress: Progress, *, until_held: bool = False
) -> Execution:
    """Show an execution's progress until it has ended, and return it.

    Cancelled, by Ctrl-C, it cancels the execution if that runs in this process, and waits for its end.

    Args:
        until_held: return also when it waits for a person who is not here.
    """
    execution = await executions.get(execution_id)
    try:
        async with contextlib.aclosing(executions.events(execution_id)) as events:
            async for event in events:
                progress.show(execution.tool_id, event)
                if until_held and event.state == "waiting":
                    execution = await executions.get(execution_id)
                    if execution.state == "waiting" and execution.approval_id is not None:
                        return execution
    except asyncio.CancelledError:
        if executions.has(execution_id):
            await cancelled(executions, execution_id, CANCEL_S)
        raise
    finally:
        progress.close()
    return await executions.get(execution_id)


async def cancelled(executions: Executions, execution_id: str, limit_s: float) -> Execution:
    """Cancel an execution, wait at most some seconds for its end, and return it as it is then."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await executions.cancel(execution_id)
            await executions.wait(execution_id)
    return await executions.get(execution_id)


async def held_result(approvals: Approvals, execution: Execution) -> ToolResult:
    """Return the result of a call that waits for a person, as `Host.call` returns it."""
    approval = await approvals.get(execution.approval_id or "")
    at = Held(execution.id, approval.id, approval.expires_at)
    return refusal(execution.tool_id, held(approval.tool_id.rpartition(".")[2], approval.plugin, approval.danger, at))


def refusal(name: str, error: CallFailedError) -> ToolResult:
    """Return the result of a call that came to none."""
    return failed(
        error,
        tool_name=name.rpartition(".")[2],
        plugin=error.plugin or "",
        call_id="",
        error_id="",
        attempts=0,
        duration_ms=0,
        notes=[],
    )


def show_result(choices: Choices, result: ToolResult) -> int:
    """Print a call's output or its error, and return the exit code of the outcome."""
    screen = choices.screen
    if choices.as_json:
        screen.json(result.to_dict())
    elif not result.success:
        screen.error(result.error)
        if result.error_kind is ErrorKind.APPROVAL_REQUIRED and isinstance(result.data, dict):
            left_s = max(0.0, result.data.get("expires_at", 0.0) - time.time())
            screen.say(f"it expires in {left_s:.0f} s; `cyrene approvals list` shows all that it would run with")
    elif result.output or not result.images:
        screen.data(result.output)
    for image in () if choices.as_json else result.images:
        screen.say(f"an image ({image.mime}): {image.url or '--json shows it'}")
    return 0 if result.error_kind is None else TRAITS[result.error_kind].exit
