"""The cost of one call while 10, 1,000 and 10,000 tools are registered: it must not grow."""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from _plugins import write_plugins_json
from _rounds import Case, Row, kept, measured, options, publish

from cyrene_host import Host

SIZES = (10, 1_000, 10_000)
PLACES = 10  # that many tools, spread over the registry, are called in turns
LIMIT = "limit: Host.call, 10 tools registered"


def greeter(number: int) -> Callable[[str, int], Awaitable[str]]:
    """Return a function of an embedding program, under a name of its own."""

    async def greet(name: str, n: int) -> str:
        """Greet somebody n times."""
        return f"hi {name} {n}"

    greet.__name__ = greet.__qualname__ = f"greet_{number}"
    return greet


async def case_of(size: int, folder: Path, hosts: AsyncExitStack) -> Case:
    """Open a host, register `size` tools, and return the case that calls some of them in turns."""
    host = await hosts.enter_async_context(Host.open(write_plugins_json(folder, [])))
    for number in range(size):
        host.tools.register(greeter(number))
    names = itertools.cycle([f"greet_{place * size // PLACES}" for place in range(PLACES)])
    arguments = {"name": "ada", "n": 3}

    async def call() -> str:
        return (await host.call(next(names), arguments)).output

    for _ in range(PLACES):
        if (greeting := await call()) != "hi ada 3":
            raise SystemExit(f"a call with {size} tools answered {greeting!r}")
    if size == min(SIZES):
        return Case(LIMIT, call)
    return Case(f"Host.call, {size:,} tools registered", call, reach=1.1)


async def rows(chosen: argparse.Namespace) -> list[Row]:
    """Open one host for each size, and measure calls into them in turns."""
    async with AsyncExitStack() as hosts:
        folder = Path(hosts.enter_context(TemporaryDirectory()))
        cases = [await case_of(size, folder / str(size), hosts) for size in SIZES]
        rounds = chosen.rounds or (3 if chosen.quick else 25)
        batch_ms = 5 if chosen.quick else 40
        return await measured(kept(cases, chosen.only, LIMIT), limit=LIMIT, rounds=rounds, batch_ms=batch_ms)


def main() -> None:
    """Measure and print the table."""
    chosen = options(__doc__).parse_args()
    tables = {"calls": asyncio.run(rows(chosen))}
    publish("Registry size", tables, packages=("cyrene-host",), as_json=chosen.json)


if __name__ == "__main__":
    main()
