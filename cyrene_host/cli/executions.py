"""`cyrene executions`: lists, shows, follows and cancels, straight from the state directory, without the plugins."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import cast, get_args

from cyrene_host.catalog.faults import nearest
from cyrene_host.cli.detaching import log_of
from cyrene_host.cli.following import cancelled, follow
from cyrene_host.cli.ids import full_id
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.cli.progress import progress_on
from cyrene_host.cli.reading import read_settings_alone
from cyrene_host.cli.safe_text import escaped, in_one_line
from cyrene_host.cli.waiting import wait_for
from cyrene_host.errors import TRAITS
from cyrene_host.host.archive import Archive
from cyrene_host.record.execution import Execution, ExecutionState

__all__ = ["cancel_execution", "list_executions", "show_execution"]

MESSAGE_CHARS = 60
CANCEL_S = 15.0
"""Seconds that a cancelled execution of another process is waited for."""


def list_executions(choices: Choices, states: Sequence[str], *, principal: str | None, count: int) -> int:
    """List the newest executions, the newest first.

    Raises:
        WrongUseError: there is no such state.
        StoreError: the database cannot be used.
    """
    for state in states:
        _check_state(state)

    async def read() -> Sequence[Execution]:
        async with Archive(read_settings_alone(choices)) as archive:
            wanted = cast("Sequence[ExecutionState]", states)
            return await archive.executions.list(principal=principal, states=wanted, limit=count)

    found = wait_for(read)
    if choices.as_json:
        choices.screen.json([execution.to_dict() for execution in found])
        return 0
    columns = ("execution", "tool", "state", "progress", "created", "took", "principal", "message")
    choices.screen.table(columns, map(_row, found))
    if not found:
        choices.screen.say("there are no such executions" if states or principal else "there are no executions yet")
    return 0


def show_execution(choices: Choices, word: str, *, is_followed: bool) -> int:
    """Show one; with `is_followed` when it has ended, and then the exit code is that of its result.

    Raises:
        WrongUseError: there is no such execution.
        StoreError: the database cannot be used.
    """
    settings = read_settings_alone(choices)

    async def read() -> Execution:
        async with Archive(settings) as archive:
            execution_id = full_id(word, await archive.executions.ids(), "execution")
            execution = await archive.executions.get(execution_id)
            if not is_followed:
                return execution
            if execution.state == "waiting" and execution.approval_id:
                choices.screen.say(f"it waits for a person: `cyrene approvals approve {execution.approval_id}`")
            return await follow(archive.executions, execution_id, progress_on(choices.screen))

    execution = wait_for(read)
    if choices.as_json:
        choices.screen.json({**execution.to_dict(), "arguments": execution.arguments})
    else:
        log = log_of(settings.state_folder(), execution.id)
        choices.screen.answer("\n".join([*_told(execution), *([f"  log:       {log}"] if log else [])]))
        if execution.result is not None:
            choices.screen.answer("\n".join(_outcome(execution)))
    kind = execution.result.error_kind if execution.result is not None else None
    return TRAITS[kind].exit if is_followed and kind is not None else 0


def cancel_execution(choices: Choices, word: str) -> int:
    """Cancel one, wherever it runs, and wait for its end; 1 if it has ended otherwise, or has not yet.

    Raises:
        WrongUseError: there is no such execution.
        StoreError: the database cannot be used.
    """

    async def cancel() -> tuple[bool, Execution]:
        async with Archive(read_settings_alone(choices)) as archive:
            execution_id = full_id(word, await archive.executions.ids(), "execution")
            before = await archive.executions.get(execution_id)
            if before.is_ended:
                return True, before
            return False, await cancelled(archive.executions, execution_id, CANCEL_S)

    was_ended, execution = wait_for(cancel)
    if choices.as_json:
        choices.screen.json(execution.to_dict())
    elif execution.is_ended:
        choices.screen.answer(f"'{execution.id}' {'had ended before: it ' if was_ended else ''}is {execution.state}")
    else:
        choices.screen.say(
            f"'{execution.id}' is asked to end, and has not yet: `cyrene executions show {execution.id} --follow`"
        )
    return 0 if execution.state == "cancelled" else 1


def _check_state(state: str) -> None:
    known = get_args(ExecutionState)
    if state not in known:
        near = nearest(state, known)
        mend = f"did you mean '{near}'?" if near else f"there are: {', '.join(known)}"
        raise WrongUseError(f"'{state[:80]}' is no state", where="command line, --state", mend=mend)


def _row(execution: Execution) -> tuple[str, ...]:
    message = in_one_line(execution.message)
    return (
        execution.id,
        in_one_line(execution.tool_id),
        execution.state,
        f"{execution.progress:.0%}" if execution.progress else "",
        _clock(execution.created_at),
        _took(execution),
        in_one_line(execution.principal),
        message if len(message) <= MESSAGE_CHARS else f"{message[: MESSAGE_CHARS - 1]}…",
    )


def _told(execution: Execution) -> Iterator[str]:
    yield f"{execution.id}: {execution.state}"
    yield f"  tool:      {in_one_line(execution.tool_id)}"
    yield f"  principal: {in_one_line(execution.principal)}, by {execution.surface}"
    yield f"  created:   {_clock(execution.created_at)}"
    if execution.started_at is not None:
        yield f"  started:   {_clock(execution.started_at)}"
    if execution.ended_at is not None:
        yield f"  ended:     {_clock(execution.ended_at)}{_took(execution) and ', after ' + _took(execution)}"
    if execution.progress:
        yield f"  progress:  {execution.progress:.0%}"
    if execution.message:
        yield f"  message:   {in_one_line(execution.message)}"
    if execution.approval_id is not None:
        yield f"  approval:  {execution.approval_id}"
    if execution.arguments is not None:
        shown = escaped(json.dumps(execution.arguments, ensure_ascii=False, indent=2)).replace("\n", "\n  ")
        yield f"  arguments: {shown}"


def _outcome(execution: Execution) -> Iterator[str]:
    result = execution.result
    assert result is not None, "only of one that has ended"
    if not result.success:
        yield _indented("error", result.error)
    elif result.output:
        yield _indented("output", result.output)
    for image in result.images:
        yield _indented("image", image.url or f"{image.mime}: --json shows it")


def _indented(name: str, text: str) -> str:
    return f"  {name}:\n    " + text.rstrip("\n").replace("\n", "\n    ")


def _took(execution: Execution) -> str:
    """The time that its tool ran."""
    if execution.started_at is None:
        return ""
    return f"{(execution.ended_at or time.time()) - execution.started_at:.1f} s"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
