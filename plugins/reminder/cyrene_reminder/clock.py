"""The time that reminders are due by, and how to wait for it; tests put their own in its place."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock"]

LONGEST_SLEEP_S = 30.0  # a machine that slept, or whose clock was set, is noticed within this time


class Clock(Protocol):
    """What the reminders go by."""

    def now(self) -> datetime:
        """Return the time, aware."""
        ...

    async def wait_until(self, moment: datetime | None, wake: asyncio.Event) -> None:
        """Return at `moment`, or as soon as `wake` is set; None waits for `wake` alone. It may return earlier."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    async def wait_until(self, moment: datetime | None, wake: asyncio.Event) -> None:
        """Return at `moment`, as soon as `wake` is set, or after 30 s."""
        left_s = LONGEST_SLEEP_S if moment is None else max(0.0, (moment - self.now()).total_seconds())
        with suppress(TimeoutError):
            await asyncio.wait_for(wake.wait(), min(left_s, LONGEST_SLEEP_S))
