"""Take the time of day out of a phrase in plain words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cyrene_reminder.english import DAY_PARTS
from cyrene_reminder.refusals import impossible

__all__ = ["DAY", "DEFAULT", "DayTime", "take_day_time"]

DAY = 24 * 60
NOON = 12

_USUAL = {"dawn": 5, "morning": 9, "noon": 12, "afternoon": 15, "evening": 20, "midnight": 24}

# For each part of the day: the hours that it has, as they may be said, and what each means (24 and more: the next day).
_HOURS: dict[str, dict[int, int]] = {
    "dawn": {12: 0, **{hour: hour for hour in range(7)}},
    "morning": {hour: hour for hour in range(13)},
    "noon": {11: 11, 12: 12, 13: 13, 14: 14, 1: 13, 2: 14},
    "afternoon": {12: 12, **{hour: hour + 12 for hour in range(1, 8)}, **{hour: hour for hour in range(13, 20)}},
    "evening": {
        **{hour: hour + 12 for hour in range(5, 12)},
        **{hour: hour for hour in range(17, 25)},
        12: 24,
        0: 24,
        **{hour: hour + 24 for hour in range(1, 5)},
    },
    "midnight": {0: 24, 12: 24, 24: 24, 11: 23, 23: 23, **{hour: hour for hour in range(1, 6)}},
    "am": {12: 0, **{hour: hour for hour in range(12)}},
    "pm": {12: 12, **{hour: hour + 12 for hour in range(1, 12)}, **{hour: hour for hour in range(13, 24)}},
}
_TIME = re.compile(
    r"(?:\bat )?(?<![\d/.:-])(?P<hour>\d+):(?P<minute>\d\d)(?::00)?(?![\d:])(?: ?(?P<half>[ap]m)\b)?"
    r"|(?:\bat )?(?<![\d/.:-])(?P<hour_of>\d+) ?(?P<half_of>[ap]m)\b"
    r"|\bat (?P<bare>\d+)\b(?![:/.-]?\d)"
)
_PART = re.compile(rf"\b(?:in (?:the )?|at |this )?(?P<part>{'|'.join(DAY_PARTS)})\b")


@dataclass(frozen=True, slots=True)
class DayTime:
    """A time of day.

    `minutes` count from 00:00 of the day that is meant: 1440 and more are the night after it. `is_open` tells that
    twelve hours later may be meant as well, since nothing says which half of the day. `is_midnight`: the word was said.
    """

    minutes: int
    is_open: bool = False
    is_midnight: bool = False


DEFAULT = DayTime(9 * 60)
"""The time on a day that is named without one."""


def take_day_time(phrase: str, said: str) -> tuple[DayTime | None, str]:
    """Take the time of day out of a phrase.

    Args:
        phrase: in plain words.
        said: the user's own words, for the refusal.
    Returns:
        The time, None where the phrase has none; and the rest of the phrase.
    Raises:
        ArgumentError: there is no such time, such as 25:00 or 13 o'clock in the morning.
    """
    time, rest = _cut(_TIME, phrase)
    part, rest = _cut(_PART, rest)
    name = part["part"] if part else None
    if time is None:
        return (DayTime(_USUAL[name] * 60, is_midnight=name == "midnight") if name else None), rest
    written = time["hour"] or time["hour_of"] or time["bare"]
    minutes = _minutes(int(written), int(time["minute"] or 0), [time["half"] or time["half_of"], name], said)
    is_open = not (name or time["half"] or time["half_of"]) and 1 <= int(written) <= NOON and written[0] != "0"
    return DayTime(minutes, is_open=is_open, is_midnight=name == "midnight"), rest


def _cut(pattern: re.Pattern[str], phrase: str) -> tuple[re.Match[str] | None, str]:
    match = pattern.search(phrase)
    return match, f"{phrase[: match.start()]} {phrase[match.end() :]}" if match else phrase


def _minutes(hour: int, minute: int, parts: list[str | None], said: str) -> int:
    if hour > 24 or minute > 59 or (hour == 24 and minute):
        raise impossible(said, f"{hour}:{minute:02} is no time of day: hours go from 0 to 23, minutes from 0 to 59")
    settled = False
    for part in filter(None, parts):
        meant = _HOURS[part].get(hour)
        if meant is None or (settled and meant % 24 != hour):
            raise impossible(said, f"{hour}:{minute:02} is not in the part of the day that is named ({part})")
        hour, settled = meant, True
    return 60 * hour + minute
