"""Where the index is kept: opened for each use, and begun anew where it is damaged."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cyrene_knowledge.index import MAX_BYTES, Index, OutdatedIndexError
from cyrene_sdk import ToolFailure

__all__ = ["LostIndexError", "Store"]

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNUSABLE = {
    sqlite3.SQLITE_BUSY: "it is being written by somebody else; try again later",
    sqlite3.SQLITE_LOCKED: "it is being written by somebody else; try again later",
    sqlite3.SQLITE_FULL: f"it is full: it may have {MAX_BYTES // 2**20} MiB, or the disk is full; forget a folder",
}


class LostIndexError(ToolFailure):
    """The index was damaged or outdated and has been set aside; an empty one takes its place."""


class Store:
    """The index in a folder.

    Args:
        folder: has the database, and at most one that was set aside.
        logger: told when one is set aside.
    """

    def __init__(self, folder: Path, logger: logging.Logger) -> None:
        self.file = folder / "index.db"
        self._aside = folder / "index.damaged.db"
        self._logger = logger
        self._lock = threading.Lock()

    @contextmanager
    def opened(self) -> Iterator[Index]:
        """Open the index for one thread.

        Raises:
            LostIndexError: it was damaged or outdated, and an empty one is there now.
            ToolFailure: it is full, locked, or cannot be read or written.
        """
        seen = self._identity()
        try:
            with Index(self.file) as index:
                seen = seen or self._identity()
                yield index
        except OutdatedIndexError as error:
            raise self._lost(seen, "was made by another version") from error
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
            if code in _DAMAGED:
                raise self._lost(seen, f"was damaged ({error})") from error
            if code in _UNUSABLE or (isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR):
                why = _UNUSABLE.get(code, str(error))
                raise ToolFailure(f"the index '{self.file}' cannot be used: {why}") from error
            raise

    def _lost(self, seen: int | None, what: str) -> LostIndexError:
        with self._lock:
            if self._identity() == seen:  # else another thread has set it aside already
                for part in ("-wal", "-shm"):
                    self.file.with_name(self.file.name + part).unlink(missing_ok=True)
                self.file.replace(self._aside)
                self._logger.warning("the index %s; it is now '%s', and a new one is begun", what, self._aside)
        return LostIndexError(f"the index {what} and has been set aside; index the folders again")

    def _identity(self) -> int | None:
        with suppress(FileNotFoundError):
            return self.file.stat().st_ino
        return None
