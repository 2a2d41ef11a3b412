"""The time between restarts, which tests do not wait for."""

from __future__ import annotations

import asyncio
import time

import pytest

from cyrene_host import Host


class Pace:
    """The host's clock and sleep: every wait between restarts ends at once, and the clock goes on by it.

    `slept` has the seconds of each wait; `hold()` makes waits last until `go()`.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.ahead_s = 0.0
        self._go = asyncio.Event()
        self._go.set()

    def clock(self) -> float:
        return time.monotonic() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self._go.wait()
        self.ahead_s += seconds

    def hold(self) -> None:
        self._go.clear()

    def go(self) -> None:
        self._go.set()


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Pace:
    """The time between restarts of every host in this test."""
    made = Pace()
    monkeypatch.setattr(Host, "_sleep", staticmethod(made.sleep))
    monkeypatch.setattr(Host, "_clock", staticmethod(made.clock))
    return made
