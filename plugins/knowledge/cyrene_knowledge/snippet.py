"""The part of a text that shows best why it was found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cyrene_knowledge.words import words_of

__all__ = ["BEGIN", "END", "snippet"]

BEGIN, END = "\x02", "\x03"
"""What stands around a match in a marked list of words."""

MAX_SNIPPET = 280
BEFORE = 60
"""Characters shown before the first match, at most."""


def snippet(text: str, marked: str) -> str:
    """Return a stretch of the text on one line, with `«»` around what matched and `…` where it goes on.

    Args:
        text: as it was read.
        marked: its words as they are indexed, with BEGIN and END around those that matched.
    """
    spans = _spans(text, marked)
    start = _start(text, spans)
    end = _no_word_cut(text, start + MAX_SNIPPET)
    shown, at = ["…" if start else ""], start
    for first, last in spans:
        if start <= first and last <= end:
            shown += text[at:first], "«", text[first:last], "»"
            at = last
    shown += text[at:end], "…" if end < len(text) else ""
    return re.sub(r"\s+", " ", "".join(shown)).strip()


def _spans(text: str, marked: str) -> list[tuple[int, int]]:
    """Where in the text the matches are; those that touch are one."""
    spans: list[tuple[int, int]] = []
    is_inside = False
    for word, told in zip(words_of(text), marked.split(" "), strict=False):
        if is_inside or BEGIN in told:
            if spans and word.start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], word.end)
            else:
                spans.append((word.start, word.end))
        if BEGIN in told or END in told:
            is_inside = told.rfind(BEGIN) > told.rfind(END)
    return spans


def _start(text: str, spans: Sequence[tuple[int, int]]) -> int:
    """Where to begin so that most matches are seen."""
    if not spans:
        return 0
    room = MAX_SNIPPET - BEFORE
    best = max(spans, key=lambda span: sum(span[0] <= first and last <= span[0] + room for first, last in spans))
    return _no_word_cut(text, max(0, best[0] - BEFORE), most=best[0])


def _no_word_cut(text: str, at: int, *, most: int | None = None) -> int:
    """Return the next place from `at` on, within some characters, where no word is cut."""
    most = len(text) if most is None else most
    if at <= 0 or at >= len(text):
        return min(max(at, 0), len(text))
    for place in range(at, min(at + 20, most)):
        if not (text[place - 1].isalnum() and text[place].isalnum()):
            return place
    return at
