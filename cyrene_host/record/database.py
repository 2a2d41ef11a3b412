"""The database itself: opened, brought to the newest schema, and its errors put in four parts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from cyrene_host.record.causes import file_error, store_error
from cyrene_host.record.failures import StoreError
from cyrene_host.record.locks import locked
from cyrene_host.record.tables import SCHEMA

__all__ = ["Database"]

READERS = 4
_BUSY_S = 5.0
_OPEN_S = 30.0
_STEPS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "cyrene_version"  # not alembic's own name: the database may serve another program too
_LOCK_KEY = 0x63797265  # PostgreSQL's advisory locks have numbers; "cyre"
_one_upgrade = threading.Lock()  # alembic keeps what it works on in its modules
_POSTGRES_SESSION = (
    f"SET lock_timeout = '{_BUSY_S:.0f}s'; SET statement_timeout = '{_OPEN_S:.0f}s'; "
    "SET idle_in_transaction_session_timeout = '60s'"
)
_POSTGRES_ARGUMENTS = {"connect_timeout": 5, "keepalives_idle": 10, "tcp_user_timeout": 15_000}


class Database:
    """An open database: SQLite in a file, or PostgreSQL. Every use may wait for a disk: threads only.

    Args:
        writer: gives connections whose transactions may write.
        reader: gives connections whose transactions may not.
        where: the file, or server and database without a password.
        file: the SQLite file; None for PostgreSQL.
    """

    def __init__(self, writer: Engine, reader: Engine, where: str, file: Path | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._where = where
        self._file = file
        self._identity = _identity(file)
        self._is_closed = False

    @classmethod
    def sqlite(cls, file: Path) -> Database:
        """Open a file, or make it and its folder.

        Raises:
            StoreError: it cannot be used.
        """
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(file.with_name(f"{file.name}.lock"), _OPEN_S):
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                database = cls(_sqlite_engine(file, writes=True), _sqlite_engine(file, writes=False), str(file), file)
                return database.upgraded()
        except OSError as error:
            raise file_error(error, str(file)) from error

    @classmethod
    def postgres(cls, address: str) -> Database:
        """Open the database at a `postgresql://` address.

        Raises:
            StoreError: it cannot be used.
        """
        url = _postgres_url(address)
        where = str(URL.create("postgresql", url.username, None, url.host, url.port, url.database))
        try:
            writer = create_engine(
                url, pool_size=READERS + 1, max_overflow=0, pool_pre_ping=True, connect_args=_POSTGRES_ARGUMENTS
            )
        except ModuleNotFoundError as error:
            raise StoreError(
                "PostgreSQL needs a package that is not installed",
                fault="refused",
                where=where,
                mend='pip install "cyrene-host[postgres]"',
            ) from error
        event.listen(writer, "connect", _set_up_postgres)
        return cls(writer, writer.execution_options(postgresql_readonly=True), where).upgraded()

    @property
    def is_there(self) -> bool:
        """Whether its file is still the one that was opened."""
        return _identity(self._file) == self._identity

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection in a transaction that is committed at the end, and undone by an exception.

        Raises:
            StoreError: the database cannot be used; nothing is written unless it says `maybe_written`.
        """
        with self._connected(self._writer) as connection, connection.begin() as transaction:
            yield connection
            with self._told(committing=True):
                transaction.commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection in a transaction that cannot write.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._connected(self._reader) as connection, connection.begin():
            yield connection

    def failure(self, error: Exception) -> StoreError | None:
        """Return what an exception tells of the database; None where it tells nothing."""
        if isinstance(error, StoreError):
            return error
        return store_error(error, self._where) if isinstance(error, DBAPIError) else None

    def close(self) -> None:
        """Close all connections; those in use, as soon as they are no more."""
        self._is_closed = True
        self._writer.dispose()
        self._reader.dispose()

    @contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        with self._told(), engine.connect() as connection:
            try:
                yield connection
            finally:
                if self._is_closed and not connection.invalidated:
                    connection.detach()  # from a pool that nobody closes again

    @contextmanager
    def _told(self, *, committing: bool = False) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            failure = store_error(error, self._where, committing=committing)
            if failure is None:
                raise
            raise failure from error

    def upgraded(self) -> Database:
        """Return this database, its schema brought to this version's: once, whoever else opens it now.

        Raises:
            StoreError: it cannot be used, and is closed.
        """
        try:
            with self.reading() as connection:
                version = _version(connection)
            if version != SCHEMA:
                with self.writing() as connection:
                    self._upgrade(connection)
        except BaseException:
            self.close()
            raise
        return self

    def _upgrade(self, connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        version = _version(connection)
        if version != SCHEMA:
            _run_steps(connection, version, self._where)


def _run_steps(connection: Connection, version: str | None, where: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"configure": {"connection": connection, "version_table": _VERSION_TABLE}})
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise StoreError(
            f"the database was made by a newer version of Cyrene (schema '{version[:80]}', this one knows '{SCHEMA}')",
            fault="newer",
            where=where,
            mend="upgrade cyrene-host, or restore the copy that was made before the upgrade",
        )
    with _one_upgrade:
        command.upgrade(config, "head")


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION_TABLE):
        return None
    version = connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalar()
    return None if version is None else str(version)


def _sqlite_engine(file: Path, *, writes: bool) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(file)),
        pool_size=1 if writes else READERS,
        max_overflow=0,
        connect_args={"timeout": _BUSY_S},
    )
    # What is acknowledged is on the disk, not only with the kernel: an approval that was used stays used after a
    # power cut. Works that wait together share the one wait for the disk.
    # What is removed or hidden, such as a secret argument, is not left in the file's free room.
    settings = ["journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"] if writes else ["query_only = ON"]

    def set_up(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver begins no transactions of its own
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", begin)
    return engine


def _postgres_url(address: str) -> URL:
    scheme, separator, rest = address.partition("://")
    try:
        if separator and scheme in {"postgresql", "postgres", "postgresql+psycopg"}:
            return make_url(f"postgresql+psycopg://{rest}")
    except (ArgumentError, ValueError):
        pass
    raise StoreError(
        "`[host] store_url` is no address of a PostgreSQL database",  # it may hold a password: it is not shown
        fault="refused",
        where="[host] store_url",
        mend="write 'postgresql://user@server/database', or leave it out: SQLite in the state directory",
    )


def _set_up_postgres(connection: Any, _record: object) -> None:
    connection.execute(_POSTGRES_SESSION)
    connection.commit()


def _identity(file: Path | None) -> tuple[int, int] | None:
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
