"""The host's side of the keeper: asks it for workers and hears how they ended."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cyrene_sdk.errors import CyreneError

__all__ = ["Ending", "Keeper", "KeeperError"]

READ_BYTES = 65_536
CLOSE_S = 8.0

_log = logging.getLogger("cyrene.workers")


class KeeperError(CyreneError):
    """A worker could not be started."""


class _KeeperLostError(OSError):
    """The keeper ended before it answered."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended: its wait status (None where only the keeper's own end is known), and how many processes
    that it left were swept.
    """

    status: int | None
    swept: int = 0

    def __str__(self) -> str:
        if self.status is None:
            return "it ended with the keeper"
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            with contextlib.suppress(ValueError):
                return f"signal {signal.Signals(number).name}"
            return f"signal {number}"
        return f"exit status {os.waitstatus_to_exitcode(self.status)}"

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended it, if one did."""
        return os.WTERMSIG(self.status) if self.status is not None and os.WIFSIGNALED(self.status) else None


class Keeper:
    """Starts workers through one keeper process, which is started with the first of them.

    Args:
        environment: the whole environment of the keeper.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._processes: list[subprocess.Popen[bytes]] = []  # the keeper, and those that were killed before it
        self._control: socket.socket | None = None
        self._text = b""
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[int]] = {}
        self._endings: dict[int, Ending] = {}
        self._listeners: dict[int, Callable[[Ending], None]] = {}

    async def spawn(
        self,
        *,
        argv: Sequence[str] | None,
        env: Mapping[str, str],
        cwd: str,
        limits: Mapping[str, int | None],
        fds: tuple[int, int, int],
    ) -> int:
        """Start a worker and return its pid.

        Args:
            argv: the command of another interpreter's worker; None forks one of the host's own interpreter.
            env: its whole environment.
            cwd: its folder.
            limits: as for `limit_resources`.
            fds: link, standard output and standard error; the caller closes its copies afterwards.
        Raises:
            KeeperError: the system has no room for another process, or the keeper ended.
        """
        order = {"do": "spawn", "argv": argv, "env": dict(env), "cwd": cwd, "limits": dict(limits)}
        try:
            try:
                return await self._order(order, fds)
            except _KeeperLostError:
                return await self._order(order, fds)  # it was killed from outside; a new one is started
        except OSError as error:
            raise KeeperError(
                f"a worker could not be started: {error}", mend="see whether the machine is full"
            ) from error

    def on_end(self, pid: int, listener: Callable[[Ending], None]) -> None:
        """Have `listener` called when the worker ends; at once if it has."""
        ending = self._endings.pop(pid, None)
        if ending is not None:
            listener(ending)
        else:
            self._listeners[pid] = listener

    def kill(self, pid: int) -> None:
        """End a worker and all that it started, now."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.sendall(json.dumps({"do": "kill", "pid": pid}).encode() + b"\n")

    async def close(self) -> None:
        """End the keeper, and with it every worker that still runs."""
        self._lose()
        processes, self._processes = self._processes, []
        for process in processes:
            try:
                await asyncio.to_thread(process.wait, CLOSE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait)

    async def _order(self, order: dict[str, Any], fds: tuple[int, int, int]) -> int:
        control = self._control or self._start()
        number = next(self._numbers)
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            socket.send_fds(control, [json.dumps({**order, "id": number}).encode() + b"\n"], fds)
            return await answer
        except (BrokenPipeError, ConnectionResetError) as error:
            self._lose()
            raise _KeeperLostError("the keeper has ended") from error
        finally:
            self._asked.pop(number, None)

    def _start(self) -> socket.socket:
        own, other = socket.socketpair()
        with other:
            fd = other.fileno()
            argv = [sys.executable, "-I", "-m", "cyrene_sdk._worker", "keep", "--fd", str(fd)]
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(fd,),
                    env=self._environment,
                    start_new_session=True,
                )
            except BaseException:
                own.close()
                raise
        self._processes = [*(old for old in self._processes if old.poll() is None), process]
        self._control = own
        asyncio.get_running_loop().add_reader(own.fileno(), self._hear)
        return own

    def _hear(self) -> None:
        assert self._control is not None
        try:
            text = self._control.recv(READ_BYTES)
        except OSError:
            text = b""
        if not text:
            _log.error("the keeper of the workers has ended; its workers end with it")
            self._lose()
            return
        *lines, self._text = (self._text + text).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, words: dict[str, Any]) -> None:
        if "exit" in words:
            self._tell(words["exit"], Ending(words["status"], words["swept"]))
            return
        asked = self._asked.get(words["id"])
        if asked is None or asked.done():
            if "pid" in words:  # whoever asked for it has left
                self.on_end(words["pid"], lambda _: None)
                self.kill(words["pid"])
        elif "error" in words:
            asked.set_exception(OSError(words["error"]))
        else:
            asked.set_result(words["pid"])

    def _tell(self, pid: int, ending: Ending) -> None:
        listener = self._listeners.pop(pid, None)
        if listener is None:
            self._endings[pid] = ending
        else:
            listener(ending)

    def _lose(self) -> None:
        control, self._control, self._text = self._control, None, b""
        if control is not None:
            asyncio.get_running_loop().remove_reader(control.fileno())
            control.close()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(_KeeperLostError("the keeper has ended"))
        for pid in list(self._listeners):
            self._tell(pid, Ending(None))
