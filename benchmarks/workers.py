"""Starting a worker until it is ready, and what idle workers weigh, beside the least that such processes cost.

A worker is ready when it has answered the host's greeting; the plugin's import comes after that. Memory is the
proportional set size (PSS, Linux): a page that several processes share counts in parts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from _plugins import write_greeter, write_interpreter
from _rounds import Case, Row, kept, measured, options, publish

from cyrene_host import Host
from cyrene_host.runtimes.keeper import Keeper
from cyrene_host.runtimes.worker import Plan, Worker
from cyrene_sdk._worker.loading import Code

PACKAGES = ("cyrene-host", "cyrene-sdk", "pydantic", "uvloop")
MODEL = "import asyncio\nfrom pydantic import BaseModel\nclass Model(BaseModel):\n    n: int\n"
BARE = "limit: python -S -E -c pass"
ONE_MODEL = "limit: import asyncio, one pydantic model"
MANY = 40
ARGUMENTS = {"name": "ada", "n": 3}


class Starter:
    """Starts workers without a host, and ends them together, so that their ending costs no turn its time."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._keeper = Keeper({"PATH": os.environ["PATH"]})
        self.workers: list[Worker] = []

    def on(self, interpreter: Path | None) -> Callable[[], Awaitable[None]]:
        """Return a function that starts one more worker and waits until it is ready."""
        code, marker = Code("bench_plugin"), ("CYRENE_BENCH", "1")
        plan = Plan("bench", code, interpreter, {}, grace_s=5, threads=64, scratch=self._scratch, marker=marker)

        async def call() -> None:
            worker = Worker(plan, self._keeper, on_message=lambda _: None)
            self.workers.append(worker)
            await worker.start(log_level=30)

        return call

    async def close(self) -> None:
        """End the workers and their keeper."""
        await asyncio.gather(*(worker.end() for worker in self.workers))
        await self._keeper.close()


async def starts(folder: Path, venv: Path, chosen: argparse.Namespace) -> dict[str, list[Row]]:
    """Measure both ways to start a worker, each beside its limit, one start a turn."""
    python = venv / "bin" / "python"
    starter = Starter(folder / "scratch")
    forked = [
        Case(BARE, command(sys.executable, "-S", "-E", "-c", "pass")),
        Case("a worker is ready", starter.on(None), reach=1.0),
    ]
    own = [
        Case(ONE_MODEL, command(str(python), "-c", MODEL)),
        Case("a worker is ready", starter.on(python), reach=1.4),
    ]
    rounds = chosen.rounds or (2 if chosen.quick else 15)
    tables = {}
    for title, cases in (("start: forked from the keeper", forked), ("start: an interpreter of its own", own)):
        limit = cases[0].name
        shown = kept(cases, chosen.only, limit)
        tables[title] = await measured(shown, limit=limit, rounds=rounds, batch_ms=1, unit="ms", most_calls=1)
    await starter.close()
    return tables


async def weights(folder: Path, venv: Path, chosen: argparse.Namespace) -> list[Row]:
    """Weigh idle workers beside a program with one pydantic model, each kind with nothing else of its kind."""
    python = venv / "bin" / "python"
    one, many, own = (folder / name for name in ("one", "many", "own"))
    process = {"runtime": "process"}
    loaded_one = write_greeter(one, "bench_one", entry=process)
    loaded_many = write_greeter(many, "bench_many", entry=process, copies=MANY)
    loaded_own = write_greeter(own, "bench_own", entry={**process, "python": str(venv)})
    kinds: dict[str, tuple[Callable[[], Awaitable[float]], str]] = {
        ONE_MODEL: (lambda: pss_of_program(python), ""),
        "ready, forked, alone": (lambda: pss_when_ready(folder, None, 1), "wanted: ≤ 14"),
        f"ready, forked, each of {MANY}": (lambda: pss_when_ready(folder, None, MANY), "wanted: ≤ 6"),
        "ready, an interpreter of its own": (lambda: pss_when_ready(folder, python, 1), "wanted: ≤ 32"),
        "a plugin called, forked, alone": (lambda: pss_when_called(loaded_one), ""),
        f"a plugin called, forked, each of {MANY}": (lambda: pss_when_called(loaded_many), ""),
        "a plugin called, an interpreter of its own": (lambda: pss_when_called(loaded_own), "wanted: ≤ 32"),
    }
    samples: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(chosen.rounds or (1 if chosen.quick else 5)):
        for name, (weigh, _) in kinds.items():
            samples[name].append(await weigh())
    return [weight(name, samples[name], samples[ONE_MODEL], note) for name, (_, note) in kinds.items()]


async def pss_of_program(python: Path) -> float:
    """Return the size of a program that has done the limit's imports and waits."""
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(
        python, "-c", f"{MODEL}print(flush=True)\ninput()", stdin=pipe, stdout=pipe
    )
    assert program.stdout is not None
    await program.stdout.readline()
    size = pss_mib(program.pid)
    await program.communicate(b"\n")
    return size


async def pss_when_ready(folder: Path, interpreter: Path | None, count: int) -> float:
    """Return the mean size of workers that have loaded nothing yet."""
    starter = Starter(folder / "scratch")
    start = starter.on(interpreter)
    for _ in range(count):
        await start()
    size = statistics.mean(pss_mib(worker.pid) for worker in starter.workers if worker.pid is not None)
    await starter.close()
    return size


async def pss_when_called(plugins_json: Path) -> float:
    """Return the mean size of a host's workers, each after a call."""
    async with Host.open(plugins_json) as host:
        names = [plugin.name for plugin in host.plugins.list()]
        results = [await host.call(f"{name}.greet", ARGUMENTS) for name in names]
        if failed := [result.error for result in results if not result.success]:
            raise SystemExit(f"{len(failed)} calls failed, the first: {failed[0]}")
        return statistics.mean(pss_mib(plugin.pid) for plugin in host.plugins.list() if plugin.pid is not None)


def command(*argv: str) -> Callable[[], None]:
    """Return a function that runs a command to its end."""

    def call() -> None:
        subprocess.run(argv, check=True)

    return call


def pss_mib(pid: int) -> float:
    """Return the proportional set size of a process in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    (size_kib,) = (line.split()[1] for line in text.splitlines() if line.startswith("Pss:"))
    return int(size_kib) / 1024


def weight(name: str, sizes: Sequence[float], limit: Sequence[float], note: str) -> Row:
    """Return a row in MiB."""
    median = statistics.median(sizes)
    ratio, smallest = median / statistics.median(limit), min(sizes) / min(limit)
    return Row(name, "MiB", median, min(sizes), max(sizes), ratio, smallest, None, len(sizes), 1, note)


async def tables_of(chosen: argparse.Namespace) -> dict[str, list[Row]]:
    """Measure the starts, then the memory."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        venv = Path(write_interpreter(folder / "python"))
        tables = await starts(folder, venv, chosen)
        return {**tables, "memory of idle workers (PSS)": await weights(folder, venv, chosen)}


def main() -> None:
    """Measure and print the tables."""
    chosen = options(__doc__).parse_args()
    publish("Workers", asyncio.run(tables_of(chosen)), packages=PACKAGES, as_json=chosen.json)


if __name__ == "__main__":
    main()
