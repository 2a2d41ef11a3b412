"""The reminder plugin by a clock that a test sets: the file `now` beside this module."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

from cyrene_reminder import ReminderPlugin

NOW = Path(__file__).parent / "now"


class FileClock:
    """Shows what the file says."""

    def now(self) -> datetime:
        return datetime.fromisoformat(NOW.read_text(encoding="utf-8"))

    async def wait_until(self, moment: datetime | None, wake: asyncio.Event) -> None:
        while not wake.is_set() and (moment is None or self.now() < moment):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)


class ClockedReminderPlugin(ReminderPlugin):
    clock = FileClock()
