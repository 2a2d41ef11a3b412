"""A caller that leaves: the call ends in the worker too, and a call that refuses to end costs the worker alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

Ground = Any
Until = Callable[..., Any]

STAYS = """
import asyncio
from pathlib import Path

from cyrene_sdk import BasePlugin, PluginMetadata, tool

SIGNS = Path(__file__).parent.parent


class Stays(BasePlugin):
    meta = PluginMetadata(name="NAME", version="VERSION")

    @tool(timeout_ms=20000)
    async def NAME_leaves(self) -> str:
        '''End when it is told to.'''
        (SIGNS / "NAME.began").touch()
        try:
            await asyncio.sleep(30)
        finally:
            (SIGNS / "NAME.left").touch()
        return "slept"

    @tool(timeout_ms=20000)
    async def NAME_stays(self) -> str:
        '''Never end.'''
        (SIGNS / "NAME.began").touch()
        while True:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                (SIGNS / "NAME.left").touch()

    @tool
    async def NAME_do(self) -> int:
        '''Tell the pid.'''
        import os
        return os.getpid()
"""


async def leave(host: Any, ground: Ground, until: Until, tool: str, how: str) -> None:
    if how == "task":
        task = asyncio.create_task(host.call(tool))
        await until(lambda: ground.has("one", "began"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(host.call, tool)
            await until(lambda: ground.has("one", "began"))
            scope.cancel()


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_a_call_whose_caller_leaves_ends_and_its_worker_stays(ground: Ground, until: Until, how: str) -> None:
    ground.plugin("one", source=STAYS)
    ground.list("one")

    async with ground.open() as host:
        before = (await host.call("one_do")).data
        await leave(host, ground, until, "one_leaves", how)
        await until(lambda: ground.has("one", "left"))
        await asyncio.sleep(0.3)  # longer than the grace after which a call counts as one that stays
        after = (await host.call("one_do")).data

    assert after == before


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_a_call_that_stays_though_its_caller_left_costs_its_worker(
    ground: Ground, until: Until, how: str
) -> None:
    ground.plugin("one", source=STAYS)
    ground.list("one")

    async with ground.open() as host:
        before = (await host.call("one_do")).data
        await leave(host, ground, until, "one_stays", how)
        await until(lambda: host.plugins.get("one").restarts == 1)
        after = await host.call("one_do")

    assert after.success, after.error
    assert after.data != before


async def test_a_call_that_is_cancelled_before_it_begins_costs_nothing(ground: Ground) -> None:
    ground.plugin("one", source=STAYS)
    ground.list("one")

    async with ground.open() as host:
        before = (await host.call("one_do")).data
        for _ in range(20):
            task = asyncio.create_task(host.call("one_leaves"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        after = (await host.call("one_do")).data
        assert host.plugins.get("one").restarts == 0

    assert after == before
    assert not ground.has("one", "left") or ground.has("one", "began")
