"""Requests that come twice under one key: one call, whatever becomes of those who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host import CallContext
from cyrene_host.errors import CallFailedError, HostStateError

pytestmark = pytest.mark.parametrize("runtime", ["inline"], indirect=True)

KEYED = CallContext(principal="alice", idempotency_key="k1")
MARK = {"name": "a", "seconds": 0.3}


@pytest.mark.parametrize("tool", ["mark", "jot"])
async def test_a_call_under_a_key_outlives_its_callers_and_who_asks_again_gets_its_result(
    site: Any, tool: str, until: Callable[..., Any], slow: Callable[[float], float]
) -> None:
    async with site.open() as host:
        first, second = (asyncio.create_task(host.call(tool, MARK, context=KEYED)) for _ in "12")
        await until(lambda: site.notes == ["begin a"])
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        async with asyncio.timeout(slow(10)):
            both = [await second, await host.call(tool, MARK, context=KEYED)]

    assert [result.output for result in both] == ["a", "a"]
    assert site.notes == ["begin a", "end a"]


async def test_a_result_that_cannot_be_kept_is_told_all_the_same_and_also_to_who_asks_again(
    site: Any, until: Callable[..., Any], slow: Callable[[float], float]
) -> None:
    database = site.state / "cyrene.db"
    async with site.open() as host:
        call = asyncio.create_task(host.call("jot", MARK, context=KEYED))
        await until(lambda: site.notes == ["begin a"])
        database.rename(aside := site.state / "aside")
        database.mkdir()
        first = await call
        database.rmdir()
        aside.rename(database)
        async with asyncio.timeout(slow(10)):
            again = await host.call("jot", MARK, context=KEYED)

    assert first.success
    assert again == first
    assert site.notes == ["begin a", "end a"]


async def test_a_call_under_a_key_is_interrupted_by_a_host_that_closes(site: Any, until: Callable[..., Any]) -> None:
    async with site.open() as host:
        call = asyncio.create_task(host.call("jot", {"name": "a", "seconds": 60}, context=KEYED))
        await until(lambda: site.notes == ["begin a"])
    async with site.open() as host:
        later = await host.call("jot", {"name": "a", "seconds": 60}, context=KEYED)

    assert (await call).error_kind == "interrupted"
    assert later.error_kind == "interrupted"
    assert site.notes == ["begin a"]


async def test_an_execution_under_a_key_is_started_once(site: Any) -> None:
    async with site.open() as host:
        first, second = await asyncio.gather(*(host.start_execution("mark", MARK, context=KEYED) for _ in "12"))
        result = await host.call("mark", MARK, context=KEYED)
        with pytest.raises(CallFailedError, match="used for another call"):
            await host.start_execution("mark", {"name": "b", "seconds": 0}, context=KEYED)
    async with site.open() as host:
        later = await host.start_execution("mark", MARK, context=KEYED)

    assert first.id == second.id == later.id
    assert later.state == "completed"
    assert result == later.result
    assert site.notes == ["begin a", "end a"]


async def test_a_repeated_call_that_waited_for_a_person_gets_the_result_of_its_run(site: Any) -> None:
    async with site.open() as host:
        waits, still = [await host.call("erase", {"what": "disk"}, context=KEYED) for _ in "12"]
        await host.approvals.approve(waits.data["approval_id"], by="carol")
        done = await host.call("erase", {"what": "disk"}, context=KEYED)

    assert still.error_kind == "approval_required"
    assert still.data == waits.data
    assert done.output == "erased disk 1"
    assert site.notes == ["erase disk"]


async def test_a_principal_that_no_database_could_keep_in_a_key_is_refused_at_once(site: Any) -> None:
    with pytest.raises(HostStateError, match="the principal has 257 characters, and may have 256"):
        CallContext(principal="x" * 257)
    longest = CallContext(principal="界" * 256, idempotency_key="界" * 256)
    async with site.open() as host:
        twice = [await host.call("jot", {"name": "a", "seconds": 0}, context=longest) for _ in "12"]

    assert twice[0].success
    assert twice[0] == twice[1]
