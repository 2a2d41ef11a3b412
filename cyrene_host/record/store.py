"""The host's database as the rest of the host uses it: work is handed to threads, and awaited."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from cyrene_host.record.failures import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from cyrene_host.record.database import Database

__all__ = ["Store", "Work"]

T = TypeVar("T")
Work: TypeAlias = "Callable[[Connection], T]"
"""What is done with a connection, in a thread. It imports SQLAlchemy and the tables inside: they cost 0.5 s, which the
event loop must not wait for. It may run again after a failure, so it changes nothing but the database."""

FILE = "cyrene.db"
MOST_TOGETHER = 100
MOST_WAITING = 10_000
READERS = 4


class _Write(NamedTuple):
    work: Work[Any]
    done: Future[Any]


class Store:
    """SQLite in the state directory, or PostgreSQL; one thread writes, a few read.

    Nothing is imported, read or made before the first use. After a failure the next use opens the database anew.

    Args:
        state_dir: the folder of the SQLite file; it is made with the file.
        url: where PostgreSQL is (`postgresql://user@server/database`); None for SQLite.
    """

    def __init__(self, state_dir: Path, url: str | None = None) -> None:
        self._file = state_dir / FILE
        self._url = url
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="cyrene-store-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="cyrene-store-reader")
        self._lock = threading.Lock()  # of the three below; held for no longer than it takes to change them
        self._waiting: deque[_Write] = deque()
        self._is_writing = False
        self._is_closed = False
        self._opening = threading.Lock()  # of the database; held while it is opened
        self._database: Database | None = None

    def exists(self) -> bool:
        """Whether there is a database; PostgreSQL counts as one, whether or not it answers. Makes none."""
        return self._url is not None or self._file.exists()

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction of its own, and return its value once that is on the disk.

        Works that wait together share one commit; one that raises is undone alone. Work that was handed over is done
        also if nobody waits for it any more.

        Raises:
            StoreError: the database cannot be used.
            Exception: what `work` raised; all that it did is undone.
        """
        write = _Write(work, Future())
        write.done.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        with self._lock:
            self._check_open()
            if len(self._waiting) >= MOST_WAITING:
                raise StoreError(
                    f"more than {MOST_WAITING} writes wait for the database",
                    fault="busy",
                    mend="try again later; look at the disk or the server, which is too slow for this load",
                )
            self._waiting.append(write)
            if not self._is_writing:
                self._writer.submit(self._write_all)
                self._is_writing = True
        value: T = await asyncio.wrap_future(write.done)
        return value

    async def read(self, work: Work[T]) -> T:
        """Run `work` in a transaction that cannot write, and return its value.

        Raises:
            StoreError: the database cannot be used.
            Exception: what `work` raised.
        """
        with self._lock:
            self._check_open()
            reading = self._readers.submit(self._read, work)
        return await asyncio.wrap_future(reading)

    async def close(self) -> None:
        """Finish all that was handed over, and close the database; closing twice is no error."""
        with self._lock:
            self._is_closed = True
        await asyncio.to_thread(self._end)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the store is closed", fault="closed", mend="keep the host open while it is used")

    def _end(self) -> None:
        self._readers.shutdown()
        self._writer.shutdown()
        self._let_go(self._database)

    def _read(self, work: Work[T]) -> T:
        database = self._opened()
        try:
            with database.reading() as connection:
                return work(connection)
        except StoreError:
            self._let_go(database)
            raise

    def _write_all(self) -> None:
        """Write until nothing waits."""
        while True:
            with self._lock:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]
                self._is_writing = bool(batch)
            if not batch:
                return
            self._write_batch(batch)

    def _write_batch(self, batch: list[_Write]) -> None:
        try:
            outcomes = self._commit(batch)
        except _BatchLostError as lost:
            if len(batch) > 1 and lost.is_by_one:
                for write in batch:
                    self._write_batch([write])
                return
            outcomes = [lost.cause] * len(batch)
        for write, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, _Value):
                write.done.set_result(outcome.value)
            else:
                write.done.set_exception(outcome)

    def _commit(self, batch: list[_Write]) -> list[_Value | BaseException]:
        """Do all works of a batch in one transaction; what each came to holds once this has returned.

        Raises:
            _BatchLostError: nothing of it was written.
        """
        has_begun = False
        database = None
        try:
            database = self._opened()
            with database.writing() as connection:
                has_begun = True
                return [_outcome(database, connection, write.work) for write in batch]
        except StoreError as error:
            self._let_go(database)
            # It may have been one work that took too much; a database that is not there is no work's fault.
            is_by_one = has_begun and error.fault != "unreachable" and not error.maybe_written
            raise _BatchLostError(error, is_by_one=is_by_one) from error
        except Exception as error:
            raise _BatchLostError(error, is_by_one=has_begun) from error

    def _opened(self) -> Database:
        from cyrene_host.record.database import Database

        with self._opening:
            if self._database is not None and not self._database.is_there:
                self._database.close()
                self._database = None
            if self._database is None:
                url = self._url
                self._database = Database.sqlite(self._file) if url is None else Database.postgres(url)
            return self._database

    def _let_go(self, database: Database | None) -> None:
        """Close a database that failed, or is needed no more; the next use opens it anew."""
        if database is None:
            return
        with self._opening:
            if self._database is database:
                self._database = None
            database.close()


class _Value(NamedTuple):
    value: Any


class _BatchLostError(Exception):
    """A transaction was not committed; `is_by_one` tells whether each work alone may fare better."""

    def __init__(self, cause: Exception, *, is_by_one: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.is_by_one = is_by_one


def _outcome(database: Database, connection: Connection, work: Work[Any]) -> _Value | Exception:
    """Do one work within the transaction of its batch: whole, or not at all."""
    savepoint = connection.begin_nested()
    try:
        value = work(connection)
        savepoint.commit()
    except Exception as error:
        if (failure := database.failure(error)) is not None:
            raise failure from error
        savepoint.rollback()
        return error
    return _Value(value)
