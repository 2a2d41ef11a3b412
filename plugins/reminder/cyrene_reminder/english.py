"""Say an English time phrase with digits and few words, as the readers of this package take it."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["DAY_PARTS", "WEEKDAYS", "in_plain_words"]

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_PARTS = ("dawn", "morning", "noon", "afternoon", "evening", "midnight")

_ONE_TO_TWELVE = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBERS = {word: number for number, word in enumerate(_ONE_TO_TWELVE, 1)} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "forty-five": 45,
    "fifty": 50,
}
_Say = str | Callable[[re.Match[str]], str]


def in_plain_words(phrase: str) -> str:
    """Return an English phrase with digits for number words, and one word for each thing.

    Args:
        phrase: in lower case; what is not known stays as it is.
    """
    for pattern, say in _STEPS:
        phrase = pattern.sub(say, phrase)
    return phrase


def _number(match: re.Match[str]) -> str:
    return str(_NUMBERS[match[0]])


def _past(match: re.Match[str]) -> str:
    """Half past 7 → 7:30, 10 to 5 → 4:50."""
    minute = {"half": 30, "quarter": 15}.get(match["minute"]) or int(match["minute"])
    minutes = 60 * int(match["hour"]) + (minute if match["side"] in ("past", "after") else -minute)
    return f"at {minutes // 60}:{minutes % 60:02}"


def _weekday(match: re.Match[str]) -> str:
    """Wednesday → wed, mondays → every mon."""
    return f"{'every ' if match['many'] else ''}{match['day']}"


# In this order: what comes later would take a part of what comes before.
_SAID: list[tuple[str, _Say]] = [
    (r"\b(?:{})\b".format("|".join(sorted(_NUMBERS, key=len, reverse=True))), _number),
    (r"\ban? (?=hour|minute|day|week|month|year|quarter|half)", "1 "),
    (r"\b(\d+) and (?:1|a) half (hours|days|weeks|months)\b", r"\1.5 \2"),
    (r"\b(\d+) (hour|day|week|month)s? and (?:1|a) half\b", r"\1.5 \2s"),
    (r"\bhalf (?:1 |an )hour\b|\b1 half hour\b", "30 minutes"),
    (r"\b(?:1 )?quarter (?:of )?(?:1 |an )hour\b", "15 minutes"),
    (r"\b(?:at )?(?:1 )?(?P<minute>half|quarter|\d{1,2}) (?P<side>past|after|to) (?P<hour>\d{1,2})\b", _past),
    (r"\b(?:at )?(?P<hour>\d{1,2}) o'? ?clock\b", r"at \g<hour>"),
    (r"\b([ap])\.?m\b\.?", r"\1m"),
    (r"\b(?:the )?day after tomorrow\b", "today plus 2"),
    (r"\b(?:the )?day before yesterday\b", "2 days ago"),
    (r"\b(?:tmrw?|tmw|2moro)\b", "tomorrow"),
    (r"\btonight\b", "today evening"),
    (r"\blast night\b", "yesterday evening"),
    (r"\bthis (?=morning|afternoon|evening|noon)", "today "),
    (r"\bnight\b", "evening"),
    (r"\bmidday\b", "noon"),
    (r"\b(?P<day>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|r|rs|ur)?(?:day(?P<many>s)?)?\b", _weekday),
    (r"\bafter (?=\d)", "in "),
    (r"\b(\d+(?:\.\d+)? \w+) later\b", r"in \1"),
    (r"\b(?:daily|everyday|each day)\b", "every day"),
    (r"\beach\b", "every"),
    (r"\b(?:on )?weekdays\b", "every weekday"),
    (r"\b(?:on )?weekends\b", "every weekend"),
    (r"\bweekly\b", "every week"),
    (r"\bmonthly\b", "every month"),
]
_STEPS = [(re.compile(pattern), say) for pattern, say in _SAID]
