"""A database that cannot be used: which fault it is, that nothing is lost, and that the next use works again."""
# ruff: noqa: ASYNC221, ASYNC240 - nothing else runs in these loops

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cyrene_host.record import database
from cyrene_host.record.failures import StoreError
from cyrene_host.record.locks import locked
from cyrene_host.record.store import Store

pytestmark = pytest.mark.anyio


def keeps(key: str, value: str = "1") -> Callable[[Any], str]:
    """Work that keeps a row of a plugin `p`."""

    def work(connection: Any) -> str:
        from cyrene_host.record.tables import put, storage

        put(connection, storage, {"plugin": "p", "key": key, "value": value, "updated_at": 0.0})
        return key

    return work


def kept(connection: Any) -> dict[str, str]:
    """Work that reads all rows of the plugin `p`."""
    from cyrene_host.record.tables import storage

    return {row.key: row.value for row in connection.execute(storage.select().where(storage.c.plugin == "p"))}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The SQLite file."""
    return tmp_path / "state" / "cyrene.db"


@pytest.fixture
async def lite(tmp_path: Path) -> Any:
    """A store on SQLite."""
    store = Store(tmp_path / "state")
    yield store
    await store.close()


async def fault_of(use: Any) -> StoreError:
    with pytest.raises(StoreError) as error:
        await use
    return error.value


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond some bytes, as a disk that is full does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_for_which_there_is_no_room_is_refused_alone(lite: Store, file: Path) -> None:
    await lite.write(keeps("before"))
    entered, go = threading.Event(), threading.Event()

    def hold(connection: Any) -> None:
        entered.set()
        assert go.wait(30)

    first = asyncio.ensure_future(lite.write(hold))
    await asyncio.to_thread(entered.wait, 30)
    together = asyncio.gather(
        lite.write(keeps("a")), lite.write(keeps("big", "x" * 4_000_000)), lite.write(keeps("b")),
        return_exceptions=True,
    )  # fmt: skip
    await asyncio.sleep(0)
    with files_no_longer_than(2_000_000):
        go.set()
        outcomes = await together
    await first

    assert [outcomes[0], outcomes[2]] == ["a", "b"]
    assert isinstance(outcomes[1], StoreError)
    assert outcomes[1].fault == "disk"
    await lite.write(keeps("big", "x" * 4_000_000))
    assert set(await lite.read(kept)) == {"before", "a", "b", "big"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be made here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


async def test_a_full_disk_is_named_and_what_was_written_stays_readable(small_disk: Path) -> None:
    store = Store(small_disk)
    await store.write(keeps("before"))
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * 2_000_000)
    error = await fault_of(store.write(keeps("after", "x" * 200_000)))
    assert str(error) == (
        "the database cannot be used: there is no room left (database or disk is full)\n"
        f"  where: {small_disk / 'cyrene.db'}\n"
        "  mend:  make room on the disk; nothing has to be restarted"
    )
    assert (error.fault, error.maybe_written) == ("full", False)
    assert await store.read(kept) == {"before": "1"}

    filler.unlink()
    await store.write(keeps("after", "x" * 200_000))
    assert set(await store.read(kept)) == {"before", "after"}
    await store.close()
    with sqlite3.connect(small_disk / "cyrene.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_a_new_database_on_a_full_disk_is_refused_and_made_once_there_is_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * 2_000_000)
    store = Store(small_disk / "state")
    assert (await fault_of(store.write(keeps("a")))).fault == "full"
    filler.unlink()
    assert await store.write(keeps("a")) == "a"
    await store.close()


async def test_a_database_that_another_process_holds_is_locked_until_it_lets_go(
    lite: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_S", 0.2)
    await lite.write(keeps("a"))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    error = await fault_of(lite.write(keeps("b")))
    assert error.fault == "locked"
    assert await lite.read(kept) == {"a": "1"}
    other.execute("ROLLBACK")
    other.close()
    assert await lite.write(keeps("b")) == "b"


async def test_a_database_that_another_process_opens_is_waited_for_but_not_for_ever(
    lite: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_OPEN_S", 0.2)
    file.parent.mkdir()
    with locked(file.with_name("cyrene.db.lock"), 1):
        error = await fault_of(lite.write(keeps("a")))
    assert (error.fault, error.where) == ("locked", str(file))
    assert await lite.write(keeps("a")) == "a"


@pytest.mark.parametrize("garbage", [b"this is no database " * 500, b"SQLite format 3\0" + b"\xff" * 8176])
async def test_what_is_no_database_is_left_where_it_is(lite: Store, file: Path, garbage: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(garbage)
    for use in (lite.write(keeps("a")), lite.read(kept)):
        error = await fault_of(use)
        assert (error.fault, error.where) == ("damaged", str(file))
    assert file.read_bytes() == garbage
    assert error.mend == (
        "stop Cyrene, then restore it from a copy, or move it away with the files beside it "
        "whose names begin the same: a new one is made; nothing was deleted"
    )

    file.rename(file.with_name("spoilt.db"))
    assert await lite.write(keeps("a")) == "a"


async def test_a_page_that_is_overwritten_is_told_as_damage(lite: Store, file: Path, tmp_path: Path) -> None:
    await lite.write(lambda connection: [keeps(f"{number}", "x" * 3000)(connection) for number in range(100)])
    await lite.close()
    with file.open("r+b") as stream:
        stream.seek(100_000)
        stream.write(b"\xa5" * 200_000)
    store = Store(file.parent)
    assert (await fault_of(store.read(kept))).fault == "damaged"
    await store.close()


async def test_a_text_that_is_overwritten_is_told_as_damage_without_showing_it(lite: Store, file: Path) -> None:
    await lite.write(keeps("secret", "s3cr3t" * 100))
    await lite.close()
    content = file.read_bytes()
    with file.open("r+b") as stream:
        stream.seek(content.index(b"s3cr3t") + 60)
        stream.write(b"\xa5" * 20)
    store = Store(file.parent)
    error = await fault_of(store.read(kept))
    assert error.fault == "damaged"
    assert "s3cr3t" not in str(error)
    await store.close()


async def test_a_file_that_was_moved_away_gets_no_more_writes(lite: Store, file: Path) -> None:
    await lite.write(keeps("old"))
    file.rename(file.with_name("moved.db"))
    await lite.write(keeps("new"))
    assert await lite.read(kept) == {"new": "1"}


async def test_a_file_in_the_place_of_the_state_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    store = Store(tmp_path / "state")
    error = await fault_of(store.write(keeps("a")))
    assert (error.fault, error.where) == ("disk", str(tmp_path / "state" / "cyrene.db"))
    (tmp_path / "state").unlink()
    assert await store.write(keeps("a")) == "a"
    await store.close()


NO_RIGHTS = """
import asyncio, os, pathlib, sys
from cyrene_host.record.failures import StoreError
from cyrene_host.record.store import Store

def keeps(key):
    def work(connection):
        from cyrene_host.record.tables import put, storage
        put(connection, storage, {"plugin": "p", "key": key, "value": "1", "updated_at": 0.0})
    return work

async def main():
    folder = pathlib.Path(sys.argv[1])
    store = Store(folder)
    await store.write(keeps("a"))
    await store.close()
    if os.geteuid() == 0:  # whom no right is denied
        for path in (folder, *folder.iterdir()):
            os.chown(path, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    store = Store(folder)
    (folder / "cyrene.db").chmod(0o400)
    for mode in (0o700, 0o500):
        folder.chmod(mode)
        try:
            await store.write(keeps("b"))
        except StoreError as error:
            print(error.fault, error.where == str(folder / "cyrene.db"))
    folder.chmod(0o700)
    (folder / "cyrene.db").chmod(0o600)
    await store.write(keeps("b"))
    await store.close()

asyncio.run(main())
"""


async def test_a_file_that_cannot_be_written_is_told_and_works_again_with_the_right() -> None:
    with tempfile.TemporaryDirectory(prefix="cyrene-") as folder:  # pytest's own are private to this user
        Path(folder).chmod(0o755)
        (Path(folder) / "state").mkdir()
        command = [sys.executable, "-c", NO_RIGHTS, Path(folder) / "state"]
        # Another user cannot write where coverage is measured.
        own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        ended = subprocess.run(command, capture_output=True, text=True, timeout=50, env=own)
    assert (ended.stdout, ended.stderr) == ("read_only True\nread_only True\n", "")


async def test_a_server_that_is_restarted_is_found_again(postgres: Any, tmp_path: Path) -> None:
    store = Store(tmp_path, postgres.new_database())
    await store.write(keeps("before"))
    postgres.stop()
    try:
        for use in (store.write(keeps("a")), store.read(kept)):
            error = await fault_of(use)
            assert (error.fault, error.maybe_written) == ("unreachable", False)
            assert error.mend == "start the server, or correct `[host] store_url`"
    finally:
        postgres.start()
    assert await store.write(keeps("after")) == "after"
    assert set(await store.read(kept)) == {"before", "after"}
    await store.close()


async def test_a_restart_between_two_writes_is_not_noticed(postgres: Any, tmp_path: Path) -> None:
    store = Store(tmp_path, postgres.new_database())
    await store.write(keeps("before"))
    postgres.stop()
    postgres.start()
    assert await store.write(keeps("after")) == "after"
    assert set(await store.read(kept)) == {"before", "after"}
    await store.close()


async def test_a_connection_that_is_lost_within_a_write_undoes_it(postgres: Any, tmp_path: Path) -> None:
    store = Store(tmp_path, postgres.new_database())

    def loses(connection: Any) -> None:
        keeps("lost")(connection)
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    assert (await fault_of(store.write(loses))).fault == "unreachable"
    await store.write(keeps("next"))
    assert await store.read(kept) == {"next": "1"}
    await store.close()


async def test_rows_that_another_process_holds_are_locked(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_POSTGRES_SESSION", "SET lock_timeout = '200ms'")
    url = postgres.new_database()
    store = Store(tmp_path, url)
    await store.write(keeps("a"))
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE storage IN ACCESS EXCLUSIVE MODE")
        assert (await fault_of(store.write(keeps("a", "2")))).fault == "locked"
    await store.write(keeps("a", "2"))
    assert await store.read(kept) == {"a": "2"}
    await store.close()


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("53100", "full"), ("25006", "read_only"), ("XX001", "damaged"), ("40P01", "locked"), ("58030", "disk"),
        ("57P03", "unreachable"), ("53300", "unreachable"), ("42501", "refused"),
    ],
)  # fmt: skip
async def test_what_the_server_reports_is_told_as_the_fault_that_it_is(
    postgres: Any, tmp_path: Path, code: str, fault: str
) -> None:
    store = Store(tmp_path, postgres.new_database())

    def raises(connection: Any) -> None:
        keeps("a")(connection)
        connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{code}'; END $$")

    error = await fault_of(store.write(raises))
    assert error.fault == fault
    assert "(as told)" in error.what
    assert await store.read(kept) == {}
    await store.close()


async def test_a_database_that_the_server_does_not_have_is_named_without_showing_the_password(
    postgres: Any, tmp_path: Path
) -> None:
    url = postgres.url("nowhere").replace("postgres:@", "postgres:s3cret@") + "&password=s3cret"
    store = Store(tmp_path, url)
    error = await fault_of(store.write(keeps("a")))
    assert error.fault == "unreachable"
    assert '"nowhere" does not exist' in error.what
    assert error.where == "postgresql://postgres@/nowhere"
    assert "s3cret" not in f"{error} {error!r} {error.__cause__}"
    await store.close()


@pytest.mark.parametrize(
    "url",
    ["mysql://u:s3cret@h/d", "postgresql", "postgresql://h:port/s3cret", "s3cret", "postgresql+asyncpg://h/s3cret"],
)
async def test_an_address_that_is_none_is_refused_without_being_shown(tmp_path: Path, url: str) -> None:
    store = Store(tmp_path, url)
    assert store.exists()
    error = await fault_of(store.write(keeps("a")))
    assert str(error) == (
        "`[host] store_url` is no address of a PostgreSQL database\n"
        "  where: [host] store_url\n"
        "  mend:  write 'postgresql://user@server/database', or leave it out: SQLite in the state directory"
    )
    assert list(tmp_path.iterdir()) == []
    await store.close()


async def test_without_the_extra_the_package_to_install_is_named(tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib, sys; sys.modules['psycopg'] = None\n"
        "from cyrene_host.record.store import Store\n"
        "async def main():\n"
        "    store = Store(pathlib.Path('state'), 'postgres://ada@db.example:5433/cyrene')\n"
        "    try: await store.read(lambda connection: None)\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
        "    await store.close()\n"
        "asyncio.run(main())"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert ended.stderr == ""
    assert ended.stdout == (
        "StoreError PostgreSQL needs a package that is not installed\n"
        "  where: postgresql://ada@db.example:5433/cyrene\n"
        '  mend:  pip install "cyrene-host[postgres]"\n'
    )
