"""One run of indexing: lists the documents, reads what has changed, takes out what has gone."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cyrene_knowledge.chunks import chunks_of
from cyrene_knowledge.documents import sections_of
from cyrene_knowledge.folders import documents_below
from cyrene_knowledge.index import Document, Index
from cyrene_knowledge.section import Reading, Section, UnreadableError
from cyrene_knowledge.store import LostIndexError, Store
from cyrene_sdk import Report

__all__ = ["IndexRun", "Outcome", "StoppedError"]

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_FILE_S = 120.0
"""How long reading one file may take."""

SETTLED_NS = 2_000_000_000
"""A file that changed less than this ago may change again without showing it in its time."""


class StoppedError(Exception):
    """The run was told to stop; what was put in before stays."""


@dataclass(slots=True)
class Outcome:
    """What a run did; `unreadable` are the files that could not be read, or not wholly, and why."""

    read: int = 0
    unchanged: int = 0
    removed: int = 0
    sections: int = 0
    unreadable: dict[Path, str] = field(default_factory=dict)
    note: str = ""


class IndexRun:
    """A run over some folders, for a thread of its own.

    Args:
        folders: where the documents are.
        store: where they are put.
        report: told which part is done, and the file at hand.
        clock: seconds that only grow.
        now_ns: the time of day, as files have it.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        store: Store,
        report: Report,
        *,
        clock: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.folders = folders
        self._store = store
        self._report = report
        self._clock = clock
        self._now_ns = now_ns
        self._is_stopped = threading.Event()
        self._outcome = Outcome()

    def stop(self) -> None:
        """Have the run end soon; from any thread."""
        self._is_stopped.set()

    def __call__(self) -> Outcome:
        """Run to the end.

        Raises:
            StoppedError: it was told to stop.
            ToolFailure: the index cannot be used; what was put in before stays.
        """
        try:
            return self._through()
        except LostIndexError as lost:
            self._outcome = Outcome(note=str(lost).partition(";")[0])
            return self._through()

    def _through(self) -> Outcome:
        files, unlisted = self._listed()
        with self._store.opened() as index:
            index.interrupt_when(self._is_stopped.is_set)
            try:
                known = index.documents(self.folders)
                self._remove(index, [path for path in map(Path, known) if path not in files], unlisted)
                for number, path in enumerate(files):
                    self._take(index, path, known.get(str(path)), number, len(files))
            except sqlite3.OperationalError:
                self._check()  # an interrupted statement is no fault of the index
                raise
        return self._outcome

    def _listed(self) -> tuple[dict[Path, None], list[Path]]:
        """Return the documents, and the folders whose documents are not known."""
        files: dict[Path, None] = {}
        unlisted: list[Path] = []

        def tick(more: int) -> None:
            self._check()
            self._report(0.0, f"looking for documents ({len(files) + more} found)")

        for folder in self.folders:
            listing = documents_below(folder, tick)
            for path in listing.files:
                if _is_utf8(path):
                    files[path] = None
                else:
                    self._outcome.unreadable[_printable(path)] = "its name is not UTF-8"
            self._outcome.unreadable.update((_printable(path), why) for path, why in listing.unlisted.items())
            unlisted += listing.unlisted
        return files, unlisted

    def _remove(self, index: Index, gone: Sequence[Path], unlisted: Sequence[Path]) -> None:
        for path in gone:
            self._check()
            if not any(path.is_relative_to(folder) for folder in unlisted):
                index.remove(str(path))
                self._outcome.removed += 1

    def _take(self, index: Index, path: Path, known: Document | None, number: int, total: int) -> None:
        tell = f"reading {path.name} ({number + 1}/{total})"
        started = self._clock()

        def tick(part: float) -> None:
            self._check()
            self._report((number + min(part, 1.0)) / total, tell)
            if self._clock() - started > MAX_FILE_S:
                raise UnreadableError(f"reading it takes over {MAX_FILE_S:g} s")

        tick(0.0)
        try:
            facts = path.stat(follow_symlinks=False)
            if known is not None and (known.size, known.mtime_ns) == (facts.st_size, facts.st_mtime_ns):
                self._is_as_before(known)
                return
            raw = _content(path)
        except FileNotFoundError:  # since it was listed
            if known is not None:
                self._remove(index, [path], [])
            return
        except (OSError, UnreadableError) as error:
            why = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
            self._put(index, Document(str(path), 0, 0, fault=why), [])
            return
        self._take_content(index, Document(str(path), len(raw), self._time(facts), _digest(raw)), raw, known, tick)

    def _take_content(
        self, index: Index, document: Document, raw: bytes, known: Document | None, tick: Callable[[float], None]
    ) -> None:
        if known is not None and known.digest == document.digest:
            index.touch(Document(document.path, document.size, document.mtime_ns, document.digest, known.fault))
            self._is_as_before(known)
            return
        reading = Reading(tick)
        sections: list[Section] = []
        try:
            for section in sections_of(document.path, raw, reading):
                pieces = chunks_of(section.text)
                sections += (Section(piece, section.heading, section.page) for piece in pieces)
        except UnreadableError as error:
            sections, reading.notes = [], [str(error)]
        fault = _told(reading.notes)
        self._put(index, Document(document.path, document.size, document.mtime_ns, document.digest, fault), sections)

    def _put(self, index: Index, document: Document, sections: Sequence[Section]) -> None:
        index.put(document, sections)
        self._outcome.sections += len(sections)
        self._outcome.read += bool(sections or not document.fault)
        if document.fault:
            self._outcome.unreadable[Path(document.path)] = document.fault

    def _is_as_before(self, known: Document) -> None:
        self._outcome.unchanged += 1
        if known.fault:
            self._outcome.unreadable[Path(known.path)] = known.fault

    def _time(self, facts: os.stat_result) -> int:
        return facts.st_mtime_ns if facts.st_mtime_ns < self._now_ns() - SETTLED_NS else 0

    def _check(self) -> None:
        if self._is_stopped.is_set():
            raise StoppedError


def _content(path: Path) -> bytes:
    """Read a file that is one and no link, also if it was another when it was listed; a pipe would never end.

    Raises:
        UnreadableError: it is no plain file, or over 20 MiB.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise UnreadableError("it is no plain file")
        if facts.st_size > MAX_FILE_BYTES:
            raise UnreadableError(f"it is over {MAX_FILE_BYTES // 2**20} MiB")
        return file.read(MAX_FILE_BYTES)


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _told(notes: Sequence[str]) -> str:
    return "; ".join([*notes[:3], f"and {len(notes) - 3} more"] if len(notes) > 3 else notes)


def _is_utf8(path: Path) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in str(path))


def _printable(path: Path) -> Path:
    return Path(os.fsencode(path).decode("utf-8", "replace"))
