"""A stretch of a document under one heading or on one page, and how reading one is watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Outline", "Reading", "Section", "UnreadableError"]

MAX_HEADING = 200
"""Characters of a heading; what is longer is an unclosed tag or a paragraph in disguise."""


class UnreadableError(Exception):
    """A document cannot be read; its text says why, for people."""


@dataclass(frozen=True, slots=True)
class Section:
    """Text with the headings above it (`Operate › Health`), or with its page, from 1 on."""

    text: str
    heading: str = ""
    page: int | None = None


@dataclass(slots=True)
class Reading:
    """One document while it is read.

    Args:
        tick: told which part of the document (0.0 to 1.0) is read; raises to stop the reading.
    """

    tick: Callable[[float], None]
    notes: list[str] = field(default_factory=list)  # what of the document could not be read


class Outline:
    """The headings that hold at one point of a document."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> None:
        """Begin a section below the last heading of a lower level."""
        self._open = [(above, name) for above, name in self._open if above < level]
        self._open.append((level, title[:MAX_HEADING]))

    @property
    def path(self) -> str:
        """The headings, outermost first."""
        return " › ".join(title for _, title in self._open if title)
