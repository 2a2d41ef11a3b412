"""64 calls at a time to one worker process, beside the standard library's pool and JSON lines by hand."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from _isolated import cyrene, newline_json, process_pool, with_each_loop
from _rounds import Case, Row, as_rates, kept, measured, options, publish

IN_FLIGHT = 64
CALLS_OF_EACH = 25
BASE = "ProcessPoolExecutor.submit, one process"
PACKAGES = ("cyrene-host", "pydantic", "jsonschema-rs", "uvloop")


def side_by_side(call: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    """Return a function that makes all calls of a turn, 64 of them at any time."""

    async def one_after_another() -> None:
        for _ in range(CALLS_OF_EACH):
            await call()

    async def turn() -> None:
        await asyncio.gather(*(one_after_another() for _ in range(IN_FLIGHT)))

    return turn


async def rows(loop: str, plugins_json: Path, chosen: argparse.Namespace) -> list[Row]:
    """Measure all cases on the running loop, one turn of calls a round."""
    mode = "lines" if loop == "asyncio" else "lines-uvloop"
    async with AsyncExitStack() as open_:
        calls = {
            BASE: await open_.enter_async_context(process_pool()),
            "Host.call": await open_.enter_async_context(cyrene(plugins_json)),
            "newline JSON to a child with the same loop": await open_.enter_async_context(newline_json(mode)),
        }
        reach = {"Host.call": 4.0}
        cases = [Case(name, side_by_side(call), reach=reach.get(name)) for name, call in calls.items()]
        rounds = chosen.rounds or (3 if chosen.quick else 25)
        found = await measured(kept(cases, chosen.only, BASE), limit=BASE, rounds=rounds, batch_ms=1, most_calls=1)
        return as_rates(found, IN_FLIGHT * CALLS_OF_EACH)


def main() -> None:
    """Measure with asyncio at both ends, then with uvloop at both ends, and print both tables."""
    chosen = options(__doc__).parse_args()
    tables = with_each_loop(lambda loop, plugins_json: rows(loop, plugins_json, chosen))
    publish(f"Isolated calls, {IN_FLIGHT} in flight", tables, packages=PACKAGES, as_json=chosen.json)


if __name__ == "__main__":
    main()
