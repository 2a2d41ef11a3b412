"""What is said of a time that cannot be taken, and how to say it better."""

from __future__ import annotations

from cyrene_sdk import ArgumentError, ModelRetry

__all__ = ["UnreadableError", "ambiguous", "impossible", "over"]

_EXAMPLES = (
    "say it like 'tomorrow at 8am', 'in 10 minutes', 'next Wednesday at 3:30pm', 'every Monday at 9am', "
    "'明天早上八点', '半小时后', '每天早上七点', or as 2026-12-01T08:00"
)


class UnreadableError(ArgumentError):
    """The phrase is no time that this package reads."""

    def __init__(self, phrase: str, *, because: str = "is no time that can be read") -> None:
        super().__init__(f"'{phrase[:80]}' {because}: {_EXAMPLES}", path="/when")


def impossible(phrase: str, why: str) -> ArgumentError:
    """Return the refusal of a time that there is not, such as 25:00; `why` says what there is."""
    return ArgumentError(f"'{phrase[:80]}': {why}", path="/when")


def over(phrase: str, moment: str) -> ArgumentError:
    """Return the refusal of a time that has passed; `moment` is the time that the phrase means."""
    return ArgumentError(f"'{phrase[:80]}' means {moment}, which is over: name a time to come", path="/when")


def ambiguous(phrase: str, readings: str) -> ModelRetry:
    """Return the refusal of a time that may mean two things; `readings` says which, and how to say each."""
    return ModelRetry(f"'{phrase[:80]}' may mean two times: {readings}; ask the user if it is not clear")
