"""Cases measured in turns: rounds, spread, the ratio to the limit, tables and JSON."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import inspect
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["Case", "Row", "as_rates", "kept", "measured", "options", "publish"]

_SCALES = {"us": 1e6, "ms": 1e3}
_RATE = "/s"


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    `call` is a function without arguments, whose result is awaited if it can be; `reach` the ratio to the limit that is
    wanted at most; `note` says what a reader must know to compare.
    """

    name: str
    call: Callable[[], object]
    reach: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """The outcome of a case: times of one call in `unit`, and its ratio to the limit.

    `ratio` is the median over rounds, `fastest` the ratio of the two shortest times. In the unit `/s` more is
    better: the ratios are how many times the limit's rate, `reach` the least that is wanted.
    """

    name: str
    unit: str
    median: float
    low: float
    high: float
    ratio: float
    fastest: float
    reach: float | None
    rounds: int
    calls_per_round: int
    note: str


def options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the flags that all benchmarks share."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument("--quick", action="store_true", help="a smoke run: few rounds, small batches")
    parser.add_argument("--rounds", type=int, help="how often each case takes its turn")
    parser.add_argument("--only", default="", help="comma-separated parts of the names of the cases to run")
    return parser


def kept(cases: Sequence[Case], only: str, limit: str) -> list[Case]:
    """Return the cases whose names contain a part of `only`, and always the limit."""
    parts = [part.strip() for part in only.split(",") if part.strip()]
    return [case for case in cases if not parts or case.name == limit or any(part in case.name for part in parts)]


async def measured(
    cases: Sequence[Case], *, limit: str, rounds: int, batch_ms: float, unit: str = "us", most_calls: int = 20_000
) -> list[Row]:
    """Run the cases in turns (A B C … A B C …) and return their rows, in the order given.

    One sample is a batch of about `batch_ms`, divided by its calls. The garbage collector rests during
    batches and runs between rounds, the same for all.
    """
    batches = [await _prepared(case, batch_ms, most_calls) for case in cases]
    samples: dict[str, list[float]] = {case.name: [] for case in cases}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for batch in batches:
                samples[batch.case.name].append(await batch.seconds() * _SCALES[unit])
            gc.collect()
    finally:
        gc.enable()
    return [_row(batch, samples[batch.case.name], samples[limit], unit) for batch in batches]


def as_rates(rows: Sequence[Row], calls: int) -> list[Row]:
    """Return rows in microseconds, each call of which did `calls` pieces of work, as pieces of work a second."""
    return [
        replace(
            row,
            unit=_RATE,
            median=calls * 1e6 / row.median,
            low=calls * 1e6 / row.high,
            high=calls * 1e6 / row.low,
            ratio=1 / row.ratio,
            fastest=1 / row.fastest,
        )
        for row in rows
    ]


def publish(title: str, tables: Mapping[str, Sequence[Row]], *, packages: Sequence[str], as_json: bool) -> None:
    """Print the tables as Markdown, or as one JSON document, with the versions that were measured."""
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "system": platform.system()}
    versions = {package: _version(package) for package in packages}
    if as_json:
        document = {"title": title, "machine": machine, "versions": versions}
        rows = {name: [asdict(row) for row in table] for name, table in tables.items()}
        json.dump({**document, "tables": rows}, sys.stdout, indent=1)
        print()
        return
    print(f"# {title}\n")
    print(", ".join(f"{name} {value}" for name, value in {**machine, **versions}.items()) + ".")
    for name, table in tables.items():
        print(f"\n## {name}\n")
        print(_markdown(table))


def _markdown(rows: Sequence[Row]) -> str:
    lines = [
        "| case | median | p10..p90 | ratio | fastest | reach | rounds x calls | note |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        reach = "" if row.reach is None else f"{'≥' if row.unit == _RATE else '≤'} {row.reach:g}x"
        spread = f"{_short(row.low)}..{_short(row.high)}"
        lines.append(
            f"| {row.name} | {_short(row.median)} {row.unit} | {spread} | {row.ratio:.2f}x | {row.fastest:.2f}x "
            f"| {reach} | {row.rounds} x {row.calls_per_round} | {row.note} |"
        )
    return "\n".join(lines)


@dataclass(frozen=True)
class _Batch:
    """As many calls of a case as one sample takes."""

    case: Case
    is_async: bool
    calls: int

    async def seconds(self) -> float:
        """Run the calls; return the seconds of one."""
        await asyncio.sleep(0)
        turns = range(self.calls)
        call: Callable[[], Any] = self.case.call
        started = time.perf_counter()
        if self.is_async:
            for _ in turns:
                await call()
        else:
            for _ in turns:
                call()
        return (time.perf_counter() - started) / self.calls


async def _prepared(case: Case, batch_ms: float, most_calls: int) -> _Batch:
    first = case.call()  # pays for what is made once, and tells whether there is something to await
    if is_async := inspect.isawaitable(first):
        await first
    calls = 1
    while True:
        seconds = await _Batch(case, is_async, calls).seconds()
        wanted = int(max(1, min(most_calls, batch_ms / 1e3 / max(seconds, 1e-8))))
        if wanted < calls * 20:
            return _Batch(case, is_async, wanted)
        calls *= 20


def _row(batch: _Batch, samples: list[float], limit: list[float], unit: str) -> Row:
    case = batch.case
    ratio = statistics.median(sample / base for sample, base in zip(samples, limit, strict=True))
    low, high = _quantile(samples, 0.1), _quantile(samples, 0.9)
    return Row(
        name=case.name,
        unit=unit,
        median=statistics.median(samples),
        low=low,
        high=high,
        ratio=ratio,
        fastest=min(samples) / min(limit),
        reach=case.reach,
        rounds=len(samples),
        calls_per_round=batch.calls,
        note=case.note,
    )


def _quantile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _short(value: float) -> str:
    if value < 100:
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value:,.0f}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
