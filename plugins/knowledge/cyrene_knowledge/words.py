"""Text as the words that the index knows, and a request as an expression that finds them.

Chinese and Japanese have no spaces between words: of a run of their signs every pair is a word, and the last sign
alone. So a request of two signs is one word, one of a single sign is the beginning of words, and a longer one is a
phrase of pairs. The stems of English words, and letters without their accents, are FTS5's work.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Word", "expression", "index_text", "words_of"]

MAX_WORD = 64
"""Characters of a word that count; longer ones are no language."""

MAX_TERMS = 64

_SIGNS = (
    "々〇\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"(?P<signs>[{_SIGNS}]+)|[^\W_{_SIGNS}]+")
_EMPTY = {
    *(
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "how",
        "i",
        "in",
        "is",
        "it",
    ),
    *(
        "my",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "what",
        "when",
        "where",
        "which",
        "who",
        "with",
        "you",
    ),
    *("的", "了", "吗", "呢", "是", "在", "有"),
}
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is indexed, and where it stands in the text.

    `is_sign` says that it is of signs; `is_tail` that it is the last sign of a run, which the pair before has too.
    """

    text: str
    start: int
    end: int
    is_sign: bool = False
    is_tail: bool = False


def words_of(text: str) -> Iterator[Word]:
    """Yield the words of a text, in order."""
    for run in _RUN.finditer(text):
        start, end = run.span()
        if run["signs"] is None:
            if word := _plain(run[0]):
                yield Word(word, start, end)
            continue
        signs = _same_length(run[0])
        for at in range(len(signs)):
            is_tail = 0 < at == len(signs) - 1
            yield Word(signs[at : at + 2], start + at, min(start + at + 2, end), True, is_tail)


def index_text(text: str) -> str:
    """Return the words of a text with a space between each two, as they are indexed."""
    return " ".join(word.text for word in words_of(text))


def expression(request: str) -> str:
    """Return the FTS5 expression for what somebody asks; empty where that has no words.

    Whatever a piece between spaces consists of is looked for as a phrase, and each of its words alone; words that say
    nothing only where there are no others. Quotes, operators and brackets are no words, so that nobody can write FTS5
    syntax.
    """
    terms: dict[str, None] = {}
    for piece in request.split():
        words = list(words_of(piece))
        if words and words[-1].is_tail:
            words.pop()
        if len(words) > 1:
            terms[_quoted(words)] = None
        terms.update((_quoted([word]), None) for word in words if not word.is_tail)
    telling = [term for term in terms if term.strip('"*') not in _EMPTY]
    return " OR ".join((telling or list(terms))[:MAX_TERMS])


def _quoted(words: list[Word]) -> str:
    last = words[-1]
    begins = "*" if last.is_sign and len(last.text) == 1 else ""  # of one sign: also the pairs that begin with it
    return f'"{" ".join(word.text for word in words)}"{begins}'


@lru_cache(maxsize=4096)
def _plain(word: str) -> str:
    return _NO_WORD.sub("", unicodedata.normalize("NFKC", word).casefold())[:MAX_WORD]


def _same_length(signs: str) -> str:
    normal = unicodedata.normalize("NFKC", signs)
    return normal if len(normal) == len(signs) else signs
