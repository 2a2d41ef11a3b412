"""The worker: the runner behind a pipe, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NoReturn

from cyrene_sdk._worker.confinement import is_linux
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.faults import Fault, StageError
from cyrene_sdk._worker.host_link import HostLink, LinkLog
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk._worker.progress import Progress, Watch
from cyrene_sdk._worker.runner import Runner
from cyrene_sdk._worker.wire import Link, Message
from cyrene_sdk.context import CurrentCall
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.protocols import PluginConfig

__all__ = ["become_worker"]


def become_worker(link: int, lifeline: int) -> NoReturn:
    """Serve one plugin over the descriptor `link` until the host closes it, and end this process.

    Args:
        link: a connected stream socket.
        lifeline: the reading end of a pipe that ends with the keeper; the second way to notice that the host is gone.
    """
    status = 1
    try:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text stream, as for every script
        loop = _new_loop()
        asyncio.set_event_loop(loop)
        if is_linux():  # without a thread, so that plugin code may fork; the system ends a worker whose loop is blocked
            loop.add_reader(lifeline, os._exit, 0)
        else:
            threading.Thread(target=_end_with, args=(lifeline,), daemon=True, name="lifeline").start()
        loop.run_until_complete(_Worker(socket.socket(fileno=link)).serve())
        status = 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)  # a plugin's thread or atexit hook must not keep this process


class _Worker:
    """One connection to the host: its orders become stages and calls of the runner."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._link = Link(self._take, self._end)
        self._cancels: dict[int, Callable[[], object]] = {}  # of what is under way
        self._ended = asyncio.Event()
        self._host = HostLink(self._link)
        self._runner: Runner

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        os.register_at_fork(after_in_child=lambda: _disown(loop, self._sock.fileno()))
        await loop.create_unix_connection(lambda: self._link, sock=self._sock)
        await self._ended.wait()

    def _end(self, _: Exception | None) -> None:
        self._ended.set()

    def _take(self, message: Message) -> None:
        kind = message["k"]
        if kind == "call":
            self._call(message)
        elif kind == "validate":
            self._begin(message["id"], self._validate(message))
        elif kind == "stage":
            self._begin(message["id"], self._stage(message))
        elif kind == "cancel":
            cancel = self._cancels.get(message["id"])
            if cancel is not None:
                cancel()
        elif kind == "answer":
            self._host.take_answer(message)
        elif kind == "hello":
            self._greet(message)
        elif kind == "bye":
            self._ended.set()

    def _begin(self, number: int, work: Coroutine[Any, Any, Message]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._cancels[number] = task.cancel
        task.add_done_callback(partial(self._finish, number))

    def _finish(self, number: int, task: asyncio.Task[Message]) -> None:
        cancelled = Fault(ErrorKind.CANCELLED, "it was cancelled")
        self._end_of(number, {"fault": _plain(cancelled)} if task.cancelled() else task.result())

    def _end_of(self, number: int, told: Message) -> None:
        self._cancels.pop(number, None)
        message = {"k": "end", "id": number, "abandoned": self._runner.abandoned, **told}
        self._link.send(message, is_alone=not self._cancels)

    def _greet(self, hello: Message) -> None:
        """Say which contract this side speaks; the host decides whether the two fit."""
        sys.path.extend(entry for entry in hello["sys_path"] if entry not in sys.path)
        code = Code.from_dict(hello["code"])
        # Bytecode counts as fresh for a whole second: a plugin's folder changed twice in one would be run as it was.
        sys.dont_write_bytecode = code.folder is not None
        self._runner = Runner(code, grace_s=hello["grace_s"], threads=hello["threads"])
        LinkLog(self._link).install(hello["log_level"])
        python = ".".join(map(str, sys.version_info[:3]))
        self._link.send({"k": "ready", "contract": CONTRACT, "python": python, "pid": os.getpid()})

    def _call(self, order: Message) -> None:
        number, runner = order["id"], self._runner
        call = CurrentCall(*order["call"])
        tell = partial(self._tell, number)
        idle_s = order.get("idle")
        watch = None if idle_s is None else Watch(idle_s, partial(self._tell_progress, number))
        work = runner.begin(order["tool"], order["args"], call, order["limit"], order["validate"], tell, watch)
        if work is not None:
            self._cancels[number] = partial(runner.cancel, work)

    def _tell(self, number: int, outcome: Fields | Fault) -> None:
        self._end_of(number, {"fault": _plain(outcome)} if isinstance(outcome, Fault) else {"fields": outcome})

    def _tell_progress(self, number: int, progress: Progress) -> None:
        self._link.send({"k": "progress", "id": number, **progress._asdict()})

    async def _validate(self, order: Message) -> Message:
        call = CurrentCall(*order["call"])
        fault = await self._runner.validate(order["tool"], order["args"], call, order["limit"])
        return {} if fault is None else {"fault": _plain(fault)}

    async def _stage(self, order: Message) -> Message:
        try:
            return {"value": await self._run_stage(order["stage"], order)}
        except StageError as error:
            return {
                "error": {
                    "what": error.what,
                    "stage": error.stage,
                    "where": error.where,
                    "mend": error.mend,
                    "trace": error.trace,
                    "pointers": error.pointers,
                    "timed_out": error.timed_out,
                }
            }

    async def _run_stage(self, stage: str, order: Message) -> Any:
        runner, limit_s = self._runner, order["limit"]
        if stage == "load":
            metadata = await runner.load(limit_s)
            return {"metadata": metadata.to_dict(), "checks_config": runner.checks_config}
        if stage == "init":
            config = PluginConfig(order["config"], name=order["name"], version=order["version"])
            return await runner.init(config, limit_s)
        if stage == "start":
            self._host.describe(order)
            return await runner.start(self._host, limit_s)
        if stage == "tools":
            listing = await runner.tools(limit_s)
            return {"tools": [definition.to_dict() for definition in listing.definitions], "faults": listing.faults}
        return await (runner.health(limit_s) if stage == "health" else runner.stop(limit_s))


def _plain(fault: Fault) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        "message": fault.message,
        "retry": fault.retry,
        "reason": fault.reason,
        "path": fault.path,
        "exception": fault.exception,
        "trace": fault.trace,
    }


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)  # nobody ever writes: it returns when the keeper is gone
    os._exit(0)


def _disown(loop: asyncio.AbstractEventLoop, link: int) -> None:
    """In a process that plugin code forked: it must neither speak for the worker nor run the worker's loop."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, link)
    os.close(null)
    ready = getattr(loop, "_ready", None)  # asyncio's own loop; what it was about to run is the parent's to run
    if ready is not None:
        ready.clear()
    loop.call_soon(os._exit, 0)
