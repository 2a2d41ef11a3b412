"""Read the day out of what a phrase in plain words says beside its time of day."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, time, timedelta

import dateparser

from cyrene_reminder.english import WEEKDAYS
from cyrene_reminder.refusals import ambiguous, impossible

__all__ = ["SPAN", "day_of", "relative"]

_UNIT = r"(?:seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w|months?|years?)"
_AMOUNTS = rf"\d+(?:\.\d+)? ?{_UNIT}(?:,? (?:and )?\d+(?:\.\d+)? ?{_UNIT})*"
SPAN = re.compile(rf"in {_AMOUNTS}|{_AMOUNTS} (?:from now|ago)")
"""A time that is told by its distance from now."""

_WHICH = r"(?P<which>(?:next )+|this )?"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(rf"(?=.*\b(?:{_MONTHS})).*\d.*|\d{{1,4}}[/.-]\d{{1,2}}(?:[/.-]\d{{1,4}})?\.?")
_EITHER_ORDER = re.compile(r"(\d{1,2})[/.-](\d{1,2})(?:[/.-]\d{2,4})?\.?")


def day_of(rest: str, *, today: date, earliest: date, said: str) -> date | None:
    """Return the day that the rest of a phrase means.

    Args:
        rest: in plain words, without a time of day, `on`, `at` and `the`; empty means `earliest`.
        earliest: the first day that will do, for days that come again and again, such as Monday.
        said: the user's own words, for the refusal.
    Returns:
        The day, which may be over where the phrase leaves no choice (yesterday); None where it is no day.
    Raises:
        ArgumentError: there is no such day, such as 30 February.
        ModelRetry: 5/6 may be two days.
    """
    if not rest:
        return earliest
    for pattern, read in _FORMS:
        if match := pattern.fullmatch(rest):
            return read(match, today, earliest)
    if SPAN.fullmatch(rest):
        moment = relative(rest, datetime.combine(today, time()))
        return moment.date() if moment else None
    return _dated(rest, today, earliest, said)


def relative(phrase: str, base: datetime) -> datetime | None:
    """Return the moment that a phrase such as `in 10 minutes` names, on the clock of `base`; None where there is none.

    Args:
        base: now, without a zone: by UTC for hours and less, by the wall clock for days and more.
    """
    return dateparser.parse(
        phrase,
        languages=["en"],
        settings={"RELATIVE_BASE": base, "PARSERS": ["relative-time"], "TIMEZONE": "UTC"},
    )


def _dated(rest: str, today: date, earliest: date, said: str) -> date | None:
    """24 dec, thu 24 dec, dec 24th 2027, 24 dec next year, 24/12/2026, 2026-12-24."""
    named = re.search(rf"\b(?:{'|'.join(WEEKDAYS)})\b", rest)
    if named:
        rest = f"{rest[: named.start()]} {rest[named.end() :]}".strip()
    year = re.search(r" (?P<which>(?:next )+|this )year$", rest)
    if year:
        rest = f"{rest[: year.start()]} {today.year + year['which'].count('next')}"
    if not _DATE.fullmatch(rest):
        return None
    either = _EITHER_ORDER.fullmatch(rest)
    if either and either[1] != either[2] and max(int(either[1]), int(either[2])) <= 12:
        raise ambiguous(said, "day and month are in an order that differs by country: write the date as 2026-12-24")
    found = dateparser.parse(
        rest,
        languages=["en"],
        settings={
            # Dates without a year are looked for after the base.
            "RELATIVE_BASE": datetime.combine(earliest, time()) - timedelta(days=1),
            "PREFER_DATES_FROM": "future",
            "PARSERS": ["absolute-time"],
            "REQUIRE_PARTS": ["day", "month"],
            "DATE_ORDER": "YMD" if re.match(r"\d{4}", rest) else "MDY",
            "TIMEZONE": "UTC",
        },
    )
    if found is None:
        raise impossible(said, "there is no such date: write it as 2026-12-24")
    if named and WEEKDAYS[found.weekday()] != named[0]:
        raise impossible(said, f"{found:%Y-%m-%d} is no {named[0].capitalize()}: leave out the day of the week")
    return found.date()


def _weekday(match: re.Match[str], today: date, earliest: date) -> date:
    days = [WEEKDAYS.index(match["day"])] if match["day"] else [5, 6]
    if (which := match["which"]) and ("next" in which or match["day"]):
        return _monday(today, which.count("next")) + timedelta(days=days[0])
    return next(day for day in (earliest + timedelta(days=n) for n in range(7)) if day.weekday() in days)


def _month_day(match: re.Match[str], today: date, earliest: date) -> date | None:
    number = int(match["day"] or match["nth"])
    ahead = range(match["which"].count("next"), match["which"].count("next") + 1) if match["which"] else range(13)
    for months in ahead:
        first = _first_of_month(today, months)
        if 1 <= number <= monthrange(first.year, first.month)[1]:
            day = first.replace(day=number)
            if match["which"] or day >= earliest:
                return day
    return None


def _end(match: re.Match[str], today: date, earliest: date) -> date:
    ahead = (match["which"] or "").count("next")
    if match["unit"] == "year":
        return date(today.year + ahead, 12, 31)
    last = _first_of_month(today, ahead + 1) - timedelta(days=1)
    return last if match["which"] or last >= earliest else _first_of_month(today, 2) - timedelta(days=1)


def _monday(today: date, weeks: int) -> date:
    return today + timedelta(days=7 * weeks - today.weekday())


def _first_of_month(today: date, months: int) -> date:
    years, month = divmod(today.month - 1 + months, 12)
    return date(today.year + years, month + 1, 1)


_Read = Callable[[re.Match[str], date, date], date | None]

_FORMS: list[tuple[re.Pattern[str], _Read]] = [
    (re.compile(pattern), read)
    for pattern, read in [
        (r"today(?: plus (?P<days>\d))?", lambda match, today, _: today + timedelta(days=int(match["days"] or 0))),
        (r"tomorrow", lambda _, today, __: today + timedelta(days=1)),
        (r"yesterday", lambda _, today, __: today - timedelta(days=1)),
        (rf"(?:coming )?{_WHICH}(?:(?P<day>{'|'.join(WEEKDAYS)})|weekend)", _weekday),
        (r"(?P<which>(?:next )+)week", lambda match, today, _: _monday(today, match["which"].count("next"))),
        (r"(?P<which>(?:next )+)month", lambda match, today, _: _first_of_month(today, match["which"].count("next"))),
        (rf"{_WHICH}(?:month )?day (?P<day>\d{{1,2}})(?P<nth>\b)", _month_day),
        (rf"{_WHICH}month (?P<day>)(?P<nth>\d{{1,2}})(?:st|nd|rd|th)", _month_day),
        (rf"(?P<day>)(?P<nth>\d{{1,2}})(?:st|nd|rd|th)(?: (?:of )?{_WHICH}month)?", _month_day),
        (rf"(?:end|last day) (?:of )?{_WHICH}(?P<unit>month|year)", _end),
    ]
]
