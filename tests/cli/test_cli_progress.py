"""Progress where no bar can be drawn, and the log of a call in the background."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host.cli import detaching
from cyrene_host.cli.detaching import logging_into
from cyrene_host.cli.options import Choices
from cyrene_host.cli.progress import progress_on
from cyrene_host.cli.screen import Screen
from cyrene_host.record.execution import ExecutionEvent


def event(progress: float, message: str = "") -> ExecutionEvent:
    return ExecutionEvent(1, 0.0, "running", progress, message)


@pytest.mark.anyio
async def test_of_what_is_new_within_a_second_the_newest_is_told(until: Callable[..., Any]) -> None:
    err = io.StringIO()
    progress = progress_on(Screen(io.StringIO(), err))
    progress.show("a.b", event(0.0))
    assert err.getvalue() == ""
    for percent in range(1, 50):
        progress.show("a.b", event(percent / 100, f"part {percent}"))
    assert err.getvalue() == "a.b: 1% part 1\n"
    await until(lambda: err.getvalue().count("\n") > 1, limit_s=3)
    assert err.getvalue() == "a.b: 1% part 1\na.b: 49% part 49\n"
    progress.show("a.b", event(0.49, "part 49"))
    progress.show("a.b", event(0.5, "part 50"))
    progress.close()
    await asyncio.sleep(0)
    assert err.getvalue().count("\n") == 2


def test_the_log_of_a_call_in_the_background_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detaching, "LOG_BYTES", 10)
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    choices = Choices(Screen(io.StringIO(), log))
    with logging_into(choices):
        print("12345", file=sys.stderr)
        choices.screen.say("1234567890")
        choices.screen.say("1234567890")
    assert log.getvalue() == "12345\nthe log is full: no more is kept\n"
