"""The audit: a log of every call that can be added to but not changed unnoticed."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from cyrene_host.record.audit_files import audit_files, last_head
from cyrene_host.record.audit_lines import AuditKind, Head
from cyrene_host.record.audit_writer import AuditWriter
from cyrene_sdk.errors import CyreneError

if TYPE_CHECKING:
    from cyrene_host.record.audit_reading import ExportFormat
    from cyrene_host.record.audit_verify import Verification

__all__ = ["Audit", "AuditReadError", "AuditUnavailableError"]

MAX_FILE_BYTES = 64 * 1024 * 1024
KEPT_LOST = 1000

_log = logging.getLogger("cyrene.audit")

_FULL = "free space on that disk; the audit goes on by itself"
_MENDS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f`)",
    errno.EACCES: "make the folder and its files writable for the user that runs the host",
    errno.EPERM: "make the folder and its files writable for the user that runs the host",
    errno.EROFS: "mount it writable, or name another folder: --set host.state_dir=PATH",
    errno.ENOENT: "put the folder back, or make an empty one: the chain goes on there",
    errno.ENOTDIR: "move away the file that stands where the folder should be",
    errno.EEXIST: "move away the file that stands where the folder should be",
    errno.ELOOP: "replace the symbolic link by the file itself",
    errno.ETIMEDOUT: "end the process that holds the lock: it was stopped, or its disk hangs",
}


class AuditUnavailableError(CyreneError):
    """A record could not be written."""


class AuditReadError(CyreneError):
    """The audit could not be read."""


class Audit:
    """The audit in one folder; several processes may have it open.

    Threads may share it, too. Nothing is read, made or opened before it is used. A failure to write passes with its
    cause: each call tries again.

    Args:
        folder: `<state_dir>/audit`; made when needed, for its owner alone.
        instance: which host process, in every record.
        max_file_bytes: at which size the next file begins.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        folder: Path,
        *,
        instance: str,
        max_file_bytes: int = MAX_FILE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._writer = AuditWriter(
            folder, instance=instance, max_file_bytes=max_file_bytes, clock=clock, rotated=self._tell_rotated
        )
        self._threads = threading.Lock()
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT_LOST)
        self.trouble: AuditUnavailableError | None = None

    @property
    def lost(self) -> int:
        """How many records `append_or_count` could not write since the last one that was written."""
        return self._writer.lost

    @property
    def lost_records(self) -> list[dict[str, Any]]:
        """The last 1000 of all records that could not be written: `at` (seconds since the epoch), `kind`, `fields`."""
        return [*self._kept]

    @property
    def head(self) -> Head | None:
        """The last record's place in the chain; None where there is none.

        Raises:
            AuditReadError: it cannot be read.
        """
        if self._writer.written:
            return self._writer.head
        try:
            found, _ = last_head(audit_files(self.folder))
        except OSError as error:
            raise self._unreadable(error) from error
        return found if found.seq else None

    def append(self, kind: AuditKind, fields: Mapping[str, Any], *, durable: bool = False) -> Head:
        """Write one record and return its place in the chain.

        Args:
            fields: a JSON object without secrets; what is over 64 KiB is cut.
            durable: return only when the disk has it, for what must not happen without a record.
        Raises:
            AuditUnavailableError: it could not be written.
        """
        try:
            with self._threads:
                head = self._writer.write(kind, fields)
                same_file = self._writer.same_file() if durable else None
            if same_file is not None:  # other threads write meanwhile: the disk takes milliseconds
                _sync(same_file)
        except OSError as error:
            raise self._unavailable(error) from error
        if self.trouble is not None:
            self.trouble = None
            _log.info("the audit can be written again")
        return head

    def sync(self) -> None:
        """Return when the disk has all that was written here.

        Raises:
            AuditUnavailableError: it may be lost if the machine stops.
        """
        try:
            with self._threads:
                same_file = self._writer.same_file()
            _sync(same_file)
        except OSError as error:
            raise self._unavailable(error) from error

    def append_or_count(self, kind: AuditKind, fields: Mapping[str, Any]) -> Head | None:
        """Write one record or, where that fails, count it: `lost`, and the next `recovered` record, tell how many.

        Returns:
            Its place in the chain; None if it could not be written, and `trouble` says why.
        """
        try:
            return self.append(kind, fields)
        except AuditUnavailableError:
            with self._threads:
                self._writer.lost += 1
                self._kept.append({"at": self._clock(), "kind": kind, "fields": dict(fields)})
            return None

    def close(self) -> Head | None:
        """Write `closed`, unless this process wrote nothing, and let the files go.

        Returns:
            The head, to be printed and kept elsewhere; None if nothing was written, or it could not be now.
        """
        written = self._writer.written
        head = self.append_or_count("closed", {"records": written}) if written or self.lost else None
        if self.lost:
            _log.error("%d records of the audit were never written", self.lost)
        with self._threads:
            self._writer.close()
        return head

    def tail(
        self, count: int, *, tool: str | None = None, principal: str | None = None, kind: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the last records that fit, the last one last; only as much is read as needed.

        Args:
            count: at most so many.
            tool: its id, `plugin.tool`.
        Raises:
            AuditReadError: a file cannot be read.
        """
        from cyrene_host.record.audit_reading import tail_records

        try:
            return tail_records(self.folder, count, tool=tool, principal=principal, kind=kind)
        except OSError as error:
            raise self._unreadable(error) from error

    def verify(self, head: str | None = None) -> Verification:
        """Check the chain from end to end.

        Args:
            head: of a record that must be there: `SEQ:HASH`, or the hash.
        Raises:
            HeadError: the text is no head.
            AuditReadError: a file cannot be read.
        """
        from cyrene_host.record.audit_verify import verify_chain

        try:
            return verify_chain(self.folder, head)
        except OSError as error:
            raise self._unreadable(error) from error

    def export(
        self,
        out: BinaryIO | TextIO,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        format: ExportFormat = "jsonl",  # noqa: A002 - the option's name everywhere
    ) -> int:
        """Write the records to a stream, the first one first, and return how many; see `export_records`.

        Raises:
            OSError: a file cannot be read, or the stream cannot be written.
        """
        from cyrene_host.record.audit_reading import export_records

        return export_records(self.folder, out, since=since, until=until, format=format)

    def _tell_rotated(self, head: Head) -> None:
        _log.info("a file of the audit is full; its head: %s", head)

    def _unavailable(self, error: OSError) -> AuditUnavailableError:
        told = AuditUnavailableError(
            f"the audit cannot be written: {_reason(error)}",
            where=str(error.filename or self._writer.file),
            mend=_MENDS.get(error.errno or 0, "look at the disk and its mount; the audit goes on by itself"),
        )
        if self.trouble is None:
            _log.error("%s", told)
        self.trouble = told
        return told

    def _unreadable(self, error: OSError) -> AuditReadError:
        return AuditReadError(
            f"the audit cannot be read: {_reason(error)}",
            where=str(error.filename or self.folder),
            mend="use the user that runs the host",
        )


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
