"""Processes that a host left behind when it was killed together with its keeper: found by a mark, and ended."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MARKER", "own_marker", "reap_leftovers"]

MARKER = "CYRENE_HOST_PROCESS"
"""The environment variable that every process below a host carries: its pid, start time and state directory."""

_PROC = Path("/proc")


def own_marker(state_dir: Path) -> str:
    """Return the mark of this process as a host with this state directory."""
    pid = os.getpid()
    return f"{pid}:{_started(pid) or 0}:{_digest(state_dir)}"


def reap_leftovers(state_dir: Path) -> int:
    """Kill what dead hosts with this state directory left, and return how many processes that were.

    A process counts as left only if it carries the mark of a host whose pid and start time belong to no
    process any more. Linux only: elsewhere nothing is found.
    """
    reaped = 0
    for pid, mark in _marked():
        host_pid, _, rest = mark.partition(":")
        started, _, digest = rest.partition(":")
        if digest != _digest(state_dir) or not host_pid.isdigit() or _started(int(host_pid)) == started:
            continue
        if (pid, mark) in set(_marked([pid])):  # read again: the pid may be another process by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                reaped += 1
    return reaped


def _marked(pids: list[int] | None = None) -> Iterator[tuple[int, str]]:
    if pids is None:
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()] if _PROC.is_dir() else []
    start = f"{MARKER}=".encode()
    for pid in pids:
        with contextlib.suppress(OSError):
            for variable in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                if variable.startswith(start) and pid != os.getpid():
                    yield pid, variable[len(start) :].decode("utf-8", "replace")


def _started(pid: int) -> str | None:
    """Return a process's start time in clock ticks since boot; None where there is no such process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def _digest(state_dir: Path) -> str:
    return hashlib.sha256(str(state_dir).encode()).hexdigest()[:12]
