"""The look for what other processes decided goes on, whatever one look came to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cyrene_host.host import lookout
from cyrene_host.host.lookout import Lookout


async def test_a_look_that_fails_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, slow: Callable[[float], float], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lookout, "LOOK_S", 0.01)
    looks, has_looked = [], asyncio.Event()

    async def look() -> bool:
        looks.append(1)
        if len(looks) < 3:
            raise RuntimeError("a row that nobody can read")
        has_looked.set()
        return False

    looking = Lookout()
    looking.add(look)
    looking.need()
    async with asyncio.timeout(slow(5)):
        await has_looked.wait()
    await looking.close()

    assert len([record for record in caplog.records if record.name == "cyrene.executions"]) == 1
