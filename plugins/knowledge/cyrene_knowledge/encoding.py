"""Bytes as text: by mark, by what the document declares, as UTF-8, as GB 18030."""

from __future__ import annotations

import codecs
import re

from cyrene_knowledge.section import UnreadableError

__all__ = ["cleaned", "decoded"]

_MARKS = (  # the longer ones first: that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GUESSES = ("utf-8", "gb18030")
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030"}  # as browsers read them
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def decoded(raw: bytes, *, declared: str = "") -> str:
    """Return the text of a document.

    Args:
        raw: the whole document.
        declared: the encoding that the document itself names; believed where it fits.
    Raises:
        UnreadableError: it is no text, or in an encoding that is not recognised.
    """
    marked = next((name for mark, name in _MARKS if raw.startswith(mark)), "")
    if not marked and b"\0" in raw:
        raise UnreadableError("it is binary, not text")
    named = _SUPERSETS.get(declared.lower(), declared)
    for name in [marked] if marked else [named, *_GUESSES] if named else _GUESSES:
        try:
            return cleaned(raw.decode(name))
        except (UnicodeDecodeError, LookupError):
            continue
    raise UnreadableError("its encoding is neither UTF-8, UTF-16 nor GB 18030")


def cleaned(text: str) -> str:
    """Return text with `\\n` as its line break and without characters that nobody sees or no UTF-8 can hold."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
