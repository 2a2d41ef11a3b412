"""Appends lines to the audit, beside other processes, and takes up the chain where a crash or a full disk left it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cyrene_host.record.audit_files import TakenLock, audit_files, file_name, last_head, lines_from_end, number_of
from cyrene_host.record.audit_lines import BEFORE_FIRST, ENVELOPE_BYTES, Head, fields_json, instance_json, make_line

__all__ = ["AuditWriter"]


class AuditWriter:
    """The end of the chain, as far as this process knows it. Nothing is opened or made before the first line.

    What it raises is OSError; each line is written as a whole or not at all, and the next one can be tried at any time.

    Args:
        folder: of the audit.
        instance: which host process.
        max_file_bytes: at which size the next file begins.
        clock: seconds since the epoch.
        rotated: is told the head with which a file ended.
    """

    def __init__(
        self,
        folder: Path,
        *,
        instance: str,
        max_file_bytes: int,
        clock: Callable[[], float],
        rotated: Callable[[Head], None],
    ) -> None:
        self._folder = folder
        self._instance = instance_json(instance)
        self._max_file_bytes = max_file_bytes
        self._clock = clock
        self._rotated = rotated
        self._lock = TakenLock(folder)
        self.file = folder / file_name(1)
        self._descriptor = -1
        self._place: tuple[int, int, int] | None = None  # device, inode and size of the file as we left it
        self._torn: dict[str, Any] = {}
        self.head = BEFORE_FIRST
        self.written = 0
        self.lost = 0

    def write(self, kind: str, fields: Mapping[str, Any]) -> Head:
        """Append one record, and before it a `recovered` one where something was torn or lost.

        Raises:
            OSError: it could not be written.
        """
        text = fields_json(fields)
        if self._place is None and not self.written:
            self._make_folder()
        try:
            self._lock.take()
            self._catch_up()
            if self._torn or self.lost:
                self._put("recovered", fields_json({**self._torn, "lost": self.lost}))
                self._torn, self.lost = {}, 0
            self._put(kind, text)
            self.written += 1
        finally:
            self._lock.release()
        return self.head

    def same_file(self) -> int:
        """Return a descriptor of the file that was written last, for the caller to sync and close.

        Raises:
            OSError: there are too many open.
        """
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Let the files go."""
        self._let_go()
        self._lock.close()

    def _make_folder(self) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_name(self._folder.parent)
        found = self._folder.stat()
        if found.st_mode & 0o077 and found.st_uid == os.geteuid():
            self._folder.chmod(0o700)

    def _catch_up(self) -> None:
        """Find the end of the chain again if it is not where we left it."""
        if self._place is not None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found = os.stat(self.file)  # noqa: PTH116 - half the time of Path.stat, before every call
                if (found.st_dev, found.st_ino, found.st_size) == self._place:
                    return
        self._let_go()
        self._lock.renew()
        files = audit_files(self._folder)
        for file in reversed(files):
            self._set_torn_aside(file)
            if file.stat().st_size:
                break
        there, kind = last_head(files)
        if there.seq > self.head.seq:
            self.head = there
        elif there != self.head:  # what we wrote is gone: going on from it lets `verify` tell so
            self._torn |= {"expected_seq": self.head.seq, "found_seq": there.seq}
        self._open(files[-1] if files else self.file)
        if kind == "rotated" and self._size:  # whoever wrote it came no further
            self._open(self._next_file())

    def _set_torn_aside(self, file: Path) -> None:
        """Move what follows the last line break to `<file>.torn`: it was being written when something ended."""
        torn = next(lines_from_end(file))
        if not torn:
            return
        aside = file.with_name(f"{file.name}.torn")
        descriptor = os.open(aside, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _write_whole(descriptor, torn + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.truncate(file, file.stat().st_size - len(torn))
        self._torn |= {"torn_bytes": len(torn), "torn_file": aside.name}

    @property
    def _size(self) -> int:
        return self._place[2] if self._place else 0

    def _next_file(self) -> Path:
        return self._folder / file_name(number_of(self.file) + 1)

    def _open(self, file: Path) -> None:
        self._let_go()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(file, flags, 0o600)
        found = os.fstat(self._descriptor)
        self.file, self._place = file, (found.st_dev, found.st_ino, found.st_size)
        if not found.st_size:
            _keep_name(self._folder)

    def _let_go(self) -> None:
        descriptor, self._descriptor, self._place = self._descriptor, -1, None
        if descriptor >= 0:
            os.close(descriptor)

    def _put(self, kind: str, fields: bytes) -> None:
        if self._size and self._size + len(fields) + ENVELOPE_BYTES > self._max_file_bytes:
            following = self._next_file()
            self._write_line("rotated", fields_json({"next_file": following.name}))
            os.fsync(self._descriptor)
            self._rotated(self.head)
            self._open(following)
        self._write_line(kind, fields)

    def _write_line(self, kind: str, fields: bytes) -> None:
        assert self._place is not None, "the file was opened"
        device, inode, size = self._place
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="microseconds")
        line, head = make_line(self.head, at=f"{at[:-6]}Z", instance=self._instance, kind=kind, fields=fields)
        try:
            _write_whole(self._descriptor, line)
        except BaseException:
            with contextlib.suppress(OSError):  # what cannot be cut back now is set aside by the next line
                os.ftruncate(self._descriptor, size)
            raise
        self.head, self._place = head, (device, inode, size + len(line))


def _write_whole(descriptor: int, line: bytes) -> None:
    """Write all of it; the second try after a short write tells what is in the way."""
    written = os.write(descriptor, line)
    while written < len(line):
        more = os.write(descriptor, line[written:])
        if not more:
            raise OSError(errno.EIO, "nothing could be written")
        written += more


def _keep_name(folder: Path) -> None:
    """Have the disk keep a file's name, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
