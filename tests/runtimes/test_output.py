"""What a worker prints and logs is told under its plugin's name, up to 256 KiB a minute."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host.runtimes.output import KEPT_BYTES, Allowance, Output

Ground = Any
Until = Callable[..., Any]

TALKS = """
import logging
import sys

from cyrene_sdk import BasePlugin, PluginMetadata, tool


class Talks(BasePlugin):
    meta = PluginMetadata(name="NAME", version="VERSION")

    def start(self, host):
        self.log = host.logger

    @tool
    def NAME_prints(self) -> str:
        '''Print on both streams, the last line without an end.'''
        print("to stdout\\n\\nwith ümläut")
        print("to stderr", file=sys.stderr)
        sys.stdout.buffer.write(b"\\xff no UTF-8\\n")
        sys.stdout.write("an open end")
        sys.stdout.flush()
        return "printed"

    @tool
    def NAME_logs(self) -> str:
        '''Log at several levels, by its own and by a library's logger.'''
        self.log.debug("not asked for")
        self.log.info("told")
        logging.getLogger("some.library").error("the library %s", "tells")
        try:
            raise ValueError("with a trace")
        except ValueError:
            self.log.exception("failed")
        self.log.warning("lone \\ud800 and " + "long " * 10_000)
        return "logged"

    @tool(timeout_ms=20000)
    def NAME_floods(self, lines: int, text: str) -> str:
        '''Log a lot.'''
        for number in range(lines):
            self.log.info("%d %s", number, text)
        return "flooded"
"""


def told_by(caplog: pytest.LogCaptureFixture, plugin: str) -> list[tuple[str, str]]:
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == f"cyrene.plugin.{plugin}"]


async def test_what_plugins_print_is_told_line_by_line_under_their_names(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.plugin("one", source=TALKS)
    ground.plugin("two", source=TALKS)
    ground.list("one", "two")

    with caplog.at_level("INFO", logger="cyrene.plugin"):
        async with ground.open() as host:
            await host.call("one_prints")

    lines = {text for _, text in told_by(caplog, "one")}
    assert lines == {"to stdout", "with ümläut", "to stderr", "� no UTF-8", "an open end"}
    assert told_by(caplog, "two") == []


async def test_what_a_plugin_logs_keeps_its_level_and_is_cut(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    ground.plugin("one", source=TALKS)
    ground.list("one")

    with caplog.at_level("INFO", logger="cyrene.plugin"):
        async with ground.open() as host:
            assert (await host.call("one_logs")).output == "logged"

    told = told_by(caplog, "one")
    assert [level for level, _ in told] == ["INFO", "ERROR", "ERROR", "WARNING"]
    assert [text for _, text in told[:2]] == ["told", "the library tells"]
    assert told[2][1].startswith("failed\nTraceback")
    assert "ValueError: with a trace" in told[2][1]
    assert told[3][1].startswith("lone ? and long long")
    assert len(told[3][1]) == 8_000


@pytest.mark.parametrize(("lines", "text"), [(5_000, "x" * 1_000), (20_000, "")])
async def test_a_flood_of_log_lines_is_counted_and_not_told(
    ground: Ground, caplog: pytest.LogCaptureFixture, lines: int, text: str
) -> None:
    ground.plugin("one", source=TALKS)
    ground.list("one")

    with caplog.at_level("INFO", logger="cyrene.plugin"):
        async with ground.open() as host:
            result = await host.call("one_floods", {"lines": lines, "text": text})
            assert result.output == "flooded", result.error

    told = told_by(caplog, "one")
    assert 100 < len(told) < 1_400
    assert sum(len(text) for _, text in told) < KEPT_BYTES + 200
    assert ("WARNING", f"it logged more than {KEPT_BYTES} bytes; the rest is only counted") in told
    assert told[-1][1].endswith("bytes in all")


def test_an_allowance_comes_anew_every_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    allowance = Allowance(logging.getLogger("cyrene.plugin.one"), "printed", lambda: now[0])

    granted = [allowance.take(KEPT_BYTES - 10), allowance.take(100), allowance.take(5)]
    now[0] = 59.9
    granted.append(allowance.take(1))
    now[0] = 60.0
    granted.append(allowance.take(100))
    allowance.close()

    assert granted == [KEPT_BYTES - 10, 10, 0, 0, 100]
    assert [record.getMessage() for record in caplog.records] == [
        f"it printed more than {KEPT_BYTES} bytes; the rest is only counted",
        f"it printed {KEPT_BYTES - 10 + 100 + 5 + 1 + 100} bytes in all",
    ]


def test_an_allowance_that_was_enough_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    allowance = Allowance(logging.getLogger("cyrene.plugin.one"), "logged")

    assert allowance.take(KEPT_BYTES) == KEPT_BYTES
    allowance.close()

    assert caplog.records == []


async def test_the_last_words_are_kept_and_an_endless_line_is_cut(
    caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    reading, writing = os.pipe()
    with caplog.at_level("INFO", logger="cyrene.plugin.one"):
        output = await Output.open(reading, logging.getLogger("cyrene.plugin.one"))
        for _ in range(5):
            os.write(writing, b"x" * 8_000)
            await asyncio.sleep(0)
        os.write(writing, b"the last")
        await until(lambda: output.last.endswith("the last"))
        output.close()
        os.close(writing)

    assert len(output.last) == 500
    assert max(len(record.getMessage()) for record in caplog.records) <= 8_192
