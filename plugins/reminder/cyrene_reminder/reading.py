"""Read when a reminder is due, and how it repeats, from a phrase in Chinese or English, or ISO 8601."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from cyrene_reminder.chinese import in_plain_english
from cyrene_reminder.days import SPAN, day_of, relative
from cyrene_reminder.daytimes import DAY, DEFAULT, DayTime, take_day_time
from cyrene_reminder.english import in_plain_words
from cyrene_reminder.refusals import UnreadableError, ambiguous, impossible, over
from cyrene_reminder.repeats import EVERY_DAY, Cycle, Repeat, Rhythm, instant, take_cycle

__all__ = ["MAX_PHRASE", "Moment", "read_moment"]

MAX_PHRASE = 200
LONGEST = timedelta(days=3660)
"""Ten years: what is further away is a slip of the tongue."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?([+-]\d\d:?\d\d|Z))?", re.IGNORECASE)
_SMALL_UNITS = re.compile(r"\d ?(?:s|m|h|seconds?|secs?|minutes?|mins?|hours?|hrs?)\b")
_FILLERS = re.compile(r"\b(?:on|at|by|around|about|the|of|sharp|please|for)\b")
_HALF_DAY = 12 * 60
_SLEEPING_HOURS = range(60, 6 * 60)  # 1:00 to 5:59: of a day that is named, nobody means them without saying so


@dataclass(frozen=True, slots=True)
class Moment:
    """When a reminder is due (UTC), and when again."""

    due: datetime
    repeat: Repeat | None = None


def read_moment(said: str, *, now: datetime, zone: tzinfo, rhythm: Rhythm | None = None) -> Moment:
    """Return the moment that a phrase means, always after `now`.

    What may be several times is the next of them: `at 5`, `Monday`, `on the 5th`, `Dec 24`. A day without a time is
    09:00; `morning`, `afternoon` and `evening` alone are 09:00, 15:00 and 20:00. `next Wednesday` and 下周三 are
    the Wednesday of the next week, which begins on Monday.

    Args:
        said: at most 200 characters, such as `明天早上八点`, `in 10 minutes`, `every Monday at 9`, `2026-12-01T08:00`.
        now: an aware moment.
        zone: whose wall clock is meant.
        rhythm: how a phrase that names one time repeats.
    Raises:
        ArgumentError: it is no time, it is over, or further than ten years away.
        ModelRetry: it may be two times.
    """
    said = said.strip()
    if not said or len(said) > MAX_PHRASE:
        raise UnreadableError(said, because=f"is no time (which has 1 to {MAX_PHRASE} characters)")
    moment = _read(said, now.astimezone(zone), zone)
    if rhythm and moment.repeat and moment.repeat.cycle.rhythm != rhythm:
        raise impossible(said, f"it repeats {moment.repeat.cycle.rhythm}, but `repeat` says {rhythm}: leave one out")
    if rhythm and not moment.repeat:
        moment = _repeated(moment.due, rhythm, now, zone)
    if moment.due - now > LONGEST:
        raise impossible(said, f"{_shown(moment.due, zone)} is further away than ten years")
    return moment


def _read(said: str, now: datetime, zone: tzinfo) -> Moment:
    if _ISO.fullmatch(said):
        return Moment(_iso(said, now, zone))
    phrase = _plain(said)
    cycle, phrase = take_cycle(phrase, said)
    time, phrase = take_day_time(phrase, said)
    rest = " ".join(_FILLERS.sub(" ", phrase).split())
    if cycle:
        if rest:
            raise UnreadableError(said)
        repeat = _repeat(cycle, time or DEFAULT, said)
        return Moment(repeat.next_after(now, zone), repeat)
    if not rest and not time:
        raise UnreadableError(said)
    due = _spanned(rest, now, zone) if SPAN.fullmatch(rest) and not time else _timed(rest, time, now, zone, said)
    if due is None:
        raise UnreadableError(said)
    if due <= now:
        raise over(said, _shown(due, zone))
    return Moment(due)


def _plain(said: str) -> str:
    """Lower case, no full-width characters, no punctuation between words; Chinese said in English."""
    phrase = unicodedata.normalize("NFKC", said).lower()
    phrase = re.sub(r"[,;!?。、]|\.$|\.(?= )", " ", phrase)
    return " ".join(in_plain_words(" ".join(in_plain_english(phrase).split())).split())


def _iso(said: str, now: datetime, zone: tzinfo) -> datetime:
    try:
        moment = datetime.fromisoformat(said.replace(" ", "T", 1).replace(" ", ""))
    except ValueError as error:
        raise impossible(said, f"there is no such time ({error})") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    due = moment.astimezone(UTC)
    if due <= now:
        raise over(said, _shown(due, zone))
    return due


def _spanned(span: str, now: datetime, zone: tzinfo) -> datetime | None:
    """Hours and less pass on any clock; days and more end at the same time on the wall clock."""
    if _SMALL_UNITS.search(span):
        moment = relative(span, now.astimezone(UTC).replace(tzinfo=None))
        return moment.replace(tzinfo=UTC) if moment else None
    moment = relative(span, now.replace(tzinfo=None))
    return moment.replace(tzinfo=zone).astimezone(UTC) if moment else None


def _timed(rest: str, time: DayTime | None, now: datetime, zone: tzinfo, said: str) -> datetime | None:
    """The first time after now that fits; else the last that would have, which is over."""
    if time and time.is_midnight and rest not in ("", "today"):
        raise ambiguous(said, "the midnight before that day or the one after it: say 00:00 or 23:59")
    minutes = _minutes(rest, time or DEFAULT, said)
    due = None
    for earliest in (now.date(), now.date() + timedelta(days=1)):
        day = day_of(rest, today=now.date(), earliest=earliest, said=said)
        for minute in minutes if day else ():
            assert day is not None
            due = _instant(day, minute, zone, said)
            if due > now:
                return due
    return due


def _minutes(rest: str, time: DayTime, said: str) -> list[int]:
    """The times of day that may be meant, the earlier first."""
    if not time.is_open:
        return [time.minutes]
    if rest in ("", "today"):
        return sorted((time.minutes % _HALF_DAY + half) for half in (0, _HALF_DAY))
    _refuse_sleeping_hours(time, said)
    return [time.minutes]


def _repeat(cycle: Cycle, time: DayTime, said: str) -> Repeat:
    if time.is_open:
        _refuse_sleeping_hours(time, said)
    if time.minutes >= DAY and cycle.weekdays != EVERY_DAY:
        raise ambiguous(said, "the night before that day or the one after it: name the day and the hour, such as 00:00")
    hour, minute = divmod(time.minutes % DAY, 60)
    return Repeat(cycle, hour, minute)


def _repeated(first: datetime, rhythm: Rhythm, now: datetime, zone: tzinfo) -> Moment:
    shown = first.astimezone(zone)
    cycle = Cycle.of(rhythm, shown.date())
    repeat = Repeat(cycle, shown.hour, shown.minute)
    return Moment(first if cycle.has(shown.date()) else repeat.next_after(max(first, now), zone), repeat)


def _refuse_sleeping_hours(time: DayTime, said: str) -> None:
    if time.minutes in _SLEEPING_HOURS:
        early, late = (f"{(time.minutes + half) // 60:02}:{time.minutes % 60:02}" for half in (0, _HALF_DAY))
        raise ambiguous(said, f"{early} or {late}: write the one that is meant so, or add am, pm, 早上 or 下午")


def _instant(day: date, minutes: int, zone: tzinfo, said: str) -> datetime:
    try:
        return instant(day, minutes, zone)
    except OverflowError as error:
        raise impossible(said, "there is no such date") from error


def _shown(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"
