"""`cyrene approvals`: shows calls that wait for a person's word, and tools that have changed, and decides."""

from __future__ import annotations

import contextlib
import difflib
import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from cyrene_host.catalog.accepted import Accepted, ChangedDefinition
from cyrene_host.catalog.faults import nearest
from cyrene_host.cli.asking import Person, told_call
from cyrene_host.cli.following import follow, show_result
from cyrene_host.cli.ids import full_id
from cyrene_host.cli.logs import plugin_log_shown
from cyrene_host.cli.options import Choices, CommandFailedError, WrongUseError
from cyrene_host.cli.progress import progress_on
from cyrene_host.cli.reading import read_settings_alone
from cyrene_host.cli.safe_text import escaped, in_one_line
from cyrene_host.cli.waiting import wait_for
from cyrene_host.host.approvals import ApprovalError
from cyrene_host.host.archive import Archive
from cyrene_host.host.host import Host, Opening
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.listing import Listing
from cyrene_host.record.approval import Approval, ApprovalState

__all__ = ["approve", "deny", "list_approvals"]

T = TypeVar("T")

MOST_LISTED = 1000
MOST_LINES = 20
"""Lines of a changed definition in the list; `approve` shows all."""


def list_approvals(choices: Choices, *, everything: bool) -> int:
    """Show the calls that wait, the newest first, with all their arguments; then the tools that have changed.

    Raises:
        StoreError: the database cannot be used.
    """
    states: Sequence[ApprovalState] = get_args(ApprovalState) if everything else ("pending",)
    settings = read_settings_alone(choices)

    async def read() -> Sequence[Approval]:
        async with Archive(settings) as archive:
            return await archive.approvals.list(states=states, limit=MOST_LISTED)

    found = wait_for(read)
    is_any_accepted = bool(Accepted(settings.state_folder()).read())  # else no tool can have changed
    changed = _changed(choices) if is_any_accepted else []
    if choices.as_json:
        choices.screen.json(
            {"approvals": [_document(one) for one in found], "changed": [tool._asdict() for tool in changed]}
        )
        return 0
    for approval in found:
        choices.screen.answer("\n".join(_told(approval)))
    for tool in changed:
        choices.screen.answer("\n".join(_told_change(tool, MOST_LINES)))
    if not found and not changed:
        choices.screen.say("there are no approvals yet" if everything else "nothing waits for a person")
    return 0


def approve(choices: Choices, name: str, *, yes: bool) -> int:
    """Run a call that waits and print its output, or accept a tool's changed definition.

    Raises:
        WrongUseError: nothing of this name waits; or nobody is there to be asked.
        CommandFailedError: it was decided before, has expired, or is not what was asked about any more.
    """
    progress = progress_on(choices.screen)
    person = Person(choices.screen, progress)

    async def run() -> int:
        with contextlib.redirect_stdout(sys.stderr), plugin_log_shown():
            async with _host(choices, person) as host:
                if "." in name:
                    return await _accept(choices, host, name, person, yes=yes)
                approval = await host.approvals.get(full_id(name, await host.approvals.ids(), "approval"))
                shown = "\n".join(_told(approval))
                if approval.state == "pending" and not await person.agrees(shown, "Run it?", yes=yes):
                    choices.screen.say(f"not approved: it waits on; `cyrene approvals deny {approval.id}` refuses it")
                    return 1
                started = await host.approvals.approve(approval.id, by=_decider())
                if not host.executions.has(started.id):
                    choices.screen.say("approved: the host that serves runs it")
                ended = await follow(host.executions, started.id, progress)
                assert ended.result is not None, "one that has ended has a result"
                return show_result(choices, ended.result)

    return _done(run)


def deny(choices: Choices, name: str, *, reason: str) -> int:
    """Refuse a call that waits.

    Raises:
        WrongUseError: there is no such approval.
        CommandFailedError: it was decided before, or has expired.
    """

    async def refuse() -> Approval:
        async with Archive(read_settings_alone(choices)) as archive:
            approval_id = full_id(name, await archive.approvals.ids(), "approval")
            await archive.approvals.deny(approval_id, by=_decider(), reason=reason)
            return await archive.approvals.get(approval_id)

    approval = _done(refuse)
    if choices.as_json:
        choices.screen.json(_document(approval))
    else:
        choices.screen.answer(f"'{approval.id}' is denied: '{in_one_line(approval.tool_id)}' does not run")
    return 0


def _changed(choices: Choices) -> Sequence[ChangedDefinition]:
    inventory = Inventory.read(choices.plugins, config=choices.config, overrides=choices.overrides)
    return Listing(inventory).changed()


def _done(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        return wait_for(work)
    except ApprovalError as error:
        raise CommandFailedError(error.what, where=error.where, mend=error.mend) from error


def _host(choices: Choices, person: Person) -> Opening:
    return Host.open(
        choices.plugins,
        config=choices.config,
        overrides=choices.overrides,
        approver=person.approver,
        messenger=person.messenger,
        asker=person.asker,
        start="called",
        kind="command",
    )


async def _accept(choices: Choices, host: Host, tool_id: str, person: Person, *, yes: bool) -> int:
    changed = {tool.tool_id: tool for tool in host.approvals.changed()}
    if tool_id not in changed:
        near = nearest(tool_id, changed)
        raise WrongUseError(
            f"the definition of '{tool_id[:80]}' is not waiting to be accepted",
            where="tool id",
            mend=f"did you mean '{near}'?" if near else "`cyrene approvals list` shows what waits",
        )
    if not await person.agrees("\n".join(_told_change(changed[tool_id])), "Accept it?", yes=yes):
        choices.screen.say("not accepted: nobody can call it")
        return 1
    host.approvals.accept(tool_id, by=_decider())
    if choices.as_json:
        choices.screen.json({"tool_id": tool_id, "accepted": True})
    else:
        choices.screen.answer(f"'{tool_id}' is accepted as it is now; a host that runs takes it at its next reload")
    return 0


def _decider() -> str:
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a user without a name
        return f"cli:{os.getuid()}"


def _document(approval: Approval) -> dict[str, Any]:
    return approval.to_dict() | {"expires_in_s": round(max(0.0, approval.expires_at - time.time()), 1)}


def _told(approval: Approval) -> Iterator[str]:
    yield f"{approval.id}: {_state(approval)}"
    yield f"  execution: {approval.execution_id}"
    yield f"  principal: {in_one_line(approval.principal)}, by {approval.surface}"
    yield told_call(approval.tool_id, approval.plugin, approval.danger, json.loads(approval.arguments))


def _state(approval: Approval) -> str:
    if approval.state == "pending":
        return f"waits, and expires in {max(0.0, approval.expires_at - time.time()):.0f} s"
    by = f" by '{in_one_line(approval.decided_by)}'" if approval.decided_by else ""
    return f"{approval.state}{by}" + (f": {in_one_line(approval.reason)}" if approval.reason else "")


def _told_change(tool: ChangedDefinition, most: int | None = None) -> Iterator[str]:
    yield f"{in_one_line(tool.tool_id)}: its definition has changed since '{in_one_line(tool.accepted_by)}' accepted it"
    lines = list(difflib.unified_diff(_lines(tool.accepted), _lines(tool.now), n=1, lineterm=""))[2:]
    for line in lines[:most]:
        yield f"  {line}"
    if most is not None and len(lines) > most:
        yield f"  … and {len(lines) - most} lines more"
    if most is not None:
        yield f"  accept it: `cyrene approvals approve {in_one_line(tool.tool_id)}`"


def _lines(definition: Mapping[str, Any]) -> list[str]:
    return escaped(json.dumps(definition, ensure_ascii=False, indent=2, sort_keys=True)).splitlines()
