"""The index: a SQLite database with FTS5, of which one object is one connection.

The text is kept once, as it was read. FTS5 sees it through a view that turns it into words, so that what is found can
be shown as it was written.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cyrene_knowledge.section import Section
from cyrene_knowledge.snippet import BEGIN, END
from cyrene_knowledge.words import index_text

__all__ = ["Counts", "Document", "Hit", "Index", "OutdatedIndexError"]

MAX_BYTES = 200 * 1024 * 1024
"""Of the database: a worker may write files of 256 MiB, and what is being written takes room as well."""

WAIT_S = 5.0
"""How long one connection waits for another that writes."""

FORMAT = 1
"""Counts up whenever the tables change, or what becomes of a text."""

PAGE_BYTES = 4096
STEPS_A_LOOK = 1000
"""Steps of SQLite's machine between two looks whether to interrupt it: some dozen sections."""

_SCHEMA = """
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest TEXT NOT NULL, fault TEXT NOT NULL
);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL REFERENCES file,
    heading TEXT NOT NULL, page INTEGER, text TEXT NOT NULL
);
CREATE INDEX chunk_of_file ON chunk (file);
CREATE VIEW words_of_chunk AS
    SELECT chunk.id AS id, chunk.file AS file,
        index_text(file.name || ' ' || chunk.heading) AS heading, index_text(chunk.text) AS text
    FROM chunk JOIN file ON file.id = chunk.file;
CREATE VIRTUAL TABLE found USING fts5(
    heading, text, content='words_of_chunk', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO found (found, rank) VALUES ('rank', 'bm25(2.0, 1.0)');
"""
_SEARCH = """
SELECT file.path, chunk.heading, chunk.page, chunk.text, highlight(found, 1, ?, ?), rank
FROM found JOIN chunk ON chunk.id = found.rowid JOIN file ON file.id = chunk.file
WHERE found MATCH ? AND ({within}) ORDER BY rank LIMIT ?
"""
_BELOW = "(file.path >= ? AND file.path < ?)"


class OutdatedIndexError(Exception):
    """The database was made by another version of this plugin, or of Unicode."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is known of a file: size in bytes, time in ns (0: not to be relied on), SHA-256 of its bytes, its faults."""

    path: str
    size: int
    mtime_ns: int
    digest: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A piece of a document that fits; `marked` are its words, with marks, and the higher the score the better."""

    path: str
    heading: str
    page: int | None
    text: str
    marked: str
    score: float


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of a folder is in the index; `faulty` files could not be read, or not wholly."""

    files: int
    sections: int
    faulty: int


class Index:
    """One connection to the database, made where there is none.

    Raises:
        OutdatedIndexError: it has another format.
        sqlite3.Error: as every method: it is damaged, full, locked, or cannot be opened.
    """

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, timeout=WAIT_S, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def documents(self, folders: Iterable[Path]) -> dict[str, Document]:
        """Return what is known of the files below some folders, by path."""
        columns = "path, size, mtime_ns, digest, fault"
        rows = (
            row
            for folder in folders
            for row in self._connection.execute(f"SELECT {columns} FROM file WHERE {_BELOW}", _range(folder))
        )
        return {row[0]: Document(*row) for row in rows}

    def put(self, document: Document, sections: Sequence[Section]) -> None:
        """Put a file in, in place of what was there of it; sections of a size that can be shown."""
        with self._writing():
            self._remove(document.path)
            row = (document.path, Path(document.path).stem, *_facts(document))
            values = "(path, name, size, mtime_ns, digest, fault) VALUES (?, ?, ?, ?, ?, ?)"
            file = self._connection.execute(f"INSERT INTO file {values}", row).lastrowid
            self._connection.executemany(
                "INSERT INTO chunk (file, heading, page, text) VALUES (?, ?, ?, ?)",
                ((file, section.heading, section.page, section.text) for section in sections),
            )
            self._connection.execute(
                "INSERT INTO found (rowid, heading, text) SELECT id, heading, text FROM words_of_chunk WHERE file = ?",
                (file,),
            )

    def touch(self, document: Document) -> None:
        """Note new facts of a file whose text is the same."""
        self._connection.execute(
            "UPDATE file SET size = ?, mtime_ns = ?, digest = ?, fault = ? WHERE path = ?",
            (*_facts(document), document.path),
        )

    def remove(self, path: str) -> None:
        """Take a file out."""
        with self._writing():
            self._remove(path)

    def search(self, expression: str, folders: Sequence[Path], limit: int) -> list[Hit]:
        """Return the pieces that fit best, of files below some folders.

        Args:
            expression: of `words.expression`.
        """
        within = " OR ".join(_BELOW for _ in folders) or "FALSE"
        bounds = [bound for folder in folders for bound in _range(folder)]
        rows = self._connection.execute(_SEARCH.format(within=within), (BEGIN, END, expression, *bounds, limit))
        return [Hit(path, heading, page, text, marked, -rank) for path, heading, page, text, marked, rank in rows]

    def counts(self, folder: Path) -> Counts:
        """Count what there is below a folder."""
        (files, faulty), (sections,) = (
            self._connection.execute(query, _range(folder)).fetchone()
            for query in (
                f"SELECT COUNT(*), COUNT(NULLIF(fault, '')) FROM file WHERE {_BELOW}",
                f"SELECT COUNT(*) FROM chunk JOIN file ON file.id = chunk.file WHERE {_BELOW}",
            )
        )
        return Counts(files, sections, faulty)

    def interrupt_when(self, is_so: Callable[[], bool]) -> None:
        """Interrupt and undo whatever runs on this connection when a claim holds, as an OperationalError."""
        self._connection.set_progress_handler(is_so, STEPS_A_LOOK)

    def _prepare(self) -> None:
        connection = self._connection
        connection.create_function("index_text", 1, index_text, deterministic=True)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {PAGE_BYTES * 1000}")
        connection.execute(f"PRAGMA max_page_count = {MAX_BYTES // PAGE_BYTES}")
        if self._format() == 0:
            with self._writing():
                if self._format() == 0:  # nobody else has made it meanwhile
                    for statement in _SCHEMA.split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {_wanted_format()}")
        if self._format() != _wanted_format():
            raise OutdatedIndexError

    def _format(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _remove(self, path: str) -> None:
        found = self._connection.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchone()
        if found is None:
            return
        words = "SELECT 'delete', id, heading, text FROM words_of_chunk WHERE file = ?"
        self._connection.execute(f"INSERT INTO found (found, rowid, heading, text) {words}", found)
        self._connection.execute("DELETE FROM chunk WHERE file = ?", found)
        self._connection.execute("DELETE FROM file WHERE id = ?", found)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself undoes some
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _facts(document: Document) -> tuple[int, int, str, str]:
    return document.size, document.mtime_ns, document.digest, document.fault


def _range(folder: Path) -> tuple[str, str]:
    """The paths below a folder lie between these two: '0' comes after '/'."""
    stem = str(folder).rstrip("/")
    return f"{stem}/", f"{stem}0"


def _wanted_format() -> int:
    """The format, and the version of Unicode by which words were made: others would not be found or taken out again."""
    major, minor, patch = (int(number) for number in unicodedata.unidata_version.split("."))
    return FORMAT * 1_000_000 + major * 10_000 + minor * 100 + patch
