"""Which hosts are alive on one state directory: each holds the lock of a file of its own, and locks end with processes.

A lock, unlike a pid, is free at once when its holder is killed, and never belongs to another program.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Literal, NamedTuple, TypeAlias

from cyrene_host.record.locks import locked
from cyrene_sdk.errors import CyreneError

__all__ = ["HostKind", "Instance", "Instances", "Living", "StateDirError", "StateInUseError"]

HostKind: TypeAlias = Literal["resident", "command"]
"""A `resident` host serves until it is stopped; a `command` ends by itself."""

_WAIT_S = 10.0
_ID = re.compile(r"[0-9a-f]{32}")


class StateDirError(CyreneError):
    """The state directory cannot be used."""


class StateInUseError(CyreneError):
    """Another host uses the state directory; `pid` is its process, 0 where its file is damaged."""

    def __init__(self, what: str, *, pid: int, where: str, mend: str) -> None:
        super().__init__(what, where=where, mend=mend)
        self.pid = pid


class Living(NamedTuple):
    """A host that is alive.

    Attributes:
        id: its instance id, as in the database.
        pid: its process; 0 where its file is damaged.
        kind: whether it serves or runs one command.
        started_at: when it claimed the state directory, in seconds since the epoch.
        url: where it serves HTTP; None where it does not.
    """

    id: str
    pid: int
    kind: HostKind
    started_at: float
    url: str | None = None


class Instance:
    """This host's claim on the state directory, held until `release`, or until the process ends."""

    def __init__(self, file: Path, descriptor: int, living: Living) -> None:
        self._file = file
        self._descriptor = descriptor
        self._living = living

    @property
    def id(self) -> str:
        """The id that rows of the database name as their owner's."""
        return self._living.id

    def publish(self, url: str) -> None:
        """Tell other processes where this host serves.

        Raises:
            StateDirError: the state directory cannot be written.
        """
        self._living = self._living._replace(url=url)
        with _told(self._file), locked(self._file.parent.with_suffix(".lock"), _WAIT_S):
            _write(self._descriptor, self._living)

    def release(self) -> None:
        """Give up the claim; releasing twice is no error."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            self._file.unlink(missing_ok=True)
        except OSError:
            pass  # the next host that looks removes it
        finally:
            os.close(descriptor)


class Instances:
    """The hosts on one state directory.

    Args:
        state_dir: it is made by the first claim.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._folder = state_dir / "hosts"
        self._lock = state_dir / "hosts.lock"

    def claim(self, kind: HostKind, instance: str | None = None) -> Instance:
        """Claim the state directory: a resident host for itself alone, commands beside one another.

        Args:
            instance: the id that rows of the database name as their owner's: 32 hexadecimal digits; None: a new one.

        Raises:
            StateInUseError: a host is alive beside which this one must not run.
            StateDirError: the state directory cannot be written.
        """
        with _told(self._state_dir):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self._lock, _WAIT_S):
                for other in self._scan():
                    if "resident" in (kind, other.kind):
                        raise self._refusal(other)
                return self._enter(kind, instance or token_hex(16))

    def alive(self, instance: str) -> bool:
        """Whether the host with this instance id is alive.

        Raises:
            StateDirError: the state directory cannot be read.
        """
        with _told(self._state_dir):
            return _ID.fullmatch(instance) is not None and _is_held(self._folder / f"{instance}.json")

    def living(self) -> list[Living]:
        """Return the hosts that are alive, the oldest first; makes nothing.

        Raises:
            StateDirError: the state directory cannot be read.
        """
        if not self._folder.is_dir():
            return []
        with _told(self._state_dir), locked(self._lock, _WAIT_S):
            return self._scan()

    def host_id(self) -> str:
        """Return the id of the state directory, made once: it tells this host's rows in a database that several share.

        Raises:
            StateDirError: the state directory cannot be written, or the file `host-id` is damaged.
        """
        file = self._state_dir / "host-id"
        with _told(file):
            self._state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self._lock, _WAIT_S):
                if not file.exists():
                    _write_once(file, f"{token_hex(16)}\n")
                written = file.read_text(encoding="ascii", errors="replace").strip()
        if _ID.fullmatch(written) is None:
            raise StateDirError(
                "the id of the state directory is damaged",
                where=str(file),
                mend="restore the file, or remove it: what ran before is then another host's",
            )
        return written

    def _scan(self) -> list[Living]:
        """The living, with `hosts.lock` held; the files of the dead are removed."""
        living = []
        for file in sorted(self._folder.glob("*.json")):
            if not _is_held(file):
                file.unlink(missing_ok=True)
            elif (other := _read(file)) is not None:
                living.append(other)
        return sorted(living, key=lambda host: host.started_at)

    def _enter(self, kind: HostKind, instance: str) -> Instance:
        living = Living(instance, os.getpid(), kind, time.time())
        file = self._folder / f"{living.id}.json"
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write(descriptor, living)
        except BaseException:
            file.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return Instance(file, descriptor, living)

    def _refusal(self, other: Living) -> StateInUseError:
        served = f" at {other.url}" if other.url else ""
        role = "a host serves" if other.kind == "resident" else "a command runs"
        process, stop = (
            (f"process {other.pid}", f"stop it (`kill {other.pid}`)") if other.pid else ("pid lost", "stop it")
        )
        return StateInUseError(
            f"{role} with this state directory already{served}: {process}",
            pid=other.pid,
            where=str(self._state_dir),
            mend=f"use that one, {stop}, or set another `[host] state_dir`",
        )


def _is_held(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not see each other
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _read(file: Path) -> Living | None:
    try:
        return Living(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None  # released meanwhile
    except (ValueError, TypeError):
        # Held, so alive, but its text is lost: no room on the disk, or a person wrote into it.
        return Living(file.stem, 0, "resident", 0.0)


def _write(descriptor: int, living: Living) -> None:
    written = json.dumps(living._asdict()).encode()
    os.pwrite(descriptor, written, 0)
    os.ftruncate(descriptor, len(written))


def _write_once(file: Path, written: str) -> None:
    temporary = file.with_name(f".{file.name}.{token_hex(16)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(written)
            stream.flush()
            os.fsync(descriptor)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _told(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateDirError(
            f"the state directory cannot be used: {error.strerror or error}",
            where=str(error.filename or where),
            mend="make it writable for this user, with room on its disk, or set another `[host] state_dir`",
        ) from error
