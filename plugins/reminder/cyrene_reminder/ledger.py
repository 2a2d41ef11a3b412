"""The reminders that are to come: in memory for the scheduler, in the host's storage for the next start."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from cyrene_reminder.reading import Moment
from cyrene_reminder.repeats import Cycle, Repeat
from cyrene_sdk import Storage

__all__ = ["MOST_PER_USER", "Language", "Ledger", "Reminder", "TooManyError"]

MOST_PER_USER = 500
PREFIX = "reminder."
ID_BYTES = 3

Language = Literal["zh", "en"]


class TooManyError(Exception):
    """A user has as many reminders as a user may have."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """What to tell whom when; `due` is in UTC, `language` that of the request."""

    id: str
    user_id: str
    text: str
    due: datetime
    repeat: Repeat | None
    language: Language


class _Record(BaseModel):
    """A reminder as it is kept."""

    model_config = ConfigDict(extra="ignore")

    user_id: str
    text: str
    due: AwareDatetime
    language: Language = "en"
    weekdays: list[int] = Field(default=[], max_length=7)
    month_day: int | None = Field(default=None, ge=1, le=31)
    hour: int | None = Field(default=None, ge=0, le=23)
    minute: int = Field(default=0, ge=0, le=59)

    @classmethod
    def of(cls, reminder: Reminder) -> _Record:
        """Return what is kept of a reminder."""
        repeat = reminder.repeat
        return cls(
            user_id=reminder.user_id,
            text=reminder.text,
            due=reminder.due,
            language=reminder.language,
            weekdays=sorted(repeat.cycle.weekdays) if repeat else [],
            month_day=repeat.cycle.month_day if repeat else None,
            hour=repeat.hour if repeat else None,
            minute=repeat.minute if repeat else 0,
        )

    def reminder(self, number: str) -> Reminder:
        """Return the reminder that was kept."""
        cycle = Cycle(frozenset(self.weekdays) & frozenset(range(7)), self.month_day)
        repeats = self.hour is not None and (cycle.weekdays or cycle.month_day)
        repeat = Repeat(cycle, self.hour or 0, self.minute) if repeats else None
        return Reminder(number, self.user_id, self.text, self.due.astimezone(UTC), repeat, self.language)


class Ledger:
    """All reminders of all users. What it changes is changed in the storage before it returns.

    Args:
        storage: one key, `reminder.<id>`, for each.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._reminders: dict[str, Reminder] = {}

    async def load(self, log: logging.Logger) -> None:
        """Read what an earlier start has kept; what cannot be read is named in the log, and left where it is."""
        for key in await self._storage.keys():
            if not key.startswith(PREFIX):
                continue
            try:
                kept = _Record.model_validate(await self._storage.get(key))
            except ValidationError as error:
                log.warning("the reminder under '%s' cannot be read, and is left as it is: %s", key, error)
                continue
            number = key.removeprefix(PREFIX)
            self._reminders[number] = kept.reminder(number)

    def all(self) -> Sequence[Reminder]:
        """Return every reminder, the next one first."""
        return sorted(self._reminders.values(), key=lambda reminder: reminder.due)

    def of(self, user_id: str) -> Sequence[Reminder]:
        """Return the reminders of one user, the next one first."""
        return [reminder for reminder in self.all() if reminder.user_id == user_id]

    def has(self, number: str) -> bool:
        """Tell whether the reminder with this id is still to come."""
        return number in self._reminders

    async def add(self, user_id: str, text: str, moment: Moment, language: Language) -> Reminder:
        """Keep a new reminder.

        Raises:
            TooManyError: the user has 500.
        """
        if len(self.of(user_id)) >= MOST_PER_USER:
            raise TooManyError
        number = secrets.token_hex(ID_BYTES)
        while number in self._reminders:
            number = secrets.token_hex(ID_BYTES)
        reminder = Reminder(number, user_id, text, moment.due, moment.repeat, language)
        self._reminders[number] = reminder  # before the first wait, so that two calls at once are counted both
        try:
            await self._write(reminder)
        except Exception:
            del self._reminders[number]
            raise
        return reminder

    async def remove(self, reminder: Reminder) -> None:
        """Forget a reminder: it was cancelled, or delivered for the last time."""
        await self._storage.delete(PREFIX + reminder.id)
        self._reminders.pop(reminder.id, None)

    async def postpone(self, reminder: Reminder, due: datetime) -> None:
        """Keep that a reminder is due next at another time."""
        later = replace(reminder, due=due)
        await self._write(later)
        self._reminders[reminder.id] = later

    async def _write(self, reminder: Reminder) -> None:
        kept: dict[str, Any] = _Record.of(reminder).model_dump(mode="json")
        await self._storage.set(PREFIX + reminder.id, kept)
