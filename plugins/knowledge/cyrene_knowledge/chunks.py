"""Long text in pieces of a size that a model can read, cut where a reader would pause."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["MAX_CHUNK", "chunks_of"]

MAX_CHUNK = 1200
"""Characters of a piece: some paragraphs of English, a page of Chinese."""

_PAUSES = ("\n\n", "\n", "。", ". ", "；", "，", " ")


def chunks_of(text: str) -> Iterator[str]:
    """Yield the pieces of a text, without white space around them; a text without any is one empty piece."""
    text = text.strip()
    start = 0
    while len(text) - start > MAX_CHUNK:
        end = _pause(text, start)
        if piece := text[start:end].strip():
            yield piece
        start = end
    yield text[start:].strip()


def _pause(text: str, start: int) -> int:
    """Return where to cut: after the last pause of the best kind in the second half of the piece."""
    last = start + MAX_CHUNK
    for pause in _PAUSES:
        at = text.rfind(pause, start + MAX_CHUNK // 2, last)
        if at >= 0:
            return at + len(pause)
    return last
