"""Executions: long work reports, can be followed, read and cancelled, and survives its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host import CallContext
from cyrene_host.host.executions import UnknownExecutionError

ALICE, BOB = CallContext(principal="alice"), CallContext(principal="bob")


async def test_a_tool_written_class_by_class_runs_and_reports(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("scan", {"pages": 20})
        events = [event async for event in host.executions.events(started.id)]
        ended = await host.executions.get(started.id)

    assert started.state == "queued"
    assert started.tool_id == "long.scan"
    assert (ended.state, ended.progress, ended.plugin_execution_id) == ("completed", 1.0, "scan-1")
    assert ended.result.output == "20 pages"
    assert ended.result.call_id == ended.call_id
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.state for event in events][:2] == ["queued", "running"]
    assert [event.is_last for event in events] == [False] * (len(events) - 1) + [True]
    progress = [event.progress for event in events]
    assert progress == sorted(progress)
    assert 0 < progress[len(events) // 2] < 1
    assert events[-1].result == ended.result


async def test_a_cancelled_tool_is_told_by_its_own_id(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("scan", {"pages": 10_000})
        async for event in host.executions.events(started.id):
            if event.progress > 0:
                break
        await host.executions.cancel(started.id)
        ended = await host.executions.wait(started.id)
        again = await host.executions.cancel(started.id)

    assert ended.state == "cancelled"
    assert ended.result.error_kind == "cancelled"
    assert ended.progress > 0
    assert again == ended
    assert site.notes == ["cancel scan-1"]


async def test_call_waits_for_the_result_of_long_work_and_leaves_it_readable(site: Any) -> None:
    async with site.open() as host:
        result = await host.call("scan", {"pages": 3}, context=ALICE)
        (kept,) = await host.executions.list()

    assert result.success
    assert result.output == "3 pages"
    assert result.tool_name == "scan"
    assert (kept.state, kept.principal, kept.result) == ("completed", "alice", result)


async def test_arguments_that_do_not_fit_are_told_and_leave_no_execution(site: Any) -> None:
    async with site.open() as host:
        refused = await host.call("scan", {"pages": "many"})
        by_the_tool = await host.call("scan", {"pages": 0})
        given = await host.start_execution("scan", {"pages": "many"})
        ended = await host.executions.wait(given.id)
        unknown = await host.executions.wait((await host.start_execution("scam")).id)
        kept = await host.executions.list()

    assert refused.error_kind == "invalid_arguments"
    assert by_the_tool.error_kind is not None
    assert ended.state == "failed"
    assert ended.result.error_kind == "invalid_arguments"
    assert unknown.state == "failed"
    assert unknown.result.error_kind == "unknown_tool"
    assert "scan" in unknown.result.error
    assert refused.call_id not in {execution.call_id for execution in kept}


async def test_a_caller_who_leaves_does_not_end_long_work(site: Any) -> None:
    async with site.open() as host:
        caller = asyncio.create_task(host.call("scan", {"pages": 30}))
        while not (running := await host.executions.list(states=["running"])):  # noqa: ASYNC110 - nobody tells its id
            await asyncio.sleep(0.01)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        ended = await host.executions.wait(running[0].id)

    assert ended.state == "completed"
    assert ended.result.output == "30 pages"


async def test_events_are_read_from_any_point_without_gap_or_repeat(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("scan", {"pages": 60})
        early = host.executions.events(started.id)
        first = [await anext(early) for _ in range(3)]
        late = [event async for event in host.executions.events(started.id, after=2)]
        rest = [event async for event in early]
    async with site.open() as host:
        kept = [event async for event in host.executions.events(started.id)]
        tail = [event async for event in host.executions.events(started.id, after=kept[-2].seq)]

    assert first + rest == kept
    assert late == kept[2:]
    assert tail == kept[-1:]


async def test_another_principals_execution_is_unknown(site: Any) -> None:
    async with site.open() as host:
        hers = await host.start_execution("scan", {"pages": 2}, context=ALICE)
        await host.executions.wait(hers.id, principal="alice")
        for ask in (host.executions.get, host.executions.wait, host.executions.cancel):
            with pytest.raises(UnknownExecutionError, match="there is no execution"):
                await ask(hers.id, principal="bob")
        with pytest.raises(UnknownExecutionError):
            await anext(host.executions.events(hers.id, principal="bob"))
        assert await host.executions.list(principal="bob") == []
        assert [found.id for found in await host.executions.list(principal="alice")] == [hers.id]


async def test_a_host_that_closes_interrupts_what_runs_and_says_so_later(site: Any) -> None:
    async with site.open() as host:
        started = await host.start_execution("scan", {"pages": 10_000})
        async for event in host.executions.events(started.id):
            if event.progress > 0:
                break
    async with site.open(start="called") as host:
        found = await host.executions.get(started.id)

    assert found.state == "interrupted"
    assert found.progress > 0
    assert found.message.startswith("page ")
    assert found.result.error_kind == "interrupted"
    assert "its host stopped" in found.result.error


async def test_an_execution_that_says_nothing_for_too_long_ends_by_its_idle_limit(site: Any) -> None:
    async with site.open(overrides={"limits.idle_s": 0.3}) as host:
        result = await host.call("scan", {"pages": 5, "pause_s": 30})

    assert result.error_kind == "timeout"
    assert "limits.idle_s" in result.error


async def test_secret_arguments_are_not_kept(site: Any) -> None:
    async with site.open() as host:
        await host.executions.wait((await host.start_execution("log_in", {"password": "hunter2hunter2"})).id)
        (kept,) = await host.executions.list()

    assert kept.arguments == {"password": "***"}
    everything = b"".join(path.read_bytes() for path in site.state.rglob("*") if path.is_file())
    assert b"hunter2" not in everything


async def test_two_hosts_side_by_side_the_second_is_told_the_firsts_process(site: Any) -> None:
    import os

    from cyrene_host.record.instances import StateInUseError

    async with site.open():
        with pytest.raises(StateInUseError, match=str(os.getpid())) as caught:
            async with site.open():
                pass
        async with site.open(start="called") as beside:
            result = await beside.call("who")
    async with site.open() as after:
        assert (await after.call("who")).success

    assert caught.value.pid == os.getpid()
    assert str(site.state) in str(caught.value)
    assert result.error_kind == "plugin_unavailable"
    assert str(os.getpid()) in result.error


async def test_an_idempotency_key_makes_a_repeated_request_the_same_call(site: Any) -> None:
    keyed = CallContext(principal="alice", idempotency_key="k1")
    async with site.open() as host:
        twice = await asyncio.gather(*(host.call("mark", {"name": "a", "seconds": 0.1}, context=keyed) for _ in "12"))
        other = await host.call("mark", {"name": "b", "seconds": 0.1}, context=keyed)
        elses = await host.call(
            "mark", {"name": "c", "seconds": 0}, context=CallContext(principal="bob", idempotency_key="k1")
        )
    async with site.open() as host:
        later = await host.call("mark", {"name": "a", "seconds": 0.1}, context=keyed)

    assert twice[0] == twice[1] == later
    assert twice[0].success
    assert other.error_kind == "denied"
    assert "another call" in other.error
    assert elses.output == "c"
    assert site.notes == ["begin a", "end a", "begin c", "end c"]


@pytest.mark.parametrize("runtime", ["process"], indirect=True)
async def test_a_failed_disk_does_not_stop_long_work(site: Any, until: Callable[..., Any]) -> None:
    async with site.open() as host:
        await host.call("who")
        (site.state / "cyrene.db").mkdir()  # in the place of the database
        result = await host.call("scan", {"pages": 3})

    assert result.success
    assert result.output == "3 pages"
