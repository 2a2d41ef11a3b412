"""`cyrene health`: starts everything and reports on every plugin."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator

from cyrene_host.catalog.state import PluginState
from cyrene_host.cli.options import Choices
from cyrene_host.cli.waiting import wait_for
from cyrene_host.host.host import Host
from cyrene_host.host.views import PluginReport

__all__ = ["show_health"]


def show_health(choices: Choices) -> int:
    """Start all plugins, ask each for its health, and show the reports; 1 if one is not well."""

    async def ask() -> int:
        with contextlib.redirect_stdout(sys.stderr):
            opening = Host.open(choices.plugins, config=choices.config, overrides=choices.overrides, kind="command")
            async with opening as host:
                reports = await host.health()
                choices.screen.notes(host.notes)
                _show(choices, reports)
                return 0 if all(report.is_well for report in reports) else 1

    return wait_for(ask)


def _show(choices: Choices, reports: list[PluginReport]) -> None:
    screen = choices.screen
    if choices.as_json:
        screen.json([report.to_dict() for report in reports])
        return
    columns = ("plugin", "state", "health", "version", "tools", "runtime", "time")
    screen.table(columns, [_row(report) for report in reports])
    for report in reports:
        screen.notes(f"plugin '{report.name}': {note}" for note in (*report.notes, *_events(report)))
        for error in filter(None, (report.error, *report.tool_errors)):
            screen.error(error)


def _row(report: PluginReport) -> tuple[str, ...]:
    stages = ", ".join(f"{stage} {ms:.0f} ms" for stage, ms in (report.stage_ms or {}).items())
    if report.state is PluginState.DISABLED:
        return report.name, report.state.value, "", report.version, str(len(report.tools)), "", stages
    health = "well" if report.is_well else "not well"
    runtime = report.runtime if report.pid is None else f"{report.runtime} {report.pid}"
    return report.name, report.state.value, health, report.version, str(len(report.tools)), runtime, stages


def _events(report: PluginReport) -> Iterator[str]:
    if report.restarts:
        times = "once" if report.restarts == 1 else f"{report.restarts} times"
        yield f"started again {times} within the last 5 minutes"
    if report.retry_at is not None:
        yield f"tried again in {math.ceil(max(0.0, report.retry_at - time.time()))} s"
    if report.abandoned:
        yield f"{report.abandoned} given-up calls still run in it"
