"""One call to a worker process at a time, both ends on one core, beside its physical limit and two peers.

The tool is `greet(name: str, n: int) -> str`, the request 200 bytes of JSON. Cyrene's rows are whole calls
by name through `Host.call`; the peers only carry the request and the answer. Unpinned, the limit itself
moves by a factor of seven between runs, by where the system puts the two processes.
"""

from __future__ import annotations

import argparse
import inspect
import os
from contextlib import AsyncExitStack
from pathlib import Path

from _isolated import GREETING, cyrene, newline_json, ping_pong, process_pool, with_each_loop
from _rounds import Case, Row, kept, measured, options, publish

LIMIT = "limit: os.pipe ping-pong, blocking"
PACKAGES = ("cyrene-host", "pydantic", "jsonschema-rs", "uvloop")
REACH = {"asyncio": 25.0, "uvloop": 15.0}


async def rows(loop: str, plugins_json: Path, chosen: argparse.Namespace) -> list[Row]:
    """Measure all cases on the running loop; each must greet before it is timed."""
    mode = "lines" if loop == "asyncio" else "lines-uvloop"
    async with AsyncExitStack() as open_:
        cases = [
            Case(LIMIT, open_.enter_context(ping_pong())),
            Case("Host.call", await open_.enter_async_context(cyrene(plugins_json)), reach=REACH[loop]),
            Case("newline JSON to a child with the same loop", await open_.enter_async_context(newline_json(mode))),
            Case("ProcessPoolExecutor.submit, one process", await open_.enter_async_context(process_pool())),
        ]
        for case in cases:
            answer = case.call()
            answer = await answer if inspect.isawaitable(answer) else GREETING
            if (greeting := getattr(answer, "output", answer)) != GREETING:
                raise SystemExit(f"{case.name} answered {greeting!r}, not {GREETING!r}: {answer!r}")
        return await measured(
            kept(cases, chosen.only, LIMIT),
            limit=LIMIT,
            rounds=chosen.rounds or (3 if chosen.quick else 25),
            batch_ms=10 if chosen.quick else 60,
        )


def main() -> None:
    """Measure with asyncio at both ends, then with uvloop at both ends, and print both tables."""
    chosen = options(__doc__).parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # inherited by every process that is started from here
    tables = with_each_loop(lambda loop, plugins_json: rows(loop, plugins_json, chosen))
    publish("Isolated call, one in flight", tables, packages=PACKAGES, as_json=chosen.json)


if __name__ == "__main__":
    main()
