"""What a process asks of the operating system for itself: limits, and to end with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping

__all__ = ["be_subreaper", "die_with_parent", "is_linux", "limit_resources"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

FILE_BYTES = 256 * 1024 * 1024
"""The largest file that a worker may write."""


def is_linux() -> bool:
    """Whether the process controls of Linux are there."""
    return sys.platform == "linux"


def be_subreaper() -> bool:
    """Become the parent of orphans below this process; return whether the system can (Linux only)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> bool:
    """Be killed when the thread that started this process ends; return whether the system can (Linux only).

    Args:
        parent: the parent's pid; if it is gone already, this process ends now.
    """
    can = _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    return can


def limit_resources(limits: Mapping[str, int | None]) -> None:
    """Set hard limits that this process and its children cannot raise again.

    Args:
        limits: `memory_mb` (address space, MiB), `cpu_seconds`, `open_files`; what is missing or None stays.
    """
    memory_mb, cpu_s, files = limits.get("memory_mb"), limits.get("cpu_seconds"), limits.get("open_files")
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    if memory_mb is not None:
        _limit(resource.RLIMIT_AS, memory_mb * 1024 * 1024)
    if cpu_s is not None:
        _limit(resource.RLIMIT_CPU, cpu_s, spare=1)  # SIGXCPU says what happened; what ignores it is killed 1 s later
    if files is not None:
        _limit(resource.RLIMIT_NOFILE, files)


def _limit(kind: int, most: int, *, spare: int = 0) -> None:
    _, hard = resource.getrlimit(kind)
    allowed = most + spare if hard == resource.RLIM_INFINITY else min(most + spare, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
        resource.setrlimit(kind, (min(most, allowed), allowed))


def _prctl(option: int, value: int) -> bool:
    if not is_linux():
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0)
