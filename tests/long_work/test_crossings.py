"""Crashes, cancels and approvals in the midst of one another leave one end each, and nothing that waits for ever."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from typing import Any

import pytest

from cyrene_host.host import lookout
from cyrene_host.host.approvals import ApprovalError

pytestmark = pytest.mark.parametrize("runtime", ["inline"], indirect=True)

USED = "UPDATE approvals SET state = 'approved', decided_at = ?, used_at = ?"
REFUSED = "UPDATE approvals SET state = 'denied', decided_at = ?, reason = ?"
ASKED_AT_HAND = "UPDATE executions SET approval_id = NULL, started_at = coalesce(?, ?)"
ONLY_ADDED = "UPDATE executions SET state = 'queued', approval_id = NULL, started_at = coalesce(?, ?)"


def change(site: Any, statement: str, *values: Any) -> None:
    """Leave the database as a host that was killed in between would have."""
    with contextlib.closing(sqlite3.connect(site.state / "cyrene.db")) as database, database:
        database.execute(statement, values)


async def held(site: Any) -> Any:
    """Let a call wait for a person in a host that is gone then."""
    async with site.open() as host:
        return (await host.call("erase", {"what": "disk"})).data


@pytest.mark.parametrize("crash", [USED, REFUSED, ASKED_AT_HAND, ONLY_ADDED])
async def test_what_a_dead_host_was_about_to_run_or_to_end_is_interrupted_and_never_run(site: Any, crash: str) -> None:
    waits = await held(site)
    change(site, crash, time.time(), time.time())

    async with site.open() as host:
        found = await host.executions.get(waits["execution_id"])
        with pytest.raises(ApprovalError, match="it is decided once"):
            await host.approvals.approve(waits["approval_id"], by="carol")

    assert found.state == "interrupted"
    assert site.notes == []


async def test_an_approved_call_that_no_host_ran_in_time_is_not_run_later(site: Any) -> None:
    waits = await held(site)
    change(site, "UPDATE approvals SET state = 'approved', decided_at = ?", time.time() - 301)

    async with site.open() as host:
        ended = await host.executions.wait(waits["execution_id"])

    assert ended.state == "failed"
    assert "nobody ran it after it was approved within 300 s" in ended.result.error
    assert site.notes == []


async def test_a_cancel_is_not_lost_while_the_wait_for_a_person_is_being_kept(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("erase", {"what": "disk"})
        await anext(event async for event in host.executions.events(started.id) if event.state == "waiting")
        ended = await host.executions.cancel(started.id)
        still_open = await host.approvals.list()

    assert ended.state == "cancelled"
    assert still_open == []


async def test_a_call_that_is_cancelled_after_its_approval_and_before_its_run_does_not_run(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "LOOK_S", 3.0)
    async with site.open() as at_work:
        waits = await at_work.call("erase", {"what": "disk"})
        async with site.open(start="called") as beside:
            await beside.approvals.approve(waits.data["approval_id"], by="carol")
            ended = await beside.executions.cancel(waits.data["execution_id"])

    assert ended.state == "cancelled"
    assert site.notes == []


async def test_what_was_approved_is_not_run_by_a_host_with_another_definition(site: Any) -> None:
    async with site.open() as at_work, site.open(start="called") as beside:
        waits = await at_work.call("erase", {"what": "disk"})
        site.write((site.folder / "long_plugin.py").read_text().replace("Erase something.", "Erase all, and tell."))
        await at_work.reload()
        await beside.approvals.approve(waits.data["approval_id"], by="carol")
        ended = await at_work.executions.wait(waits.data["execution_id"])

    assert ended.state == "failed"
    assert "has changed since its call was approved" in ended.result.error
    assert site.notes == []


async def test_an_approval_does_not_run_what_the_operator_denies_meanwhile(site: Any) -> None:
    waits = await held(site)
    async with site.open(overrides={"danger.high": "deny"}) as host:
        await host.approvals.approve(waits["approval_id"], by="carol")
        ended = await host.executions.wait(waits["execution_id"])

    assert ended.result.error_kind == "denied"
    assert site.notes == []


async def test_an_approved_call_counts_as_dangerous_as_the_person_was_told(site: Any) -> None:
    async with site.open() as host:
        outer = await host.call("relay", {"name": "jot", "arguments": {"name": "a", "seconds": 0}})
        await host.approvals.approve(outer.data["approval_id"], by="carol")
        relayed = (await host.executions.wait(outer.data["execution_id"])).result.data
        await host.approvals.approve(relayed["data"]["approval_id"], by="carol")
        await host.executions.wait(relayed["data"]["execution_id"])
        last = [record for record in host.audit.tail(20, tool="long.jot") if record["kind"] == "started"][-1]

    assert relayed["error_kind"] == "approval_required"
    assert (last["fields"]["danger"], last["fields"]["decision"]) == ("high", "approved")
    assert site.notes == ["begin a", "end a"]
