"""The folder of the audit: its numbered files, its lock, and its last lines."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from cyrene_host.record.audit_lines import BEFORE_FIRST, Head, line_hash, read_line

__all__ = ["TakenLock", "audit_files", "file_name", "last_head", "lines_from_end", "number_of", "snapshot", "take_lock"]

LOCK_NAME = "lock"
LOCK_WAIT_S = 1.0
"""How long another process may hold the lock: it needs microseconds, so one that takes longer was stopped."""
LOCK_POLL_S = 0.0005
BLOCK_BYTES = 65_536

_NAME = re.compile(r"audit-(\d{6,12})\.jsonl", re.ASCII)


def file_name(number: int) -> str:
    """Return the name of a file by its number, from 1."""
    return f"audit-{number:06}.jsonl"


def number_of(file: Path) -> int:
    """Return the number of a file of the audit; 0 if it is none."""
    found = _NAME.fullmatch(file.name)
    return int(found[1]) if found else 0


def audit_files(folder: Path) -> list[Path]:
    """Return the files of the audit in order; none if there is no folder.

    Raises:
        OSError: the folder cannot be read.
    """
    try:
        return sorted((file for file in folder.iterdir() if number_of(file)), key=number_of)
    except FileNotFoundError:
        return []


def snapshot(folder: Path) -> list[tuple[Path, int]]:
    """Return the files with their sizes at one moment at which nobody writes.

    Raises:
        OSError: the folder cannot be read.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a copy, or one that may not be opened: nobody writes there beside us
            descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            take_lock(descriptor, fcntl.LOCK_SH)
        return [(file, file.stat().st_size) for file in audit_files(folder)]


def take_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> None:
    """Take the lock of a file, waiting at most 1 s for another process.

    Raises:
        OSError: with ETIMEDOUT, another process holds it for longer.
    """
    deadline = None
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            now = time.monotonic()
            deadline = deadline or now + LOCK_WAIT_S
            if now > deadline:
                raise TimeoutError(
                    errno.ETIMEDOUT, f"another process has held its lock for {LOCK_WAIT_S:g} s"
                ) from error
            time.sleep(LOCK_POLL_S)
        else:
            return


class TakenLock:
    """The lock of an audit's folder, kept open between uses; the folder may be replaced meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / LOCK_NAME
        self._descriptor = -1

    def take(self) -> None:
        """Wait for the lock, at most 1 s.

        Raises:
            OSError: it cannot be had.
        """
        if self._descriptor < 0:
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        take_lock(self._descriptor)

    def renew(self) -> None:
        """Take the lock of the folder that is there now, if it is another than the one that was taken.

        Raises:
            OSError: it cannot be had.
        """
        while not os.path.samestat(os.fstat(self._descriptor), self._present()):
            self.close()
            self.take()

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let it go for good."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _present(self) -> os.stat_result:
        try:
            return self._file.lstat()
        except FileNotFoundError:
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            return self._file.lstat()


def lines_from_end(file: Path, size_bytes: int | None = None) -> Iterator[bytes]:
    """Yield what follows the last line break (mostly nothing), then the lines before it, the last one first.

    Args:
        size_bytes: read as if the file ended there.
    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as stream:
        position = stream.seek(0, os.SEEK_END) if size_bytes is None else size_bytes
        later: list[bytes] = []  # the pieces of the line that is not whole yet, the last one first
        while position > 0:
            step = min(BLOCK_BYTES, position)
            position -= step
            stream.seek(position)
            first, *rest = stream.read(step).split(b"\n")
            if rest:
                yield b"".join([rest.pop(), *reversed(later)])
                yield from reversed(rest)
                later = []
            later.append(first)
        yield b"".join(reversed(later))


def last_head(files: Iterable[Path]) -> tuple[Head, str]:
    """Return the head of the last line, and the kind of its record; damaged lines count as one record each.

    Args:
        files: in order; what follows the last line break of a file is left aside.
    Raises:
        OSError: one cannot be read.
    """
    last, damaged = "", 0
    for file in reversed([*files]):
        lines = lines_from_end(file)
        next(lines)
        for line in lines:
            last = last or line_hash(line)
            record = read_line(line)
            if record is not None:
                return Head(record["seq"] + damaged, last), record["kind"] if not damaged else ""
            damaged += 1
    return (Head(damaged, last), "") if damaged else (BEFORE_FIRST, "")
