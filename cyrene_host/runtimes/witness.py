"""The plugin that `cyrene doctor` runs in a worker: it tries what should not work there, and tells."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cyrene_sdk import BasePlugin, PluginMetadata, tool

__all__ = ["Testimony", "WitnessPlugin"]

_PR_GET_PDEATHSIG = 2
_PR_GET_CHILD_SUBREAPER = 37


@dataclass(frozen=True, slots=True)
class Testimony:
    """What holds in a worker.

    Attributes:
        is_forked: it was forked from the keeper, and did not start an interpreter.
        leads_session: it is alone in a session and process group of its own.
        dies_with_keeper: the system kills it when the keeper ends.
        adopts_orphans: what it starts stays below it, whatever it does.
        memory_is_limited: more memory than `limits.memory_mb` is refused.
        files_are_limited: more open files than `limits.open_files` are refused.
        can_raise_limits: it may take its limits off again, as a privileged user can.
        uid: the user that it runs as.
        loop: the module of its event loop.
    """

    is_forked: bool
    leads_session: bool
    dies_with_keeper: bool
    adopts_orphans: bool
    memory_is_limited: bool
    files_are_limited: bool
    can_raise_limits: bool
    uid: int
    loop: str


class WitnessPlugin(BasePlugin):
    """Tells what its worker may do."""

    meta = PluginMetadata(name="witness", version="1.0.0", description="Tells what holds in a worker.")

    @tool(danger_level="low", read_only=True)
    async def testify(self, memory_mb: int, open_files: int) -> dict[str, Any]:
        """Try to break the limits that the worker was started with, and tell what holds."""
        return asdict(
            Testimony(
                is_forked="keep" in sys.orig_argv,
                leads_session=os.getsid(0) == os.getpgid(0) == os.getpid(),
                dies_with_keeper=_asked(_PR_GET_PDEATHSIG) != 0,
                adopts_orphans=_asked(_PR_GET_CHILD_SUBREAPER) != 0,
                memory_is_limited=_is_refused_memory(memory_mb + 64),
                files_are_limited=_is_refused_files(open_files + 1),
                can_raise_limits=_can_raise_limits(),
                uid=os.getuid(),
                loop=type(asyncio.get_running_loop()).__module__.partition(".")[0],
            )
        )


def _asked(option: int) -> int:
    """Return what the system answers for this process; 0 where there is no such question (Linux only)."""
    if sys.platform != "linux":
        return 0
    value = ctypes.c_int(0)
    return value.value if ctypes.CDLL(None).prctl(option, ctypes.byref(value), 0, 0, 0) == 0 else 0


def _is_refused_memory(size_mb: int) -> bool:
    try:
        bytearray(size_mb * 1024 * 1024)
    except MemoryError:
        return True
    return False


def _is_refused_files(count: int) -> bool:
    with contextlib.ExitStack() as opened:
        try:
            for _ in range(count):
                opened.enter_context(Path(os.devnull).open("rb"))
        except OSError:
            return True
    return False


def _can_raise_limits() -> bool:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1))
    except (ValueError, OSError):
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return True
