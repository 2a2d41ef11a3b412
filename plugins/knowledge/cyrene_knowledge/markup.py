"""HTML as sections: the text under each heading, without what a browser does not show.

The parser is the standard library's. It builds no tree, so that no nesting costs it anything, and it can be stopped at
every tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from cyrene_knowledge.section import MAX_HEADING, Outline, Reading, Section, UnreadableError

__all__ = ["declared_encoding", "html_sections"]

_HEADINGS = {f"h{level}": level for level in range(1, 7)} | {"title": 0}
_UNSHOWN = {"script", "style", "template", "noscript", "svg", "iframe", "object", "select", "textarea"}
_INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark"),
    *("q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?([\w.:-]{2,40})", re.IGNORECASE)
_LOOKED_AT = 4096


def declared_encoding(raw: bytes) -> str:
    """Return the encoding that the beginning of a document names, or nothing."""
    found = _CHARSET.search(raw[:_LOOKED_AT])
    return found[1].decode("ascii") if found else ""


def html_sections(text: str, reading: Reading) -> Iterator[Section]:
    """Yield the sections of an HTML document; its title is the outermost heading.

    Raises:
        UnreadableError: a declaration in it is broken.
    """
    parser = _Shown(reading, text)
    try:
        parser.feed(text)
        parser.close()
    except AssertionError as error:  # how it refuses some broken declarations
        raise UnreadableError(f"the HTML is broken: {error}") from error
    parser.end_section()
    yield from parser.sections


class _Shown(HTMLParser):
    """Collects what is shown."""

    def __init__(self, reading: Reading, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: list[Section] = []
        self._reading = reading
        self._lines = text.count("\n") + 1
        self._outline = Outline()
        self._text: list[str] = []
        self._title: list[str] = []
        self._level: int | None = None  # of the heading that is open
        self._unshown = ""  # the element that is not shown, while it is open
        self._depth = 0  # how often it is open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser's own
        self._tick()
        if self._unshown:
            self._depth += tag == self._unshown
        elif tag in _UNSHOWN:
            self._unshown, self._depth = tag, 1
        elif tag in _HEADINGS:
            self.end_section()
            self._level = _HEADINGS[tag]
        elif tag not in _INLINE:
            self._add(" " if self._level is not None else "\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _UNSHOWN:  # `<script/>` of XHTML opens nothing
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._tick()
        if self._unshown:
            self._depth -= tag == self._unshown
            self._unshown = self._unshown if self._depth else ""
        elif tag in _HEADINGS and self._level is not None:
            self._end_heading()
        elif tag not in _INLINE:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        self._tick()
        if not self._unshown:
            self._add(re.sub(r"\s+", " ", data))

    def end_section(self) -> None:
        """Keep the text since the last heading."""
        self._end_heading()
        lines = (" ".join(line.split()) for line in "".join(self._text).split("\n"))
        self.sections.append(Section("\n".join(line for line in lines if line), self._outline.path))
        self._text.clear()

    def _end_heading(self) -> None:
        if self._level is None:
            return
        title = " ".join("".join(self._title).split())
        if len(title) > MAX_HEADING:  # it was never closed: what follows it is text
            self._text.append(title)
        self._outline.enter(self._level, title)
        self._title.clear()
        self._level = None

    def _add(self, text: str) -> None:
        (self._text if self._level is None else self._title).append(text)

    def _tick(self) -> None:
        self._reading.tick(self.getpos()[0] / self._lines)
