"""Asks the person at the terminal whether a dangerous call may run."""

from __future__ import annotations

import functools
import json
import sys

import anyio.to_thread

from cyrene_host.call.policy import ApprovalRequest, Approver
from cyrene_host.cli.safe_text import escaped
from cyrene_host.cli.screen import Screen

__all__ = ["approver_for"]


def approver_for(screen: Screen, *, yes: bool) -> Approver | None:
    """Return who decides: nobody asks after `--yes`; the person, if there is a terminal to type at; else None."""
    if yes:
        return _approve
    return functools.partial(_ask, screen) if sys.stdin is not None and sys.stdin.isatty() else None


async def _approve(request: ApprovalRequest) -> bool:
    del request
    return True


async def _ask(screen: Screen, request: ApprovalRequest) -> bool:
    """Show all of the call; everything but a clear yes is a no."""
    arguments = escaped(json.dumps(request.arguments, ensure_ascii=False, indent=2)).replace("\n", "\n  ")
    screen.say(
        f"A call needs your approval:\n"
        f"  tool:   {escaped(request.tool_id)}\n"
        f"  plugin: {escaped(request.plugin)}\n"
        f"  danger: {request.danger}\n"
        f"  arguments:\n  {arguments}"
    )
    screen.say("Run it? [y/N]")
    answer = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return answer.strip().lower() in ("y", "yes")
