"""What `cyrene doctor` tells."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Symptom"]


class Symptom(NamedTuple):
    """One thing that was looked at."""

    level: Literal["fine", "note", "wrong"]
    about: str
    what: str
    mend: str = ""
