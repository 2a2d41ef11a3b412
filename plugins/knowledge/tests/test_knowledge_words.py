"""Words, the expressions made of requests, and the snippets made of matches."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_knowledge.chunks import MAX_CHUNK, chunks_of
from cyrene_knowledge.snippet import BEGIN, END, MAX_SNIPPET, snippet
from cyrene_knowledge.words import expression, index_text, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World_2!", "hello world 2"),
        ("知识库", "知识 识库 库"),
        ("库", "库"),
        ("用FTS5检索，快", "用 fts5 检索 索 快"),
        ("ＡＰＩ ﬁle", "api file"),
        ("x" * 100, "x" * 64),
        ("。！ -- ", ""),
    ],
)
def test_a_run_of_signs_is_pairs_and_its_last_sign_and_letters_are_words(text: str, words: str) -> None:
    assert index_text(text) == words


@given(st.text())
def test_every_word_says_where_it_stands_and_has_no_space_in_it(text: str) -> None:
    for word in words_of(text):
        assert word.text
        assert " " not in word.text
        assert 0 <= word.start < word.end <= len(text)


@pytest.mark.parametrize(
    ("request_text", "wanted"),
    [
        ("知识", '"知识"'),
        ("库", '"库"*'),
        ("知识库", '"知识 识库" OR "知识" OR "识库"'),
        ("用 API", '"用"* OR "api"'),
        ("plugins.json", '"plugins json" OR "plugins" OR "json"'),
        ("how to restart", '"restart"'),
        ("to be or not", '"not"'),
        ("to be", '"to" OR "be"'),
        ('"*()', ""),
    ],
)
def test_a_request_becomes_phrases_and_words(request_text: str, wanted: str) -> None:
    assert expression(request_text) == wanted


@given(st.text(alphabet=st.sampled_from('ab知识库 "*()^:-+{}AND OR NOT NEAR,\0\\'), min_size=1) | st.text())
def test_no_request_is_a_fault_in_the_syntax_of_fts5(request_text: str) -> None:
    words = expression(request_text)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(heading, text, tokenize='porter unicode61')")
    if words:
        assert database.execute("SELECT * FROM t WHERE t MATCH ?", (words,)).fetchall() == []
    database.close()


def test_a_request_of_any_length_has_a_bounded_number_of_terms() -> None:
    assert expression(" ".join(f"word{number}" for number in range(500))).count(" OR ") == 63


def test_a_snippet_is_the_text_as_it_was_written_with_marks_around_what_matched() -> None:
    text = "Before.\n\nThe Worker’s\tRestarts, and 知识库 too."
    marked = f"before the {BEGIN}worker{END} s {BEGIN}restarts{END} and {BEGIN}知识 识库{END} 库 too"

    assert snippet(text, marked) == "Before. The «Worker»’s «Restarts», and «知识库» too."


def test_a_snippet_of_a_long_text_shows_where_most_matches_are() -> None:
    text = f"one {'word ' * 200}one two three {'word ' * 200}"
    hit = [f"{BEGIN}{word.text}{END}" if word.text in ("one", "two", "three") else word.text for word in words_of(text)]

    shown = snippet(text, " ".join(hit))

    assert "«one» «two» «three»" in shown
    assert shown.startswith("…word ")
    assert shown.endswith(("word…", "word …"))
    assert len(shown) < MAX_SNIPPET + 40


def test_a_snippet_without_a_match_is_the_beginning() -> None:
    assert snippet("Welcome.", "welcome") == "Welcome."


@given(st.text(alphabet="ab。 \n", max_size=5000))
def test_pieces_are_small_and_lose_nothing_but_white_space(text: str) -> None:
    pieces = list(chunks_of(text))

    assert all(len(piece) <= MAX_CHUNK for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_pieces_end_where_a_reader_pauses() -> None:
    pieces = list(chunks_of("一句话。" * 400))

    assert len(pieces) > 1
    assert all(piece.endswith("。") for piece in pieces)
