"""PDF as sections: the text of each page."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from cyrene_knowledge.encoding import cleaned
from cyrene_knowledge.section import Reading, Section, UnreadableError

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

__all__ = ["pdf_sections"]

MAX_PAGES = 2000


def pdf_sections(raw: bytes, reading: Reading) -> Iterator[Section]:
    """Yield a section for each page that has text.

    Raises:
        UnreadableError: it is broken, encrypted, or has more than 2,000 pages.
    """
    document, pages = _opened(raw)
    has_text = False
    for number in range(pages):
        reading.tick(number / pages)
        try:
            text = _text_of(document.pages[number])
        except UnreadableError as error:
            reading.notes.append(f"page {number + 1} cannot be read: {error}")
            continue
        has_text = has_text or bool(text.strip())
        yield Section(text, page=number + 1)
    if not has_text and not reading.notes:
        reading.notes.append("it has no text; perhaps its pages are pictures")


def _opened(raw: bytes) -> tuple[PdfReader, int]:
    from pypdf import PdfReader

    try:
        document = PdfReader(BytesIO(raw))
        is_open = not document.is_encrypted or document.decrypt("")
        pages = len(document.pages) if is_open else 0
    except Exception as error:  # a broken file makes pypdf raise nearly anything
        raise UnreadableError(f"the PDF is broken: {_told(error)}") from error
    if not is_open:
        raise UnreadableError("it is encrypted")
    if pages > MAX_PAGES:
        raise UnreadableError(f"it has {pages} pages; at most {MAX_PAGES} are read")
    return document, pages


def _text_of(page: PageObject) -> str:
    try:
        return cleaned(page.extract_text())
    except Exception as error:  # likewise
        raise UnreadableError(_told(error)) from error


def _told(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:120]
