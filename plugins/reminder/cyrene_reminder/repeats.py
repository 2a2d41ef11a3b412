"""When a reminder comes again: on days of the week, or on a day of each month."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

from cyrene_reminder.english import WEEKDAYS
from cyrene_reminder.refusals import UnreadableError

__all__ = ["EVERY_DAY", "Cycle", "Repeat", "Rhythm", "instant", "take_cycle"]

Rhythm = Literal["daily", "weekdays", "weekly", "monthly"]

EVERY_DAY = frozenset(range(7))
WORKDAYS = frozenset(range(5))
LONGEST_WAIT_DAYS = 63  # a day of the month comes within two months, or the one it is

_SUPPORTED = (
    "repeats in a way that is not supported (supported: every day, every weekday, every Monday and Friday, "
    "every month on the 5th, every month end; 每天, 每个工作日, 每周一三五, 每月5号, 每月底)"
)
_DAYS = "|".join(WEEKDAYS)
_CYCLE = re.compile(
    rf"\b(?:every )?(?:every (?P<all>day)|every (?P<work>weekday)|every (?P<rest>weekend)"
    rf"|(?:every (?:week )?(?:on )?)(?P<days>(?:{_DAYS})(?:,? (?:and )?(?:every )?(?:on )?(?:{_DAYS}))*)"
    r"|every month (?:on )?(?:the )?(?:day )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"|(?:the )?(?P<day_of>\d{1,2})(?:st|nd|rd|th)? (?:day )?of every month"
    r"|(?P<end>every month end|(?:the )?(?:end|last day) of every month))\b"
)


@dataclass(frozen=True, slots=True)
class Cycle:
    """The days that a reminder comes on: of the week (Monday is 0), or one of each month (31 is its last)."""

    weekdays: frozenset[int] = frozenset()
    month_day: int | None = None

    @property
    def rhythm(self) -> Rhythm:
        """The word for it."""
        if self.month_day is not None:
            return "monthly"
        return {EVERY_DAY: "daily", WORKDAYS: "weekdays"}.get(self.weekdays, "weekly")  # type: ignore[return-value]

    def has(self, day: date) -> bool:
        """Tell whether the reminder comes on that day; a month that is too short has it on its last day."""
        if self.month_day is None:
            return day.weekday() in self.weekdays
        return day.day == min(self.month_day, monthrange(day.year, day.month)[1])

    @classmethod
    def of(cls, rhythm: Rhythm, first: date) -> Cycle:
        """Return the cycle that a first day and a word make: weekly from a Monday is every Monday."""
        if rhythm == "monthly":
            return cls(month_day=first.day)
        days = {"daily": EVERY_DAY, "weekdays": WORKDAYS}
        return cls(weekdays=days.get(rhythm, frozenset({first.weekday()})))


@dataclass(frozen=True, slots=True)
class Repeat:
    """A cycle with its time of day, on the wall clock."""

    cycle: Cycle
    hour: int
    minute: int

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """Return the first occurrence after an aware moment, in UTC."""
        first = moment.astimezone(zone).date()
        days = (first + timedelta(days=number) for number in range(LONGEST_WAIT_DAYS))
        occurrences = (instant(day, 60 * self.hour + self.minute, zone) for day in days if self.cycle.has(day))
        return next(occurrence for occurrence in occurrences if occurrence > moment)


def instant(day: date, minutes: int, zone: tzinfo) -> datetime:
    """Return, in UTC, when the wall clock of a zone shows a time.

    A time that daylight saving leaves out is as much later as the clock jumps; of one that comes twice it is the first.

    Args:
        day: the day that the minutes count from.
        minutes: since 00:00 on the wall clock; 1440 and more are the next day.
    """
    shown = datetime.combine(day, time()) + timedelta(minutes=minutes)
    return shown.replace(tzinfo=zone).astimezone(UTC)


def take_cycle(phrase: str, said: str) -> tuple[Cycle | None, str]:
    """Take what says "again and again" out of a plain phrase.

    Args:
        phrase: in plain words.
        said: the user's own words, for the refusal.
    Returns:
        The cycle, None where the phrase means one time; and the rest of the phrase.
    Raises:
        UnreadableError: it repeats, but not in a way that is supported.
    """
    phrase = re.sub(r"\bevery (?=morning|noon|afternoon|evening|midnight)", "every day ", phrase)
    match = _CYCLE.search(phrase)
    rest = f"{phrase[: match.start()]} {phrase[match.end() :]}" if match else phrase
    if re.search(r"\b(?:every|yearly|annually|hourly)\b", rest):
        raise UnreadableError(said, because=_SUPPORTED)
    return (_cycle(match, said), rest) if match else (None, rest)


def _cycle(match: re.Match[str], said: str) -> Cycle:
    if match["all"] or match["work"] or match["rest"]:
        return Cycle(EVERY_DAY if match["all"] else WORKDAYS if match["work"] else EVERY_DAY - WORKDAYS)
    if match["days"]:
        return Cycle(frozenset(WEEKDAYS.index(day) for day in re.findall(_DAYS, match["days"])))
    day = 31 if match["end"] else int(match["day"] or match["day_of"])
    if not 1 <= day <= 31:
        raise UnreadableError(said, because="names a day that no month has")
    return Cycle(month_day=day)
