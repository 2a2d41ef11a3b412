"""A lock between processes for a moment, which ends with its holder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

_LOOK_S = 0.005


@contextmanager
def locked(file: Path, limit_s: float) -> Iterator[None]:
    """Hold the lock of a file, which is made if need be. Blocks; two in one process exclude each other too.

    Raises:
        TimeoutError: others hold it for longer than `limit_s` seconds.
        OSError: the file cannot be opened or locked.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + limit_s
        while not _taken(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has held '{file}' for {limit_s:g} s")
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
