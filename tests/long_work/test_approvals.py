"""Approvals: what a person decides is run once, as it was shown, or not at all."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cyrene_host import CallContext
from cyrene_host.catalog.settings import Settings
from cyrene_host.host import executions
from cyrene_host.host.approvals import ApprovalError
from cyrene_host.host.archive import Archive

ALICE, BOB = CallContext(principal="alice"), CallContext(principal="bob")


async def test_a_dangerous_call_waits_and_runs_once_when_it_is_approved(site: Any) -> None:
    async with site.open() as host:
        waits = await host.call("erase", {"what": "disk", "count": "2"}, context=ALICE)
        assert site.notes == []
        (asked,) = await host.approvals.list()
        execution = await host.approvals.approve(asked.id, by="carol")
        ended = await host.executions.wait(execution.id)

    assert waits.error_kind == "approval_required"
    assert asked.id in waits.error
    assert waits.data == {"approval_id": asked.id, "execution_id": execution.id, "expires_at": asked.expires_at}
    assert asked.to_dict()["arguments"] == {"what": "disk", "count": 2}
    assert (asked.tool_id, asked.principal, asked.danger) == ("long.erase", "alice", "high")
    assert asked.expires_at - asked.created_at == 300
    assert ended.state == "completed"
    assert ended.result.output == "erased disk 2"
    assert site.notes == ["erase disk"]


async def test_of_twenty_threads_that_approve_one_call_at_once_one_runs_it(site: Any) -> None:
    async with site.open() as host:
        await host.call("erase", {"what": "disk"})
        (asked,) = await host.approvals.list()
        loop, gate = asyncio.get_running_loop(), threading.Barrier(20)

        def approve(number: int) -> str:
            gate.wait(10)
            approval = host.approvals.approve(asked.id, by=f"person {number}")
            try:
                return str(asyncio.run_coroutine_threadsafe(approval, loop).result(30).id)
            except ApprovalError as refused:
                return refused.what

        with ThreadPoolExecutor(20) as pool:
            said = await asyncio.gather(*(loop.run_in_executor(pool, approve, number) for number in range(20)))
        ended = await host.executions.wait(asked.execution_id)

    assert said.count(asked.execution_id) == 1
    assert all("was approved by 'person" in sentence for sentence in said if sentence != asked.execution_id)
    assert ended.state == "completed"
    assert site.notes == ["erase disk"]


async def test_a_refused_call_never_runs_and_says_why(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("erase", {"what": "disk"})
        waiting = await anext(event async for event in host.executions.events(started.id) if event.state == "waiting")
        (asked,) = await host.approvals.list()
        ended = await host.approvals.deny(asked.id, by="carol", reason="not on a Friday")
        with pytest.raises(ApprovalError, match=r"was denied by 'carol' .*not on a Friday"):
            await host.approvals.approve(asked.id, by="dave")

    assert waiting.result is None
    assert asked.execution_id == started.id
    assert ended.state == "failed"
    assert ended.result.error_kind == "denied"
    assert "not on a Friday" in ended.result.error
    assert site.notes == []


async def test_an_expired_approval_is_refused_and_its_execution_has_failed(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "APPROVAL_S", -1.0)
    async with site.open() as host:
        waits = await host.call("erase", {"what": "disk"})
        with pytest.raises(ApprovalError, match="has expired at"):
            await host.approvals.approve(waits.data["approval_id"], by="carol")
        ended = await host.executions.wait(waits.data["execution_id"])

    assert ended.state == "failed"
    assert "nobody decided within" in ended.result.error
    assert site.notes == []


async def test_an_unknown_approval_is_told(site: Any) -> None:
    async with site.open() as host:
        with pytest.raises(ApprovalError, match="approval 'apr_no' does not exist"):
            await host.approvals.approve("apr_no", by="carol")


async def test_a_changed_definition_voids_what_waits_and_is_withheld_until_it_is_accepted(site: Any) -> None:
    async with site.open() as host:
        first = await host.call("erase", {"what": "disk"})
        await host.approvals.approve(first.data["approval_id"], by="carol")
        await host.executions.wait(first.data["execution_id"])
        second = await host.call("erase", {"what": "tape"})
        site.write((site.folder / "long_plugin.py").read_text().replace("Erase something.", "Erase all, and tell."))
        await host.reload()

        with pytest.raises(ApprovalError, match="has changed since approval was asked for"):
            await host.approvals.approve(second.data["approval_id"], by="carol")
        void = await host.executions.wait(second.data["execution_id"])
        withheld = await host.call("erase", {"what": "disk"})
        (changed,) = host.approvals.changed()
        host.approvals.accept("long.erase", by="carol")
        third = await host.call("erase", {"what": "disk"})
        others = await host.call("who")

    assert void.state == "failed"
    assert "has changed" in void.result.error
    assert withheld.error_kind == "denied"
    assert "has changed since 'carol' accepted it" in withheld.error
    assert (changed.accepted["description"], changed.now["description"]) == ("Erase something.", "Erase all, and tell.")
    assert third.error_kind == "approval_required"
    assert others.success
    assert site.notes == ["erase disk"]


async def test_a_call_with_its_approval_gets_the_result_of_the_one_run(site: Any) -> None:
    async with site.open() as host:
        waits = await host.call("erase", {"what": "disk"}, context=ALICE)
        mine = CallContext(principal="alice", approval_id=waits.data["approval_id"])
        still = await host.call("erase", {"what": "disk"}, context=mine)
        other_arguments = await host.call("erase", {"what": "tape"}, context=mine)
        other_tool = await host.call("log_in", {"password": "x"}, context=mine)
        other_principal = await host.call(
            "erase", {"what": "disk"}, context=CallContext(principal="bob", approval_id=waits.data["approval_id"])
        )
        await host.approvals.approve(waits.data["approval_id"], by="carol")
        twice = [await host.call("erase", {"what": "disk"}, context=mine) for _ in "12"]

    assert still.error_kind == "approval_required"
    assert other_arguments.error_kind == "denied"
    assert "other arguments" in other_arguments.error
    assert other_tool.error_kind == "denied"
    assert "is about 'long.erase'" in other_tool.error
    assert other_principal.error_kind == "denied"
    assert "another principal" in other_principal.error
    assert twice[0] == twice[1]
    assert twice[0].output == "erased disk 1"
    assert site.notes == ["erase disk"]


async def test_what_waits_can_be_decided_after_a_restart_of_the_host(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("purge")
        await anext(event async for event in host.executions.events(started.id) if event.state == "waiting")
    async with site.open() as host:
        (asked,) = await host.approvals.list()
        await host.approvals.approve(asked.id, by="carol")
        ended = await host.executions.wait(started.id)

    assert ended.state == "completed"
    assert ended.result.output == "purged"
    assert site.notes == ["purge"]


async def test_a_cancelled_call_that_waits_cannot_be_approved_any_more(site: Any) -> None:
    async with site.open() as host:
        waits = await host.call("erase", {"what": "disk"})
        ended = await host.executions.cancel(waits.data["execution_id"])
        with pytest.raises(ApprovalError, match="was denied"):
            await host.approvals.approve(waits.data["approval_id"], by="carol")

    assert ended.state == "cancelled"
    assert site.notes == []


async def test_what_another_process_approves_is_run_by_the_host_that_is_at_work(site: Any) -> None:
    async with site.open() as at_work:
        waits = await at_work.call("erase", {"what": "disk"})
        async with site.open(start="called") as beside:
            told = await beside.approvals.approve(waits.data["approval_id"], by="carol")
        ended = await at_work.executions.wait(waits.data["execution_id"])

    assert told.state == "waiting"
    assert ended.state == "completed"
    assert site.notes == ["erase disk"]


async def test_what_another_process_cancels_ends_in_the_host_that_runs_it(site: Any) -> None:
    async with site.open() as at_work:
        started = await at_work.start_execution("scan", {"pages": 10_000})
        await anext(event async for event in at_work.executions.events(started.id) if event.progress > 0)
        async with site.open(start="called") as beside:
            await beside.executions.cancel(started.id)
            ended = await beside.executions.wait(started.id)

    assert ended.state == "cancelled"
    assert site.notes == ["cancel scan-1"]


async def test_an_approver_at_hand_is_asked_and_the_execution_waits_meanwhile(site: Any) -> None:
    seen: list[Any] = []

    async def approver(request: Any) -> bool:
        seen.append((request.execution_id, (await host.executions.get(request.execution_id)).state))
        return True

    async with site.open(approver=approver) as host:
        result = await host.call("purge")
        (kept,) = await host.executions.list()

    assert result.success
    assert seen == [(kept.id, "waiting")]
    assert kept.state == "completed"


async def test_a_command_leaves_to_hosts_that_serve_what_another_process_approved(site: Any, until: Any) -> None:
    async with site.open(start="called") as host:
        asked = (await host.call("erase", {"what": "disk"})).data["approval_id"]
        async with Archive(Settings.model_validate({"host": {"state_dir": str(site.state)}})) as other:  # dies here:
            assert await other.records.approvals.approve(asked, at=time.time(), by="ada")
        assert (await host.call("mark", {"name": "work", "seconds": 1.3})).success  # it looks twice meanwhile
        assert (await host.approvals.get(asked)).used_at is None
    async with site.open() as host:
        await until(lambda: "erase disk" in site.notes, limit_s=20)


async def test_a_call_that_asks_a_person_in_one_process_is_cancelled_from_another(site: Any) -> None:
    is_asked = asyncio.Event()

    async def ask(request: Any) -> bool:
        del request
        is_asked.set()
        await asyncio.sleep(60)
        return True

    async with site.open(start="called", approver=ask) as host:
        started = await host.start_execution("purge")
        await is_asked.wait()
        async with Archive(Settings.model_validate({"host": {"state_dir": str(site.state)}})) as other:
            await other.executions.cancel(started.id)
        ended = await host.executions.wait(started.id)
    assert (ended.state, site.notes) == ("cancelled", [])
