"""The keeper: starts workers, tells how each ended, and leaves nothing when its host, or itself, is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.runtimes.keeper import Ending, Keeper, KeeperError

Until = Callable[..., Any]

PYTHON = [sys.executable, "-I", "-S", "-c"]


@pytest.fixture
async def keeper() -> AsyncIterator[Keeper]:
    made = Keeper({"PATH": os.environ["PATH"]})
    yield made
    await made.close()


@contextlib.contextmanager
def pipes() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        os.close(writing)
        os.close(reading)


async def spawned(keeper: Keeper, script: str, **limits: int) -> int:
    """Start a process that runs a script, with the options of a worker after it."""
    with pipes() as (_, writing):
        return await keeper.spawn(
            argv=[*PYTHON, script], env={"A": "b"}, cwd="/", limits=limits, fds=(writing, writing, writing)
        )


async def ended(keeper: Keeper, pid: int) -> Ending:
    ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
    keeper.on_end(pid, ending.set_result)
    async with asyncio.timeout(10):
        return await ending


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children(of: int | None = None) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{of or os.getpid()}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("raise SystemExit(5)", "exit status 5"),
        ("pass", "exit status 0"),
        ("import os; os.kill(os.getpid(), 11)", "signal SIGSEGV"),
        ("import os; os.kill(os.getpid(), 40)", "signal 40"),
    ],
)
async def test_it_tells_how_each_process_ended(keeper: Keeper, script: str, told: str) -> None:
    pid = await spawned(keeper, script)

    assert str(await ended(keeper, pid)) == told


async def test_an_end_that_nobody_listened_to_yet_is_told_at_once(keeper: Keeper, until: Until) -> None:
    pid = await spawned(keeper, "pass")
    await until(lambda: pid in keeper._endings)

    assert str(await ended(keeper, pid)) == "exit status 0"
    assert keeper._endings == {}


async def test_a_process_is_killed_with_its_group_and_what_left_the_group_is_swept(
    keeper: Keeper, tmp_path: Path, until: Until
) -> None:
    sleep = f"{PYTHON!r} + ['import time; time.sleep(60)']"
    pids = tmp_path / "pids"
    script = (
        "import subprocess as s, time\n"
        f"a, b = s.Popen({sleep}), s.Popen({sleep}, start_new_session=True)\n"
        f"open({str(pids)!r} + '.new', 'w').write(f'{{a.pid}} {{b.pid}}')\n"
        f"import os; os.rename({str(pids)!r} + '.new', {str(pids)!r})\n"
        "time.sleep(60)"
    )
    other = await spawned(keeper, "import time; time.sleep(60)")
    pid = await spawned(keeper, script)
    await until(pids.exists)
    keeper.kill(pid)
    ending = await ended(keeper, pid)

    assert str(ending) == "signal SIGKILL"
    assert ending.swept >= 1
    assert not any(map(is_alive, map(int, pids.read_text().split())))
    assert is_alive(other)


async def test_a_pid_that_is_no_worker_is_never_killed(keeper: Keeper) -> None:
    child = await asyncio.create_subprocess_exec(*PYTHON, "import time; time.sleep(60)")
    pid = await spawned(keeper, "import time; time.sleep(60)")
    keeper.kill(child.pid)
    keeper.kill(pid)
    await ended(keeper, pid)

    assert child.returncode is None
    child.kill()
    await child.wait()


async def test_a_process_gets_its_limits_its_environment_its_folder_and_nothing_else(
    keeper: Keeper, tmp_path: Path
) -> None:
    script = (
        "import os, resource as r, sys\n"
        "fds = [int(fd) for fd in os.listdir('/proc/self/fd')]\n"
        "fds = [fd for fd in fds if os.path.exists(f'/proc/self/fd/{fd}')]\n"
        f"open({str(tmp_path / 'told')!r}, 'w').write(repr((r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE), "
        "dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid(), len(fds) <= 6, sys.stdin.read())))"
    )
    secret = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(secret, True)
    pid = await spawned(keeper, script, open_files=77)
    assert str(await ended(keeper, pid)) == "exit status 0"
    os.close(secret)

    told = eval((tmp_path / "told").read_text())
    environment = {name: value for name, value in told[2].items() if name != "LC_CTYPE"}
    assert told[:2] == ((77, 77), (0, 0))
    assert (environment, *told[3:]) == ({"A": "b"}, "/", True, True, "")


async def test_what_cannot_be_started_is_an_end_of_its_own_and_others_start(keeper: Keeper) -> None:
    with pipes() as (_, writing):
        fds = (writing, writing, writing)
        pid = await keeper.spawn(argv=["/no/such/program"], env={}, cwd="/", limits={}, fds=fds)
        nowhere = await keeper.spawn(argv=[*PYTHON, "pass"], env={}, cwd="/no/such/folder", limits={}, fds=fds)

    assert [str(await ended(keeper, number)) for number in (pid, nowhere)] == ["exit status 127"] * 2
    assert str(await ended(keeper, await spawned(keeper, "pass"))) == "exit status 0"


async def test_who_leaves_while_a_process_is_started_leaves_none(keeper: Keeper, until: Until) -> None:
    await ended(keeper, await spawned(keeper, "pass"))
    task = asyncio.create_task(spawned(keeper, "import time; time.sleep(60)"))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    (pid,) = children()
    await until(lambda: not keeper._listeners and not children(pid))

    assert (keeper._asked, keeper._endings) == ({}, {})


async def test_many_at_once_are_started_and_all_end_with_the_keeper(keeper: Keeper) -> None:
    pids = await asyncio.gather(*(spawned(keeper, "import time; time.sleep(60)") for _ in range(40)))
    endings: dict[int, Ending] = {}
    for pid in pids:
        keeper.on_end(pid, lambda ending, pid=pid: endings.__setitem__(pid, ending))  # type: ignore[misc]
    await keeper.close()

    assert len(set(pids)) == 40
    assert not any(map(is_alive, pids))
    assert {str(ending) for ending in endings.values()} == {"it ended with the keeper"}
    assert children() == []


async def test_a_keeper_that_was_killed_is_replaced_by_the_next_start(keeper: Keeper, until: Until) -> None:
    pid = await spawned(keeper, "import time; time.sleep(60)")
    (first,) = children()
    os.kill(first, signal.SIGKILL)
    assert str(await ended(keeper, pid)) == "it ended with the keeper"
    again = await spawned(keeper, "raise SystemExit(3)")

    assert str(await ended(keeper, again)) == "exit status 3"
    await until(lambda: not is_alive(pid))
    assert first not in children()


async def test_a_start_meets_a_keeper_that_is_just_killed_and_is_done_by_the_next(keeper: Keeper) -> None:
    await ended(keeper, await spawned(keeper, "pass"))
    (first,) = children()
    os.kill(first, signal.SIGSTOP)
    starting = asyncio.create_task(spawned(keeper, "raise SystemExit(4)"))
    await asyncio.sleep(0)
    os.kill(first, signal.SIGKILL)
    pid = await starting

    assert str(await ended(keeper, pid)) == "exit status 4"


async def test_a_full_machine_is_an_error_that_says_so(keeper: Keeper) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with pipes() as (_, writing):
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 2, hard))
        try:
            with pytest.raises(KeeperError) as raised:
                await keeper.spawn(argv=None, env={}, cwd="/", limits={}, fds=(writing, writing, writing))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert "a worker could not be started: [Errno 24] Too many open files" in raised.value.what
    assert raised.value.mend == "see whether the machine is full"
    assert str(await ended(keeper, await spawned(keeper, "pass"))) == "exit status 0"


async def test_closing_twice_or_before_anything_started_does_nothing() -> None:
    keeper = Keeper({})
    await keeper.close()
    await keeper.close()

    assert children() == []
