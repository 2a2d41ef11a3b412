"""The keeper: a small single-threaded process that is the parent of all workers of one host.

It starts workers (by fork, from an interpreter that has the worker's code imported already, or on another
interpreter), tells the host how each ended, and leaves nothing behind: what a dead worker started comes to it
(it is the subreaper) and is killed; when the host goes, by whatever cause, it ends everything and itself.
The host's own threads and children are never touched.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from cyrene_sdk._worker.confinement import be_subreaper, die_with_parent, limit_resources
from cyrene_sdk._worker.process import become_worker
from cyrene_sdk.tools import function_tool

__all__ = ["keep"]

READ_BYTES = 65_536
SPAWN_FDS = 3
SWEEP_S = 5.0
"""How long leftovers may take to die of SIGKILL; a process in uninterruptible sleep outlives it."""


def keep(control: socket.socket) -> NoReturn:
    """Serve the host over `control` until it closes, then end all workers and this process.

    One JSON object a line. The host says `{"do": "spawn", "id", "argv", "env", "cwd", "limits"}`, with the
    descriptors link, output and errors beside it, or `{"do": "kill", "pid"}`. The keeper says
    `{"id", "pid"}` or `{"id", "error"}`, and `{"exit": pid, "status", "swept"}` of every worker, once.
    """
    be_subreaper()
    _rehearse()
    gc.collect()
    gc.freeze()  # the pages of what is imported stay shared with the workers
    keeper = _Keeper(control)
    try:
        keeper.serve()
    finally:
        keeper.end_all()
        os._exit(0)


class _Keeper:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: set[int] = set()
        self._fds: list[int] = []
        self._text = b""
        self._lifeline_read, self._lifeline = os.pipe()  # every worker holds the reading end, only this process writes
        self._woken, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)  # Ctrl-C goes to the whole terminal; the host decides when to end

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._woken in ready:
                os.read(self._woken, READ_BYTES)
                self._bury()
            if self._control.fileno() in ready and not self._read():
                return

    def end_all(self) -> None:
        for pid in self._workers:
            _kill_group(pid)
        self._workers.clear()
        self._sweep()

    def _read(self) -> bool:
        """Take in what the host said; False when the host is gone."""
        try:
            text, fds, _, _ = socket.recv_fds(self._control, READ_BYTES, 4 * SPAWN_FDS)
        except ConnectionError:
            return False
        self._fds += fds
        if not text:
            return False
        *lines, self._text = (self._text + text).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))
        return True

    def _obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "kill":
            if order["pid"] in self._workers:
                _kill_group(order["pid"])
            return
        fds, self._fds = self._fds[:SPAWN_FDS], self._fds[SPAWN_FDS:]
        try:
            pid = self._spawn(order, fds)
        except OSError as error:
            self._say({"id": order["id"], "error": str(error)})
        else:
            self._workers.add(pid)
            self._say({"id": order["id"], "pid": pid})
        finally:
            for fd in fds:
                os.close(fd)

    def _spawn(self, order: dict[str, Any], fds: list[int]) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            _settle(order, fds, parent, self._lifeline_read)
        except BaseException as error:  # noqa: BLE001 - nothing may return into the keeper's loop
            with contextlib.suppress(OSError):
                os.write(2, f"the worker could not be set up: {error}\n".encode())
        finally:
            os._exit(127)

    def _bury(self) -> None:
        """Reap workers that ended, sweep what they left, and tell the host."""
        ended: list[tuple[int, int]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self._workers:
                self._workers.discard(pid)
                ended.append((pid, status))
        for pid, status in ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # its children of the same group outlive it
            self._say({"exit": pid, "status": status, "swept": self._sweep()})

    def _sweep(self) -> int:
        """Kill all children that are no workers: what dead workers left. A live worker keeps its own children."""
        swept: set[int] = set()
        deadline = time.monotonic() + SWEEP_S
        while strangers := _children() - self._workers:
            for pid in strangers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in strangers:
                with contextlib.suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG)[0] == pid:
                        swept.add(pid)
            if time.monotonic() > deadline:
                break
            time.sleep(0.001)
        return len(swept)

    def _say(self, words: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):
            self._control.sendall(json.dumps(words).encode() + b"\n")


def _rehearse() -> None:
    """Have imported and built what the first tool of a plugin needs: 60 ms and 4 MB for each worker otherwise."""
    with contextlib.suppress(ImportError):
        import_module("uvloop")  # optional; each worker would map and link it anew

    async def greet(name: str) -> str:
        return name

    function_tool(greet).definition()


def _settle(order: dict[str, Any], fds: list[int], parent: int, lifeline: int) -> NoReturn:
    """In the new process: take its place, then run the worker's code here or on another interpreter."""
    os.setsid()
    die_with_parent(parent)
    link, output, errors = fds
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    kept = sorted({0, 1, 2, link, lifeline})
    for low, high in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)
    signal.set_wakeup_fd(-1)
    for name in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)
    os.umask(0o077)
    os.chdir(order["cwd"])
    limit_resources(order["limits"])
    be_subreaper()
    argv = order["argv"]
    if argv:
        os.set_inheritable(link, True)
        os.set_inheritable(lifeline, True)
        os.execve(argv[0], [*argv, "--fd", str(link), "--lifeline", str(lifeline)], order["env"])
    os.environ.clear()
    os.environ.update(order["env"])
    become_worker(link, lifeline)


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # a worker that was just forked leads no group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _children() -> set[int]:
    me = os.getpid()
    try:
        return {int(pid) for pid in Path(f"/proc/self/task/{me}/children").read_text(encoding="ascii").split()}
    except OSError:
        return set()  # no Linux: what left its group is beyond reach
