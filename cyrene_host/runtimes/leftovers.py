"""What a host left behind when it was killed: processes, found by a mark and ended, and scratch folders."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "MARKER",
    "find_left_scratch",
    "find_leftovers",
    "own_marker",
    "own_scratch",
    "reap_leftovers",
    "remove_left_scratch",
]

MARKER = "CYRENE_HOST_PROCESS"
"""The environment variable that every process below a host carries: its pid, start time and state directory."""

MOST_ROUNDS = 20
"""What forks while it is being ended is met again; what forks faster than this is beyond a sweep."""

_PROC = Path("/proc")


def own_marker(state_dir: Path) -> str:
    """Return the mark of this process as a host with this state directory."""
    pid = os.getpid()
    return f"{pid}:{_started(pid) or 0}:{_digest(state_dir)}"


def own_scratch(state_dir: Path) -> Path:
    """Return the folder under which the workers of one host get theirs; its name says whose it is."""
    pid = os.getpid()
    return state_dir / "scratch" / f"{pid}-{_started(pid) or 0}-{secrets.token_hex(4)}"


def find_leftovers(state_dir: Path) -> list[int]:
    """Return the pids of what dead hosts with this state directory left."""
    return [pid for pid, _ in _left(_digest(state_dir))]


def reap_leftovers(state_dir: Path) -> int:
    """Kill what dead hosts with this state directory left, and return how many processes that were.

    A process counts as left only if it carries the mark of a host whose pid and start time belong to no
    process any more. Linux only: elsewhere nothing is found.
    """
    reaped: set[tuple[int, str | None]] = set()
    for _ in range(MOST_ROUNDS):
        left = list(_left(_digest(state_dir)))
        for pid, mark in left:
            if (pid, mark) in set(_marked([pid])):  # read again: the pid may be another process by now
                reaped.add((pid, _started(pid)))
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        if not left:
            break
    return len(reaped)


def find_left_scratch(state_dir: Path) -> list[Path]:
    """Return the scratch folders of hosts that are gone."""
    left = []
    folder = state_dir / "scratch"
    for entry in folder.iterdir() if folder.is_dir() else ():
        pid, _, rest = entry.name.partition("-")
        if pid.isdigit() and _is_gone(int(pid), rest.partition("-")[0]):
            left.append(entry)
    return left


def remove_left_scratch(state_dir: Path) -> None:
    """Remove the scratch folders of hosts that are gone."""
    for folder in find_left_scratch(state_dir):
        shutil.rmtree(folder, ignore_errors=True)


def _left(digest: str) -> Iterator[tuple[int, str]]:
    for pid, mark in _marked():
        host, _, rest = mark.partition(":")
        started, _, of = rest.partition(":")
        if of == digest and host.isdigit() and _is_gone(int(host), started):
            yield pid, mark


def _marked(pids: list[int] | None = None) -> Iterator[tuple[int, str]]:
    if pids is None:
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()] if _PROC.is_dir() else []
    start = f"{MARKER}=".encode()
    for pid in pids:
        with contextlib.suppress(OSError):
            for variable in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                if variable.startswith(start) and pid != os.getpid():
                    yield pid, variable[len(start) :].decode("utf-8", "replace")


def _is_gone(pid: int, started: str) -> bool:
    """Whether the process that had this pid, and started then, has ended."""
    if _PROC.is_dir():
        return _started(pid) != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _started(pid: int) -> str | None:
    """Return a process's start time in clock ticks since boot; None where there is none, or it has ended already."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[19] if fields[0] not in "ZX" else None  # nobody may have asked yet how it ended


def _digest(state_dir: Path) -> str:
    return hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:12]
