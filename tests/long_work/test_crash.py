"""A host that is killed under load: each execution has one end, none ran twice, and all records are sound."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record.execution import ENDED
from cyrene_host.runtimes.leftovers import find_leftovers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux only")

HOST = """
import asyncio
import itertools
import sys

from cyrene_host import Host

async def main():
    file, state, label = sys.argv[1:]
    async with Host.open(file, overrides={"host.state_dir": state}) as host:
        numbers = itertools.count()

        async def executions():
            while True:
                name = f"{label}-{next(numbers)}"
                started = await host.start_execution("mark", {"name": name, "seconds": 0.15})
                print("started", started.id, name, flush=True)
                ended = await host.executions.wait(started.id)
                print("ended", started.id, ended.state, flush=True)

        async def calls():
            while True:
                result = await host.call("who")
                print("called", result.call_id, flush=True)

        print("at work", flush=True)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(10):
                tasks.create_task(executions())
                tasks.create_task(calls())

asyncio.run(main())
"""


@pytest.mark.parametrize(("runtime", "kills"), [("process", 20), ("inline", 5)], indirect=["runtime"])
async def test_a_host_that_is_killed_at_random_moments_loses_and_repeats_nothing(
    site: Any, kills: int, until: Callable[..., Any], slow: Callable[[float], float]
) -> None:
    moments = random.Random(7)
    told: dict[str, str] = {}
    for number in range(kills):
        printed = site.folder / f"printed-{number}"
        lines = moments.randrange(60)  # the first come before any execution has ended, the last after many
        await asyncio.to_thread(run_and_kill, site, printed, lines, slow(30))
        told |= acknowledged(printed)
        await until(lambda: not workers_of(site.state), limit_s=1)

    async with site.open(start="called") as reader:
        kept = {execution.id: execution for execution in await reader.executions.list(limit=10_000)}
        verified = reader.audit.verify()

    assert told
    assert told.keys() <= kept.keys()
    assert {kept[found].state for found in kept} <= ENDED
    assert all(kept[found].state == state for found, state in told.items() if state)
    begun = Counter(note for note in site.notes if note.startswith("begin "))
    assert max(begun.values()) == 1
    assert verified.fault is None
    assert verified.records > len(told)
    with sqlite3.connect(site.state / "cyrene.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    async with site.open():
        assert find_leftovers(site.state) == []


def has_said(printed: Path, lines: int, host: subprocess.Popen[bytes]) -> bool:
    assert host.poll() is None, "it ended by itself"
    said = printed.read_bytes()
    return said.count(b"started ") + said.count(b"ended ") > lines


def run_and_kill(site: Any, printed: Path, lines: int, limit_s: float) -> None:
    """Run a host until it has said so much of its executions, and kill it."""
    command = [sys.executable, "-c", HOST, str(site.file), str(site.state), printed.name]
    deadline = time.monotonic() + limit_s
    with printed.open("wb") as out, subprocess.Popen(command, stdout=out) as host:
        try:
            while (said := printed.read_bytes()).count(b"started ") + said.count(b"ended ") <= lines:
                assert host.poll() is None, "it ended by itself"
                assert time.monotonic() < deadline, "it says nothing"
                time.sleep(0.002)
        finally:
            host.send_signal(signal.SIGKILL)


def acknowledged(printed: Path) -> dict[str, str]:
    """What a host said of its executions: their ids, and their ends where it said them."""
    found = {}
    for line in printed.read_text().splitlines():
        words = line.split()
        if words[0] == "started" and len(words) == 3:
            found[words[1]] = ""
        elif words[0] == "ended" and len(words) == 3:
            found[words[1]] = words[2]
    return found


def workers_of(state: Path) -> list[int]:
    """Processes that a host with this state directory left, but for those that are just ending."""
    return [pid for pid in find_leftovers(state) if Path(f"/proc/{pid}/exe").exists()]
