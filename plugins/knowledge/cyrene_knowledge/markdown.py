"""Markdown as sections: what stands under each heading, as it was written.

Headings are all that matters here, and they are found line by line: a parser of the whole language would take half a
minute for a document of 20 MB, in which nobody can stop it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cyrene_knowledge.section import Outline, Reading, Section

__all__ = ["markdown_sections"]

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_LINES_A_TICK = 1000


def markdown_sections(text: str, reading: Reading) -> Iterator[Section]:
    """Yield the sections of a Markdown document (CommonMark: ATX and setext headings, none in fenced code)."""
    outline, fence, kept = Outline(), "", list[str]()
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number % _LINES_A_TICK == 0:
            reading.tick(number / len(lines))
        if fence or _FENCE.match(line):
            fence = _fence_after(fence, line)
            kept.append(line)
        elif heading := _ATX.match(line):
            yield Section("\n".join(kept), outline.path)
            kept = []
            outline.enter(len(heading[1]), _title(line[heading.end() :]))
        elif kept and kept[-1].strip() and (underline := _SETEXT.match(line)):
            title = kept.pop().strip()
            yield Section("\n".join(kept), outline.path)
            kept = []
            outline.enter(1 if underline[1][0] == "=" else 2, title)
        else:
            kept.append(line)
    yield Section("\n".join(kept), outline.path)


def _title(rest: str) -> str:
    """Return the heading without the signs that may close it."""
    title = rest.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def _fence_after(fence: str, line: str) -> str:
    """Return the fence that is open after a line: a fence is closed by one as long of the same sign."""
    fenced = _FENCE.match(line)
    if not fence:
        return fenced[1] if fenced else ""
    return "" if fenced and fenced[1].startswith(fence) and not fenced[2].strip() else fence
