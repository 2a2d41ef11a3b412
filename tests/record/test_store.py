"""The store: what is acknowledged is kept, whole, by either database."""
# ruff: noqa: ASYNC220, ASYNC221, ASYNC240 - nothing else runs in these loops

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record import store as store_module
from cyrene_host.record.failures import StoreError
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


def held(entered: threading.Event, go: threading.Event) -> Callable[[Any], None]:
    """Work that holds the writer until it is told to go on."""

    def work(connection: Any) -> None:
        entered.set()
        assert go.wait(30)

    return work


async def test_what_was_written_is_read_by_another_store(open_store: Callable[[], Store]) -> None:
    assert await open_store().write(keeps("a")) == "a"
    assert await open_store().read(kept) == {"a": "1"}


async def test_a_store_that_is_not_used_makes_and_imports_nothing(tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from cyrene_host.record import store, storage, notifications, retention, instances\n"
        "made = store.Store(pathlib.Path('state')); assert not made.exists(); asyncio.run(made.close());"
        "print([name for name in ('sqlalchemy', 'alembic', 'psycopg') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
    assert list(tmp_path.iterdir()) == []


async def test_a_database_of_this_schema_is_opened_without_alembic(
    store: Store, store_url: str | None, tmp_path: Path
) -> None:
    await store.write(keeps("a"))
    script = (
        "import asyncio, pathlib, sys; from cyrene_host.record.store import Store\n"
        "async def main():\n"
        "    store = Store(pathlib.Path(sys.argv[1]), sys.argv[2] or None)\n"
        "    await store.read(lambda connection: None); await store.close()\n"
        "asyncio.run(main()); print('sqlalchemy' in sys.modules, 'alembic' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "state", store_url or ""], capture_output=True, text=True, timeout=50
    )
    assert (ended.stdout, ended.stderr) == ("True False\n", "")


async def test_the_sqlite_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    assert not store.exists()
    await store.write(keeps("a"))
    assert store.exists()
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in (tmp_path / "state").iterdir()}
    assert set(modes) >= {"cyrene.db", "cyrene.db-wal", "cyrene.db-shm"}
    assert set(modes.values()) == {"0o600"}
    await store.close()


async def test_works_that_wait_together_share_a_commit_and_one_that_raises_is_undone_alone(store: Store) -> None:
    entered, go = threading.Event(), threading.Event()
    commits: list[object] = []

    def fails(connection: Any) -> None:
        keeps("bad")(connection)
        raise KeyError("mine")

    def counts(connection: Any) -> None:
        commits.append(connection.get_transaction())

    first = asyncio.ensure_future(store.write(held(entered, go)))
    await asyncio.to_thread(entered.wait, 30)
    waiting = [store.write(work) for work in (keeps("a"), counts, fails, counts, keeps("b"))]
    together = asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.sleep(0)  # one turn of the loop: all five are handed over
    go.set()
    outcomes = await together
    await first

    assert [outcomes[0], outcomes[4]] == ["a", "b"]
    assert isinstance(outcomes[2], KeyError)
    assert len(commits) == 2
    assert commits[0] is commits[1]
    assert await store.read(kept) == {"a": "1", "b": "1"}


async def test_a_statement_that_fails_is_told_as_it_is_and_harms_no_other(store: Store) -> None:
    from sqlalchemy.exc import IntegrityError

    def twice(connection: Any) -> None:
        from cyrene_host.record.tables import storage

        row = {"plugin": "p", "key": "twice", "value": "1", "updated_at": 0.0}
        connection.execute(storage.insert(), [row, row])

    await store.write(keeps("before"))
    entered, go = threading.Event(), threading.Event()
    first = asyncio.ensure_future(store.write(held(entered, go)))
    await asyncio.to_thread(entered.wait, 30)
    together = asyncio.gather(
        store.write(keeps("a")), store.write(twice), store.write(keeps("b")), return_exceptions=True
    )
    await asyncio.sleep(0)
    go.set()
    outcomes = await together
    await first

    assert [outcomes[0], outcomes[2]] == ["a", "b"]
    assert isinstance(outcomes[1], IntegrityError)
    assert set(await store.read(kept)) == {"before", "a", "b"}


async def test_a_write_that_nobody_waits_for_any_more_is_done_whole(store: Store) -> None:
    entered, go = threading.Event(), threading.Event()
    holder = asyncio.ensure_future(store.write(held(entered, go)))
    await asyncio.to_thread(entered.wait, 30)
    queued = asyncio.ensure_future(store.write(keeps("queued")))
    await asyncio.sleep(0)
    for task in (holder, queued):
        task.cancel()
    outcomes = await asyncio.gather(holder, queued, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2

    go.set()
    await store.write(keeps("next"))
    assert set(await store.read(kept)) == {"queued", "next"}


async def test_closing_finishes_what_was_handed_over(open_store: Callable[[], Store]) -> None:
    store = open_store()
    writes = [asyncio.ensure_future(store.write(keeps(f"{number:03}"))) for number in range(250)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()

    assert len(await open_store().read(kept)) == 250
    assert await asyncio.gather(*writes) == [f"{number:03}" for number in range(250)]
    for use in (store.write(keeps("late")), store.read(kept)):
        with pytest.raises(StoreError, match="the store is closed") as error:
            await use
        assert error.value.fault == "closed"


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match=r"read.?only"):
        await store.read(keeps("a"))
    assert await store.read(kept) == {}


async def test_reads_do_not_wait_for_a_write(store: Store, slow: Callable[[float], float]) -> None:
    await store.write(keeps("a"))
    entered, go = threading.Event(), threading.Event()
    writing = asyncio.ensure_future(store.write(held(entered, go)))
    await asyncio.to_thread(entered.wait, 30)
    async with asyncio.timeout(slow(5)):
        assert await store.read(kept) == {"a": "1"}
    go.set()
    await writing


async def test_too_many_writes_are_refused_and_the_others_done(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_WAITING", 150)
    entered, go = threading.Event(), threading.Event()
    first = asyncio.ensure_future(store.write(held(entered, go)))
    await asyncio.to_thread(entered.wait, 30)
    writes = [asyncio.ensure_future(store.write(lambda connection: 1)) for _ in range(150)]
    await asyncio.sleep(0)
    with pytest.raises(StoreError) as error:
        await store.write(keeps("a"))
    go.set()
    await first

    assert error.value.fault == "busy"
    assert sum(await asyncio.gather(*writes)) == 150


async def test_text_that_a_database_cannot_keep_is_kept_with_replacements(store: Store) -> None:
    await store.write(keeps("a", "x\0y\ud800z 字"))
    assert await store.read(kept) == {"a": "x\ufffdy\ufffdz 字"}


WRITER = """
import asyncio, pathlib, sys
sys.path.insert(0, sys.argv[3])
from cyrene_host.record.store import Store

def keeps(key):
    def work(connection):
        from cyrene_host.record.tables import put, storage
        put(connection, storage, {"plugin": "p", "key": key, "value": "1" * 300, "updated_at": 0.0})
    return work

async def main():
    store = Store(pathlib.Path(sys.argv[1]), sys.argv[2] or None)
    async def one(number):
        for turn in range(100_000):
            await store.write(keeps(f"{number}-{turn}"))
            print(f"{number}-{turn}", flush=True)
    await asyncio.gather(*[one(number) for number in range(8)])

asyncio.run(main())
"""


async def test_every_acknowledged_write_survives_a_kill(
    open_store: Callable[[], Store], store_url: str | None, tmp_path: Path
) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "state", store_url or "", "."], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    acknowledged = [await asyncio.to_thread(writer.stdout.readline) for _ in range(200)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += (await asyncio.to_thread(writer.stdout.read)).splitlines(keepends=True)
    writer.stdout.close()
    assert writer.wait(30) == -signal.SIGKILL

    found = await open_store().read(kept)
    assert {line.strip() for line in acknowledged if line.endswith("\n")} <= set(found)
    assert set(found.values()) == {"1" * 300}
    if store_url is None:
        with sqlite3.connect(tmp_path / "state" / "cyrene.db") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


OPENER = """
import asyncio, pathlib, sys
from cyrene_host.record.store import Store
async def main():
    store = Store(pathlib.Path(sys.argv[1]), sys.argv[2] or None)
    import cyrene_host.record.database, alembic.command
    print("ready", flush=True)
    sys.stdin.readline()
    def work(connection):
        from cyrene_host.record.tables import put, storage
        put(connection, storage, {"plugin": "p", "key": sys.argv[3], "value": "1", "updated_at": 0.0})
    await store.write(work)
    await store.close()
asyncio.run(main())
"""


async def test_processes_that_open_a_new_database_at_once_all_succeed(
    open_store: Callable[[], Store], store_url: str | None, tmp_path: Path
) -> None:
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, tmp_path / "state", store_url or "", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in "abc"
    ]  # fmt: skip
    for opener in openers:
        assert opener.stdout is not None
        assert await asyncio.to_thread(opener.stdout.readline) == "ready\n"
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()
    told = [await asyncio.to_thread(opener.communicate) for opener in openers]
    assert [(opener.returncode, errors) for opener, (_, errors) in zip(openers, told, strict=True)] == [(0, "")] * 3
    assert set(await open_store().read(kept)) == {"a", "b", "c"}


async def test_two_stores_in_one_process_make_a_new_database_together(open_store: Callable[[], Store]) -> None:
    stores = [open_store() for _ in range(4)]
    await asyncio.gather(*[store.write(keeps(str(number))) for number, store in enumerate(stores)])
    assert set(await stores[0].read(kept)) == {"0", "1", "2", "3"}


async def test_stores_on_several_new_databases_are_made_at_once(tmp_path: Path) -> None:
    stores = [Store(tmp_path / str(number)) for number in range(6)]
    await asyncio.gather(*[store.write(keeps(str(number))) for number, store in enumerate(stores)])
    for number, store in enumerate(stores):
        assert await store.read(kept) == {str(number): "1"}
        await store.close()


async def test_what_reads_and_then_writes_is_not_overtaken_by_another_store(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    await other.write(keeps("before"))
    has_read, is_overtaken = threading.Event(), threading.Event()

    def reads_then_writes(connection: Any) -> None:
        kept(connection)
        has_read.set()
        is_overtaken.wait(0.5)  # in vain on SQLite: the other waits for this one
        keeps("one")(connection)

    async def overtake() -> None:
        await asyncio.to_thread(has_read.wait, 30)
        await other.write(keeps("other"))
        is_overtaken.set()

    await asyncio.gather(one.write(reads_then_writes), overtake())
    assert set(await one.read(kept)) == {"before", "one", "other"}


async def test_the_migrations_make_exactly_the_tables_that_are_used(store: Store) -> None:
    def differences(connection: Any) -> list[Any]:
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        from cyrene_host.record.tables import metadata

        options = {"compare_type": True, "version_table": "cyrene_version"}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    assert await store.read(differences) == []


def test_the_newest_step_is_the_schema_that_is_asked_for() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    from cyrene_host.record import database, tables

    config = Config()
    config.set_main_option("script_location", str(database._STEPS))
    assert ScriptDirectory.from_config(config).get_heads() == [tables.SCHEMA]


async def test_a_step_of_the_schema_is_never_undone(store: Store) -> None:
    from cyrene_host.record.migrations.versions import r0001_first

    with pytest.raises(StoreError) as error:
        r0001_first.downgrade()
    assert str(error.value) == (
        "the step '0001' of the database's schema cannot be undone\n"
        "  mend:  restore the copy of the database that was made before the upgrade"
    )


async def test_a_database_of_a_newer_version_is_left_alone(
    open_store: Callable[[], Store], store_url: str | None, tmp_path: Path
) -> None:
    await open_store().write(keeps("a"))

    def newer(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE cyrene_version SET version_num = '9999'")

    await open_store().write(newer)
    store = open_store()
    for _ in range(2):
        with pytest.raises(StoreError) as error:
            await store.write(keeps("b"))
        assert error.value.fault == "newer"
    where = str(tmp_path / "state" / "cyrene.db") if store_url is None else error.value.where
    assert str(error.value) == (
        "the database was made by a newer version of Cyrene (schema '9999', this one knows '0001')\n"
        f"  where: {where}\n"
        "  mend:  upgrade cyrene-host, or restore the copy that was made before the upgrade"
    )
