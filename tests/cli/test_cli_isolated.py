"""`cyrene call` of a tool that ends, hangs or overfills its worker: one clear error, and nothing is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host.runtimes.leftovers import find_left_scratch, find_leftovers

Run = Callable[..., Any]

HARM = '''
    import asyncio
    import ctypes
    import os
    import subprocess
    import time

    from cyrene_sdk import BasePlugin, PluginMetadata, tool


    class HarmPlugin(BasePlugin):
        meta = PluginMetadata(name="harm", version="1.0.0")

        @tool(danger_level="low")
        async def fall(self) -> str:
            """End the process."""
            print("about to fall")
            os._exit(7)

        @tool(danger_level="low")
        async def crash(self) -> str:
            """Read what is not there."""
            return str(ctypes.string_at(0))

        @tool(danger_level="low", timeout_ms=300)
        async def hang(self) -> str:
            """Block the worker."""
            time.sleep(60)
            return "at last"

        @tool(danger_level="low", timeout_ms=60000)
        async def burn(self) -> str:
            """Use the processor."""
            while True:
                pass

        @tool(danger_level="low")
        async def swell(self) -> str:
            """Use memory."""
            return str(len(bytearray(700_000_000)))

        @tool(danger_level="low", timeout_ms=60000)
        async def leave(self) -> str:
            """Start what outlives a call, in a session of its own, and wait."""
            subprocess.Popen(["sleep", "60"], start_new_session=True)
            print("begun")
            await asyncio.sleep(60)
            return "at last"

        @tool(danger_level="low")
        async def work(self) -> str:
            """Work."""
            return "works"
'''


@pytest.fixture
def harm(workshop: Any) -> Any:
    """A workshop with a plugin that harms its worker."""
    workshop.plugin("harm", HARM)
    workshop.list({"name": "harm", "limits": {"memory_mb": 512, "cpu_seconds": 2, "kill_grace_s": 0.5}})
    return workshop


def assert_nothing_is_left(workshop: Any) -> None:
    state = workshop.folder / "state"
    assert find_leftovers(state) == []
    assert find_left_scratch(state) == []


@pytest.mark.parametrize(
    ("tool", "kind", "what", "mend"),
    [
        ("fall", "worker_crashed", "the plugin's worker ended: exit status 7", "its author has to look: "),
        ("crash", "worker_crashed", "the plugin's worker ended: signal SIGSEGV", "its author has to look: "),
        ("hang", "timeout", "no answer within 0.3 s; its worker was ended", "ask for less, "),
        (
            "burn",
            "resource_exceeded",
            "its worker used up its 2 s of processor time (limits.cpu_seconds)",
            "ask for less, ",
        ),
        (
            "swell",
            "resource_exceeded",
            "the tool needs more memory than the worker may have (limits.memory_mb is 512)",
            "ask for less, ",
        ),
    ],
)  # fmt: skip
def test_a_lost_worker_is_told_with_its_exit_status_signal_or_limit_and_leaves_nothing(
    tool: str, kind: str, what: str, mend: str, harm: Any
) -> None:
    ran = harm.process("call", tool, "--json")
    assert (ran.code, ran.document["error_kind"]) == (1, kind)
    assert ran.document["error"].startswith(
        f"plugin 'harm': tool '{tool}': {what}\n  where: tool 'harm.{tool}'\n  mend:  {mend}"
    )
    assert "Traceback" not in ran.err
    assert_nothing_is_left(harm)
    assert harm.process("call", "work").out == "works\n"


def test_what_the_plugin_printed_last_is_shown_before_the_error(harm: Any) -> None:
    ran = harm.process("call", "fall")
    assert ran.err.startswith("INFO cyrene.plugin.harm: about to fall\nplugin 'harm': tool 'fall': ")


def test_ctrl_c_ends_the_worker_and_all_that_it_started(harm: Any, slow: Callable[[float], float]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cyrene_host.cli", "call", "leave"],
        cwd=harm.folder, env=harm.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == b"INFO cyrene.plugin.harm: begun\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=slow(20))
    assert process.returncode == 130
    assert err.endswith(b"interrupted\n")
    assert_nothing_is_left(harm)


def test_a_command_that_is_killed_leaves_no_worker(harm: Any, slow: Callable[[float], float]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cyrene_host.cli", "call", "leave"],
        cwd=harm.folder, env=harm.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == b"INFO cyrene.plugin.harm: begun\n"
    process.kill()
    process.communicate(timeout=slow(20))  # ends when nobody holds its standard error any more: its keeper neither
    assert find_leftovers(harm.folder / "state") == []
