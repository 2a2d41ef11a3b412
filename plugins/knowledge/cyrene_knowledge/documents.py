"""A file as sections, by what its name says it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from cyrene_knowledge.encoding import decoded
from cyrene_knowledge.markdown import markdown_sections
from cyrene_knowledge.markup import declared_encoding, html_sections
from cyrene_knowledge.pdf import pdf_sections
from cyrene_knowledge.section import Reading, Section

__all__ = ["is_document", "sections_of"]

MARKDOWN = {".md", ".markdown"}
HTML = {".html", ".htm", ".xhtml"}
PLAIN = {".txt", ".text", ".rst", ".log"}


def is_document(name: str) -> bool:
    """Whether a file of this name is one that can be read."""
    return PurePath(name).suffix.lower() in {".pdf", *MARKDOWN, *HTML, *PLAIN}


def sections_of(name: str, raw: bytes, reading: Reading) -> Iterator[Section]:
    """Yield the sections of a document that have text or a heading.

    Args:
        name: the file's name.
        raw: its bytes.
    Raises:
        UnreadableError: it cannot be read; what its `tick` raises passes through.
    """
    for section in _all_sections(PurePath(name).suffix.lower(), raw, reading):
        if section.text.strip() or section.heading:
            yield section


def _all_sections(suffix: str, raw: bytes, reading: Reading) -> Iterator[Section]:
    if suffix == ".pdf":
        return pdf_sections(raw, reading)
    if suffix in HTML:
        return html_sections(decoded(raw, declared=declared_encoding(raw)), reading)
    text = decoded(raw)
    return markdown_sections(text, reading) if suffix in MARKDOWN else iter([Section(text)])
