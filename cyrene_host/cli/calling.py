"""`cyrene call`: one call through the host, which starts only the plugin that is called and what it needs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cyrene_host.call.context import CallContext
from cyrene_host.cli.asking import CONVERSATION, Person
from cyrene_host.cli.detaching import detach, logging_into, report_begun
from cyrene_host.cli.following import follow, held_result, refusal, show_result
from cyrene_host.cli.logs import plugin_log_shown
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.cli.progress import Progress, progress_on
from cyrene_host.cli.waiting import wait_for
from cyrene_host.errors import CallFailedError
from cyrene_host.host.host import Host, Opening
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import ToolComplexity, ToolResult

__all__ = ["call_tool"]

MAX_STDIN_BYTES = 1_048_577
"""One more than arguments may have: the gate refuses the rest."""

CONTEXT = CallContext(surface="cli", conversation_id=CONVERSATION)


@dataclass(frozen=True, slots=True)
class _Call:
    """What the command line says of the call."""

    name: str
    arguments: dict[str, str] | str | bytes
    timeout_s: float | None


def call_tool(
    choices: Choices,
    name: str,
    values: Sequence[str],
    *,
    arguments: str | None,
    yes: bool,
    timeout_s: float | None,
    is_detached: bool = False,
    background: Path | None = None,
) -> int:
    """Call a tool, print its output or its error, and return the exit code of the outcome.

    Args:
        is_detached: let it run in a process of its own, and print its id.
        background: this is that process, and here is its log.
    """
    call = _Call(name, _given(values, arguments), timeout_s)
    if is_detached:
        options = [*(["--yes"] if yes else []), *(["--timeout", str(timeout_s)] if timeout_s is not None else [])]
        return detach(choices, name, _as_text(call.arguments), [*options, *_debugging(choices)])
    progress = progress_on(choices.screen)
    person = Person(choices.screen, progress, yes=yes)

    async def run() -> int:
        opening = _opening(choices, name, person)
        # The answer alone goes to stdout: what plugin code prints does not mix with it, inside the host or in a worker.
        with contextlib.redirect_stdout(sys.stderr), plugin_log_shown():
            async with opening as host:
                if background is not None:
                    return await _begin_and_stay(choices, host, call, background)
                return show_result(choices, await _result(choices, host, call, progress))

    with logging_into(choices) if background is not None else contextlib.nullcontext():
        return wait_for(run)


def _opening(choices: Choices, name: str, person: Person) -> Opening:
    return Host.open(
        choices.plugins,
        config=choices.config,
        overrides=choices.overrides,
        approver=person.approver,
        messenger=person.messenger,
        asker=person.asker,
        start="called",
        only=name.partition(".")[0] if "." in name else None,
        kind="command",
    )


async def _result(choices: Choices, host: Host, call: _Call, progress: Progress) -> ToolResult:
    """Run the call; one that runs long as an execution that is followed, and that Ctrl-C cancels."""
    if not _runs_long(host, call.name):
        return await host.call(call.name, call.arguments, context=CONTEXT, deadline_s=call.timeout_s)
    try:
        started = await host.start_execution(call.name, call.arguments, context=CONTEXT, deadline_s=call.timeout_s)
    except CallFailedError as error:
        return refusal(call.name, error)
    try:
        execution = await follow(host.executions, started.id, progress, until_held=True)
    except asyncio.CancelledError:
        execution = await host.executions.get(started.id)
        choices.screen.say(f"execution '{execution.id}' is {execution.state}")
        raise
    return execution.result or await held_result(host.approvals, execution)


async def _begin_and_stay(choices: Choices, host: Host, call: _Call, log: Path) -> int:
    """Run the call, and tell as soon as its tool runs, or cannot."""
    try:
        started = await host.start_execution(call.name, call.arguments, context=CONTEXT, deadline_s=call.timeout_s)
    except CallFailedError as error:
        choices.screen.json({"result": refusal(call.name, error).to_dict()})
        return 1
    if started.id not in await host.executions.ids():
        raise CyreneError(
            "the call cannot be kept, so nobody could find it again",
            where="the state directory",
            mend="`cyrene doctor` looks at it; call it without --detach",
        )
    async with contextlib.aclosing(host.executions.events(started.id)) as events:
        async for event in events:
            if event.state != "queued":
                break
    execution = await host.executions.get(started.id)
    if execution.started_at is None:
        result = execution.result or await held_result(host.approvals, execution)
        choices.screen.json({"result": result.to_dict()})
        return 1
    report_begun(choices, execution, log)
    await host.executions.wait(started.id)
    return 0


def _runs_long(host: Host, name: str) -> bool:
    """Whether this is a ComplexTool that can be called; what cannot is refused quicker without an execution."""
    try:
        tool = host.tools.get(name)
    except CallFailedError:
        return False
    return tool.is_offered and tool.definition.complexity is ToolComplexity.COMPLEX


def _debugging(choices: Choices) -> Sequence[str]:
    return ["--debug"] if choices.is_debugging else []


def _given(values: Sequence[str], arguments: str | None) -> dict[str, str] | str | bytes:
    """Return the arguments as the gate takes them; `key=value` stays text, which the tool's schema types."""
    if arguments is None:
        return _pairs(values)
    if values:
        raise WrongUseError(
            f"arguments are given twice, by --args and as '{values[0][:80]}'",
            where="command line",
            mend="keep --args, or write all as key=value",
        )
    return sys.stdin.buffer.read(MAX_STDIN_BYTES) if arguments == "-" else arguments


def _as_text(arguments: dict[str, str] | str | bytes) -> bytes:
    if isinstance(arguments, bytes):
        return arguments
    text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    return text.encode("utf-8", "surrogateescape")


def _pairs(values: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for value in values:
        key, sign, text = value.partition("=")
        if not sign or not key:
            mend = f"write --args '{value[:80]}'" if value.startswith("{") else "write it as key=value"
            raise WrongUseError(f"'{value[:80]}' is no argument", where="command line", mend=mend)
        if key in pairs:
            mend = f"""write a list as {key}='["…", "…"]'"""
            raise WrongUseError(f"the argument '{key[:80]}' is given twice", where="command line", mend=mend)
        pairs[key] = text
    return pairs
