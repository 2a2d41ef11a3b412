"""Which of the few things went wrong, by what the database or the file system says."""

from __future__ import annotations

import errno
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from cyrene_host.record.failures import StoreError, StoreFault

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

__all__ = ["file_error", "store_error"]


class _Kind(NamedTuple):
    fault: StoreFault
    what: str
    mend: str


_FULL = _Kind("full", "there is no room left", "make room on the disk; nothing has to be restarted")
_LOCKED = _Kind("locked", "another process holds it for too long", "end what uses it, such as a database browser")
_DISK = _Kind("disk", "the disk reports an error", "look at the disk and its quota; nothing has to be restarted")
_SQLITE_READ_ONLY = _Kind(
    "read_only",
    "it cannot be written",
    "make the file and its folder writable for this user, or set `[host] state_dir`",
)
_SQLITE_DAMAGED = _Kind(
    "damaged",
    "it is no SQLite database, or a damaged one",
    "stop Cyrene, then restore it from a copy, or move it away with the files beside it whose names begin the same: "
    "a new one is made; nothing was deleted",
)
_SQLITE: dict[int, _Kind] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: _SQLITE_READ_ONLY,
    sqlite3.SQLITE_PERM: _SQLITE_READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _Kind(
        "unreachable",
        "it cannot be opened",
        "give this user the right to use the file and its folder, or set `[host] state_dir`",
    ),
    sqlite3.SQLITE_CORRUPT: _SQLITE_DAMAGED,
    sqlite3.SQLITE_NOTADB: _SQLITE_DAMAGED,
    sqlite3.SQLITE_IOERR: _DISK,
}

_UNREADABLE_TEXT = "Could not decode to UTF-8"
"""How the driver begins what it says of a page that was overwritten; SQLite itself sees no fault in it."""

_UNREACHABLE = _Kind(
    "unreachable", "there is no connection to the server", "start the server, or correct `[host] store_url`"
)
_TAKES_NOT = _Kind("refused", "the server refuses", "correct `[host] store_url`, or the user's rights in that database")
# The beginning of a SQLSTATE, longest first. Source: PostgreSQL 18, appendix A.
_POSTGRES: dict[str, _Kind] = {
    "25006": _Kind("read_only", "it cannot be written", "name the primary server in `[host] store_url`"),
    "53300": _Kind("unreachable", "the server has too many connections", "end some, or raise its `max_connections`"),
    "55P03": _LOCKED,
    "57014": _LOCKED,
    "40": _LOCKED,
    "53": _FULL,
    "58": _DISK,
    "08": _UNREACHABLE,
    "57": _UNREACHABLE,
    "28": _TAKES_NOT,
    "3D": _TAKES_NOT,
    "42501": _TAKES_NOT,
    "XX": _Kind("damaged", "the server finds it damaged", "look at the server's log, and restore it from a copy"),
}


def file_error(error: OSError, where: str) -> StoreError:
    """Return what an error says of the file that holds the database."""
    if isinstance(error, TimeoutError):
        return _told(_LOCKED, str(error), where)
    full = {errno.ENOSPC, errno.EDQUOT}
    not_writable = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR}
    kind = _FULL if error.errno in full else _SQLITE_READ_ONLY if error.errno in not_writable else _DISK
    return _told(kind, error.strerror or str(error), where)


def store_error(error: DBAPIError, where: str, *, committing: bool = False) -> StoreError | None:
    """Return what an error says of the database; None where the statement is at fault.

    Args:
        error: what SQLAlchemy raised.
        where: the file, or the server and database, without a password.
        committing: whether it came from the end of the transaction.
    """
    cause = error.orig
    if isinstance(cause, sqlite3.Error) and str(cause).startswith(_UNREADABLE_TEXT):
        return _told(_SQLITE_DAMAGED, "a text in it is not UTF-8", where)  # the driver's own words show the text
    if isinstance(cause, sqlite3.Error):
        kind = _SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
    else:
        kind = _postgres_kind(error)
    if kind is None:
        return None
    return _told(kind, str(cause), where, maybe_written=committing and error.connection_invalidated)


def _told(kind: _Kind, reason: str, where: str, *, maybe_written: bool = False) -> StoreError:
    first = (reason.strip().splitlines() or ["no reason given"])[0][:200]
    return StoreError(
        f"the database cannot be used: {kind.what} ({first})",
        fault=kind.fault,
        where=where,
        mend=kind.mend,
        maybe_written=maybe_written,
    )


def _postgres_kind(error: DBAPIError) -> _Kind | None:
    state = getattr(error.orig, "sqlstate", None)
    if not isinstance(state, str):
        # A server that is not there or went away gives no code; nor does psycopg for a value that it cannot send.
        return _UNREACHABLE if error.connection_invalidated or type(error).__name__ == "OperationalError" else None
    return next((kind for begin, kind in _POSTGRES.items() if state.startswith(begin)), None)
