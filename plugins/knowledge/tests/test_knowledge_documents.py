"""Files as sections: Markdown, HTML, PDF and plain text, in the encodings that people use."""

from collections.abc import Callable, Sequence
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from cyrene_knowledge import pdf as pdf_module
from cyrene_knowledge.documents import is_document, sections_of
from cyrene_knowledge.encoding import decoded
from cyrene_knowledge.section import Reading, UnreadableError

Pdf = Callable[[Sequence[str]], bytes]


def read(name: str, raw: bytes | str) -> list[tuple[str, str]]:
    """Return (heading, text without white space around it) of each section."""
    raw = raw.encode() if isinstance(raw, str) else raw
    return [(section.heading, section.text.strip()) for section in sections_of(name, raw, Reading(lambda _: None))]


@pytest.mark.parametrize("name", ["a.md", "A.MARKDOWN", "a.txt", "a.HTM", "a.html", "a.pdf", "a.rst"])
def test_a_document_is_known_by_its_name(name: str) -> None:
    assert is_document(name)


@pytest.mark.parametrize("name", ["a.py", "md", "a.png", "a", ".md"])
def test_other_files_are_no_documents(name: str) -> None:
    assert not is_document(name)


def test_markdown_is_cut_at_its_headings_which_are_told_with_those_above() -> None:
    text = (
        "intro\n# One #\ntext 1\n## Two\n~~~\n# no heading\n```\n~~~\nThree\n=====\ntext 3\n####### no\n#no\n"
        "\n---\n# C#\nlast"
    )

    assert read("a.md", text) == [
        ("", "intro"),
        ("One", "text 1"),
        ("One › Two", "~~~\n# no heading\n```\n~~~"),
        ("Three", "text 3\n####### no\n#no\n\n---"),
        ("C#", "last"),
    ]


def test_html_is_what_a_browser_shows_under_its_headings() -> None:
    page = (
        "<html><head><title>T &amp; t</title><style>p{}</style><script>var a = '<h1>no</h1>'</script></head><body>"
        "<p>one <b>bo</b>ld<br>line</p><!-- no --><h2>Sec <i>two</i></h2><ul><li>a<li>b</ul>"
        "<template><p>no</template><h1>Top</h1><table><tr><td>1<td>2</table>tail"
    )

    assert read("a.html", page) == [
        ("T & t", "one bold\nline"),
        ("T & t › Sec two", "a\nb"),
        ("T & t › Top", "1\n2\ntail"),
    ]


def test_a_heading_that_is_never_closed_hides_no_text() -> None:
    assert read("a.html", f"<h1>{'word ' * 100}") == [(("word " * 100)[:200], ("word " * 100).strip())]


@given(st.text(alphabet=st.sampled_from("<>!-[]/&;?\"'= ahscript1"), max_size=200))
def test_no_html_is_more_than_unreadable(text: str) -> None:
    try:
        read("a.html", text)
    except UnreadableError as error:
        assert "the HTML is broken" in str(error)  # noqa: PT017 - most texts raise nothing


def test_html_that_is_nested_without_end_is_read() -> None:
    assert read("a.html", "<div>" * 100_000 + "deep") == [("", "deep")]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("中文 text".encode(), "中文 text"),
        ("中文".encode("utf-8-sig"), "中文"),
        ("中文\r\n二".encode("utf-16"), "中文\n二"),
        ("\ufeff中文".encode("utf-16-be"), "中文"),
        ("中文".encode("utf-32"), "中文"),
        ("中文，㐀".encode("gb18030"), "中文，㐀"),
        (b"a\x07b\x7f", "ab"),
    ],
)
def test_text_is_read_in_the_encodings_that_people_use(raw: bytes, text: str) -> None:
    assert decoded(raw) == text


def test_html_is_read_in_the_encoding_that_it_names() -> None:
    latin = "<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'><p>caf\u00e9s".encode("latin-1")

    assert read("a.html", latin) == [("", "cafés")]
    assert read("a.html", "<meta charset='no-such-code'><p>中文".encode("gb18030")) == [("", "中文")]


@pytest.mark.parametrize(
    ("raw", "why"),
    [(b"PK\x03\x04\0\0\x08", "it is binary, not text"), (b"\xff\xff\xff", "neither UTF-8, UTF-16 nor GB 18030")],
)
def test_what_is_no_text_says_why(raw: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        decoded(raw)


def test_a_pdf_is_read_page_by_page(pdf: Pdf) -> None:
    told: list[float] = []

    sections = list(sections_of("a.pdf", pdf(["one page", "", "three", ""]), Reading(told.append)))

    assert [(section.page, section.text) for section in sections] == [(1, "one page"), (3, "three")]
    assert told == [0.0, 0.25, 0.5, 0.75]


def test_a_broken_pdf_is_unreadable(pdf: Pdf) -> None:
    for raw in (b"", b"%PDF-1.4 nothing", pdf(["text"])[:200]):
        with pytest.raises(UnreadableError, match="the PDF is broken"):
            read("a.pdf", raw)


def test_an_encrypted_pdf_is_unreadable(pdf: Pdf) -> None:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf(["secret"]))))
    writer.encrypt("password", algorithm="RC4-128")
    raw = BytesIO()
    writer.write(raw)

    with pytest.raises(UnreadableError, match="it is encrypted"):
        read("a.pdf", raw.getvalue())


def test_a_pdf_of_too_many_pages_is_unreadable(pdf: Pdf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_module, "MAX_PAGES", 1)

    with pytest.raises(UnreadableError, match="it has 2 pages; at most 1 are read"):
        read("a.pdf", pdf(["one", "two"]))


def test_a_pdf_page_that_cannot_be_read_leaves_the_others(pdf: Pdf) -> None:
    raw = pdf(["one", "two"])
    reading = Reading(lambda _: None)

    broken = raw.replace(b"/FlateDecode", b"/NoSuchThing", 1)
    sections = list(sections_of("a.pdf", broken, reading))

    assert [section.page for section in sections] == [2]
    assert [note.partition(":")[0] for note in reading.notes] == ["page 1 cannot be read"]


def test_a_pdf_of_pictures_is_noted(pdf: Pdf) -> None:
    reading = Reading(lambda _: None)

    assert list(sections_of("a.pdf", pdf([""]), reading)) == []
    assert reading.notes == ["it has no text; perhaps its pages are pictures"]
