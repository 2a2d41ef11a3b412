"""A host that is killed leaves no worker after a second, and nothing after the next start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host
from cyrene_host.runtimes.leftovers import MARKER
from cyrene_sdk import ToolResult

Until = Callable[..., Any]
Ground = Any

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux only")

HOST = """
import asyncio
import sys

from cyrene_host import Host

async def main():
    async with Host.open(sys.argv[1], overrides={"host.state_dir": sys.argv[2]}) as host:
        pid = (await host.call("pid")).data
        call = asyncio.create_task(host.call("starts_children_and_waits", {"folder": sys.argv[3]}))
        print(pid, flush=True)
        await call

asyncio.run(main())
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def marked(host: int) -> list[int]:
    """All processes below a host, by the mark that they carry."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARKER}={host}:".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def keeper_of(host: int) -> int:
    """The pid of a host's keeper."""
    (pid,) = (pid for pid in marked(host) if f"PPid:\t{host}\n" in Path(f"/proc/{pid}/status").read_text())
    return pid


class Killable:
    """A host in a process of its own, with a call under way that has started children of every sort."""

    def __init__(self, folder: Path, harmful: Path) -> None:
        self.state_dir = folder / "state"
        self.file = folder / "plugins.json"
        self.file.write_text(f'[{{"name": "harmful", "path": "{harmful.name}"}}]')
        self.file.chmod(0o600)
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, self.file, self.state_dir, folder], stdout=subprocess.PIPE
        )
        self._pids = folder / "pids"

    async def tree(self, until: Until) -> list[int]:
        """The pids of the worker, and of its child, its child in a group of its own, and its daemon."""
        assert self.process.stdout is not None
        worker = int(await asyncio.to_thread(self.process.stdout.readline))
        await until(lambda: self._pids.exists() and len(self._pids.read_text().split()) == 3, 10)
        return [worker, *map(int, self._pids.read_text().split())]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def killable(tmp_path: Path, harmful_folder: Path) -> Any:
    (tmp_path / "harmful").mkdir()
    source = (harmful_folder / "harmful" / "harmful.py").read_text()
    (tmp_path / "harmful" / "harmful.py").write_text(source)
    made = Killable(tmp_path, tmp_path / "harmful")
    yield made
    made.end()


async def test_a_killed_host_leaves_no_worker_after_a_second(killable: Killable, until: Until) -> None:
    tree = await killable.tree(until)
    keeper = keeper_of(killable.process.pid)
    assert all(map(is_alive, tree))

    killable.process.kill()
    await until(lambda: not is_alive(tree[0]), 1)
    await until(lambda: not any(map(is_alive, [*tree, keeper])), 5)

    assert marked(killable.process.pid) == []


async def test_what_outlives_host_and_keeper_is_ended_by_the_next_start(
    killable: Killable, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    tree = await killable.tree(until)
    keeper = keeper_of(killable.process.pid)
    os.kill(killable.process.pid, signal.SIGSTOP)  # so that it cannot start another keeper

    os.kill(keeper, signal.SIGKILL)
    killable.process.kill()
    await until(lambda: not is_alive(tree[0]), 1)
    left = [pid for pid in tree if is_alive(pid)]
    assert left  # else this test tells nothing

    async with Host.open(killable.file, start="called", overrides={"host.state_dir": str(killable.state_dir)}):
        await until(lambda: not any(map(is_alive, tree)))
        assert list((killable.state_dir / "scratch").iterdir()) == []

    assert f"{len(left)} processes that a host left when it was killed were ended" in caplog.text
    assert marked(killable.process.pid) == []


async def test_a_killed_keeper_takes_its_workers_along_and_the_next_call_works_with_a_new_one(
    ground: Ground, until: Until, slow: Callable[[float], float]
) -> None:
    for name in ("one", "two"):
        ground.plugin(name)
    ground.list("one", "two")

    async with ground.open() as host:
        before = [report.pid for report in host.plugins.list()]
        keeper = keeper_of(os.getpid())
        os.kill(keeper, signal.SIGKILL)
        await until(lambda: not any(map(is_alive, before)), 1)
        async with asyncio.timeout(slow(5)):
            first = await answered(host, "one_do")
            second = await answered(host, "two_do")
        after = [report.pid for report in host.plugins.list()]
        assert keeper_of(os.getpid()) != keeper

    assert [first.data["pid"], second.data["pid"]] == after
    assert not set(before) & set(after)


async def test_keepers_that_are_killed_again_and_again_cost_waits_and_are_no_fault_of_the_plugins(
    ground: Ground, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(Host, "_sleep", staticmethod(sleep))
    ground.plugin("one")
    ground.list("one")

    async with ground.open() as host:
        for _ in range(5):
            before = host.plugins.get("one").pid
            os.kill(keeper_of(os.getpid()), signal.SIGKILL)
            await until(lambda before=before: host.plugins.get("one").pid not in (before, None))
            await until(lambda: host.plugins.get("one").state == "started")
            assert (await host.call("one_do")).success

    assert waits == [0, 1, 2, 4, 8]
    assert not (ground.folder / "state" / "given-up.json").exists()


async def answered(host: Host, tool: str) -> ToolResult:
    """Call a tool, and once more where its worker was lost meanwhile."""
    result = await host.call(tool)
    if not result.success:
        assert (result.error_kind, result.retryable) == ("worker_crashed", True), result.error
        result = await host.call(tool)
    assert result.success, result.error
    return result


def test_a_host_works_in_a_thread_that_is_not_the_main_one(ground: Ground) -> None:
    ground.plugin("one")
    ground.list("one")
    results: list[Any] = []

    async def use() -> None:
        async with ground.open() as host:
            results.append(await host.call("one_do"))
            crashed = await host.call("one_exit")
            results.extend([crashed, await host.call("one_do")])

    threads = [threading.Thread(target=asyncio.run, args=(use(),)) for _ in range(2)]
    for thread in threads:  # one after the other: a worker must not end with the thread that another host ran in
        thread.start()
        thread.join(30)

    assert [result.success for result in results] == [True, False, True] * 2
    assert marked(os.getpid()) == []


async def test_the_embedding_programs_own_children_are_left_alone(ground: Ground) -> None:
    ground.plugin("one")
    ground.list("one")
    script = "import sys; sys.stdin.read(); sys.exit(5)"
    argv = [sys.executable, "-I", "-S", "-c", script]
    child = await asyncio.to_thread(subprocess.Popen, argv, stdin=subprocess.PIPE)

    async with ground.open() as host:
        await host.call("one_exit")
        await host.call("one_do")
        await host.plugins.restart("one")
        assert child.stdin is not None
        child.stdin.close()
        status = await asyncio.to_thread(child.wait, 10)

    assert status == 5
