"""Deliver reminders when they are due: one task, which sleeps until the next one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from cyrene_reminder.clock import Clock
from cyrene_reminder.ledger import Ledger, Reminder
from cyrene_reminder.sentences import notice
from cyrene_sdk import CyreneError, HostAPI

__all__ = ["Delivery"]

FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(minutes=5)
ANSWER_S = 30.0  # seconds that the host may take for one message; it may be busy, and is then tried again
LATE = timedelta(minutes=1)  # told as late from here on: whoever reads it would wonder


@dataclass(slots=True)
class _Trouble:
    """A reminder that could not be delivered, or whose delivery could not be written down."""

    again: datetime
    wait: timedelta
    is_told: bool


class Delivery:
    """Tells users what they wanted to be reminded of.

    A reminder is told first and then marked in the storage: a crash between the two tells it twice, never not at all.

    Args:
        ledger: the reminders.
        host: takes the messages.
        clock: what "due" goes by.
        zone: whose wall clock repeats go by.
    """

    def __init__(self, ledger: Ledger, host: HostAPI, clock: Clock, zone: tzinfo) -> None:
        self._ledger = ledger
        self._host = host
        self._clock = clock
        self._zone = zone
        self._wake = asyncio.Event()
        self._troubles: dict[str, _Trouble] = {}

    def wake(self) -> None:
        """Look again for the next reminder: one was added or cancelled."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled; what is overdue is delivered at once."""
        while True:
            self._wake.clear()
            await self._deliver_due()
            await self._clock.wait_until(self._next(), self._wake)

    def _next(self) -> datetime | None:
        return min((self._when(reminder) for reminder in self._ledger.all()), default=None)

    def _when(self, reminder: Reminder) -> datetime:
        trouble = self._troubles.get(reminder.id)
        return trouble.again if trouble else reminder.due

    async def _deliver_due(self) -> None:
        self._troubles = {number: trouble for number, trouble in self._troubles.items() if self._ledger.has(number)}
        for reminder in self._ledger.all():
            if self._when(reminder) <= self._clock.now() and self._ledger.has(reminder.id):
                await self._deliver(reminder)

    async def _deliver(self, reminder: Reminder) -> None:
        trouble = self._troubles.get(reminder.id)
        is_told = trouble is not None and trouble.is_told
        try:
            async with asyncio.timeout(ANSWER_S):
                if not is_told:
                    await self._tell(reminder)
                    is_told = True
                await self._mark(reminder)
        except (CyreneError, OSError, TimeoutError) as error:
            self._note_trouble(reminder, trouble, is_told, error)
        else:
            self._troubles.pop(reminder.id, None)

    async def _tell(self, reminder: Reminder) -> None:
        is_late = self._clock.now() - reminder.due > LATE
        await self._host.notify(reminder.user_id, notice(reminder, self._zone, is_late=is_late))

    async def _mark(self, reminder: Reminder) -> None:
        if not self._ledger.has(reminder.id):
            return  # cancelled while it was being told
        if reminder.repeat is None:
            await self._ledger.remove(reminder)
        else:
            now = max(self._clock.now(), reminder.due)
            await self._ledger.postpone(reminder, reminder.repeat.next_after(now, self._zone))

    def _note_trouble(
        self, reminder: Reminder, trouble: _Trouble | None, is_told: bool, error: CyreneError | OSError
    ) -> None:
        wait = min(trouble.wait * 2, LONGEST_WAIT) if trouble else FIRST_WAIT
        self._troubles[reminder.id] = _Trouble(self._clock.now() + wait, wait, is_told)
        undone = "marked as delivered" if is_told else "delivered"
        self._host.logger.warning(
            "reminder '%s' could not be %s, and is tried again in %d s: %s",
            reminder.id,
            undone,
            wait.total_seconds(),
            str(error) or type(error).__name__,
        )
