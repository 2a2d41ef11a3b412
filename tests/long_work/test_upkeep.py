"""What a host that serves sees to by itself: old records go."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host.host import desk

DAY = 86_400.0


def kept(site: Any) -> set[str]:
    with contextlib.closing(sqlite3.connect(site.state / "cyrene.db")) as database:
        return {name for (name,) in database.execute("SELECT id FROM executions")}


def age(site: Any, execution_id: str) -> None:
    with contextlib.closing(sqlite3.connect(site.state / "cyrene.db")) as database, database:
        database.execute("UPDATE executions SET ended_at = ? WHERE id = ?", (time.time() - 31 * DAY, execution_id))


@pytest.mark.parametrize("runtime", ["inline"], indirect=True)
async def test_a_host_that_serves_forgets_what_is_old_at_its_start_and_now_and_then(
    site: Any, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Any]
) -> None:
    monkeypatch.setattr(desk, "FORGET_EVERY_S", 0.1)
    async with site.open() as host:
        first, second, young = [await host.start_execution("scan", {"pages": 1}) for _ in range(3)]
        for started in (first, second, young):
            await host.executions.wait(started.id)
    age(site, first.id)
    async with site.open():
        await until(lambda: kept(site) == {second.id, young.id})
        age(site, second.id)
        await until(lambda: kept(site) == {young.id})


@pytest.mark.parametrize("runtime", ["inline"], indirect=True)
async def test_an_end_that_the_disk_did_not_take_is_told_and_is_kept_when_it_can_be(
    site: Any, until: Callable[..., Any], slow: Callable[[float], float]
) -> None:
    database = site.state / "cyrene.db"
    async with site.open() as host:
        started = await host.start_execution("mark", {"name": "a", "seconds": 0.3})
        await until(lambda: site.notes == ["begin a"])
        database.rename(aside := site.state / "aside")
        database.mkdir()
        async with asyncio.timeout(slow(10)):
            ended = await host.executions.wait(started.id)
            late = [event async for event in host.executions.events(started.id)]
        database.rmdir()
        aside.rename(database)
        await until(lambda: ends(site, started.id) == 1)
    async with site.open(start="called") as host:
        kept = [event async for event in host.executions.events(started.id)]
        later = await host.executions.get(started.id)

    assert ended.state == "completed"
    assert kept == late
    assert later == ended


def ends(site: Any, execution_id: str) -> int:
    with contextlib.closing(sqlite3.connect(site.state / "cyrene.db")) as database:
        query = "SELECT count(*) FROM execution_events WHERE execution_id = ? AND kind = 'end'"
        return int(database.execute(query, (execution_id,)).fetchone()[0])
