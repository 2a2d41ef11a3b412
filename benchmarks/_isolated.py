"""Ways to have `greet` run in another process, each a call without arguments: Cyrene's and the peers'."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import uvloop
from _children import greet
from _plugins import write_greeter, write_interpreter

from cyrene_host import Host

__all__ = ["ARGUMENTS", "GREETING", "cyrene", "newline_json", "ping_pong", "process_pool", "with_each_loop"]

REQUEST_BYTES = 200
_CHILDREN = str(Path(__file__).with_name("_children.py"))
_EMPTY = json.dumps({"id": 1, "args": {"name": "", "n": 3}})

ARGUMENTS = {"name": "a" * (REQUEST_BYTES - len(_EMPTY)), "n": 3}
GREETING = greet(ARGUMENTS["name"], 3)  # type: ignore[arg-type]  # a name and a number

Call = Callable[[], Awaitable[object]]
T = TypeVar("T")

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@contextmanager
def ping_pong() -> Iterator[Callable[[], None]]:
    """200 bytes through a pair of pipes to a child that reads, writes and blocks: the limit."""
    argv = [sys.executable, "-S", "-E", _CHILDREN, "echo"]
    request = json.dumps({"id": 1, "args": ARGUMENTS}).encode()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        writing, reading = child.stdin.fileno(), child.stdout.fileno()

        def call() -> None:
            os.write(writing, request)
            os.read(reading, 65_536)

        yield call
        child.stdin.close()


@asynccontextmanager
async def newline_json(mode: str) -> AsyncIterator[Call]:
    """JSON lines to a child with an event loop, many at a time: the least that a program writes by hand."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, _CHILDREN, mode, stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    requests, answers = child.stdin, child.stdout
    numbers = itertools.count(1)
    asked: dict[int, asyncio.Future[str]] = {}

    async def read() -> None:
        while line := await answers.readline():  # type: ignore[union-attr]  # a pipe was asked for
            answer = json.loads(line)
            asked.pop(answer["id"]).set_result(answer["result"])

    async def call() -> str:
        number = next(numbers)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asked[number] = answer
        requests.write(json.dumps({"id": number, "args": ARGUMENTS}).encode() + b"\n")
        return await answer

    reader = asyncio.create_task(read())
    yield call
    requests.close()
    await child.wait()
    await reader


@asynccontextmanager
async def process_pool() -> AsyncIterator[Call]:
    """The standard library's pool, with one process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:

        async def call() -> str:
            return await asyncio.wrap_future(pool.submit(greet, **ARGUMENTS))  # type: ignore[arg-type]  # as above

        yield call


@asynccontextmanager
async def cyrene(plugins_json: Path) -> AsyncIterator[Call]:
    """A host as an embedding program uses it: gated, validated, checked, under a time limit; one worker."""
    async with Host.open(plugins_json) as host:
        yield partial(host.call, "greet", ARGUMENTS)


def with_each_loop(run: Callable[[str, Path], Coroutine[object, object, T]]) -> dict[str, T]:
    """Run `run(loop, plugins.json)` on asyncio, then on uvloop, with a worker on the same loop; return both results."""
    results = {}
    with TemporaryDirectory() as made:
        folder = Path(made)
        without_uvloop = {"runtime": "process", "python": write_interpreter(folder / "python")}
        plugins = {
            "asyncio": write_greeter(folder / "asyncio", "bench_asyncio", entry=without_uvloop),
            "uvloop": write_greeter(folder / "uvloop", "bench_uvloop", entry={"runtime": "process"}),
        }
        for loop, make_loop in LOOPS.items():
            with asyncio.Runner(loop_factory=make_loop) as runner:
                results[f"{loop} at both ends"] = runner.run(run(loop, plugins[loop]))
    return results
