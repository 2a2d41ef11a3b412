"""One worker process as the host sees it: started, spoken to, ended, and what it left behind taken away."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cyrene_host.catalog.manifests import CONTRACTS, SPOKEN
from cyrene_host.catalog.probe import without_sdk
from cyrene_host.runtimes.keeper import Ending, Keeper, KeeperError
from cyrene_host.runtimes.output import Output
from cyrene_sdk._worker.faults import StageError
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.wire import Link, Message, ProtocolError

__all__ = ["Lost", "Plan", "Worker"]

CLOSED_S = 0.2
"""How long a worker that has closed its pipe may take to end by itself."""

MOST_UNREAD = 32 * 1024 * 1024
"""Bytes of answers that wait for a worker to read them; one with more is ended."""

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")

_log = logging.getLogger("cyrene.workers")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker is started with.

    Args:
        name: the plugin's entry name.
        code: where its class is.
        interpreter: another interpreter; None is the host's own, and forks.
        limits: `memory_mb`, `cpu_seconds`, `open_files`.
        grace_s: seconds between asking it to end and killing it.
        threads: how many plain functions of the plugin may run at once.
        scratch: the folder under which it gets a folder of its own, emptied when it ends.
        marker: the variable by which its processes are known as this host's.
    """

    name: str
    code: Code
    interpreter: Path | None
    limits: Mapping[str, int | None]
    grace_s: float
    threads: int
    scratch: Path
    marker: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lost:
    """Instead of an answer: the worker ended, or was ended because it hung (`by_limit`: this very request did).

    `passed` is the sentence for the limit, where it has one of its own.
    """

    why: str
    ending: Ending | None
    by_limit: bool = False
    passed: str = ""


class Worker:
    """A started worker. Every request gets exactly one answer: the worker's, or `Lost`.

    asyncio itself, not anyio: isolated calls are answered here, and one shared timer watches them all.
    """

    def __init__(self, plan: Plan, keeper: Keeper, *, on_message: Callable[[Message], None]) -> None:
        self._plan = plan
        self._keeper = keeper
        self._on_message = on_message
        self._link = Link(self._take, self._link_ended)
        self._number = 0
        self._asked: dict[int, tuple[asyncio.Future[Message | Lost], float]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf
        self._why = self._why_ended = ""
        self._output: Output | None = None
        self._scratch: Path | None = None
        self.pid: int | None = None
        self.contract = 0  # until it has greeted
        self._greeting: asyncio.Future[Message | Lost] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    async def start(self, log_level: int) -> None:
        """Start the process and wait until it has said which contract it speaks.

        Raises:
            StageError: of stage `load`: it cannot be started, ended before it was ready, or speaks another contract.
        """
        try:
            link, reading = await self._spawn()
        except OSError as error:
            mend = "see whether the machine is full, and that the state directory can be written"
            raise StageError(f"its worker could not be started: {error}", stage="load", mend=mend) from error
        except KeeperError as error:
            raise StageError(error.what, stage="load", mend=error.mend) from error
        plan = self._plan
        loop = asyncio.get_running_loop()
        try:
            self._output = await Output.open(reading, logging.getLogger(f"cyrene.plugin.{plan.name}"))
            await loop.create_unix_connection(lambda: self._link, sock=link)
        except BaseException:
            link.close()
            raise
        self._link.send(
            {
                "k": "hello",
                "code": plan.code.to_dict(),
                "sys_path": [entry for entry in sys.path if entry] if plan.interpreter is None else [],
                "grace_s": plan.grace_s / 2,  # what the worker gives up itself, it still answers in time
                "threads": plan.threads,
                "log_level": log_level,
            }
        )
        self._check(await self._greeting)

    def request(self, message: Message, limit_s: float) -> tuple[int, asyncio.Future[Message | Lost]]:
        """Send a request; return its number and the future of its answer.

        Args:
            limit_s: seconds after which the worker counts as hung and is ended.
        """
        loop = asyncio.get_running_loop()
        self._number += 1
        answer: asyncio.Future[Message | Lost] = loop.create_future()
        if self.ended.done() or self.pid is None:
            answer.set_result(Lost(self._why or "it has ended", self.ended.result() if self.ended.done() else None))
            return self._number, answer
        deadline = loop.time() + limit_s
        self._asked[self._number] = (answer, deadline)
        if deadline < self._alarm_at:
            self._set_alarm(loop, deadline)
        message["id"] = self._number
        self._link.send(message, is_alone=len(self._asked) == 1)
        return self._number, answer

    async def cancel(self, number: int, grace_s: float) -> Message | Lost | None:
        """Cancel a request whose asker has left; return what the worker says of it, None where it was answered.

        A worker that says nothing within the grace is ended.
        """
        if number not in self._asked:
            return None
        gone: asyncio.Future[Message | Lost] = asyncio.get_running_loop().create_future()
        self._asked[number] = (gone, math.inf)
        self._link.send({"k": "cancel", "id": number})
        await asyncio.wait((gone,), timeout=grace_s)
        if gone.done():
            return gone.result()
        del self._asked[number]
        self.kill("a cancelled call did not end")
        return None

    def be_patient(self, number: int, deadline: float) -> None:
        """Wait longer for an answer: until `deadline`, on the loop's clock, before the worker counts as hung."""
        asked = self._asked.get(number)
        if asked is not None:
            self._asked[number] = (asked[0], max(asked[1], deadline))

    def forget(self, number: int) -> None:
        """Ask no more for the answer of a request."""
        self._asked.pop(number, None)

    def send(self, message: Message) -> None:
        """Send what needs no answer; a worker that does not read it is ended."""
        if self._link.unread > MOST_UNREAD:
            self.kill("it does not read what it asked for")
            return
        self._link.send(message)

    @property
    def why(self) -> str:
        """Why it ended, for people."""
        return self._why_ended

    @property
    def printed_last(self) -> str:
        """The end of what the worker printed."""
        return self._output.last if self._output else ""

    def kill(self, why: str) -> None:
        """End the worker and all that it started, now."""
        if self.pid is not None and not self.ended.done():
            self._why = self._why or why
            self._keeper.kill(self.pid)

    async def end(self) -> None:
        """Ask the worker to end, kill it if it has not within the grace, and empty its scratch folder."""
        if self.pid is not None:
            self._why = self._why or "it was told to end"
            self._link.send({"k": "bye"})
            await asyncio.wait((self.ended,), timeout=self._plan.grace_s)
            self.kill("it did not end when it was told to")
            await asyncio.wait((self.ended,), timeout=self._plan.grace_s)
        if self._scratch is not None:
            await asyncio.to_thread(shutil.rmtree, self._scratch, True)

    async def _spawn(self) -> tuple[socket.socket, int]:
        """Start the process; return the host's end of the link, and the one of what it prints."""
        plan = self._plan
        plan.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._scratch = Path(tempfile.mkdtemp(prefix=f"{plan.name}-", dir=plan.scratch))
        with contextlib.ExitStack() as given, contextlib.ExitStack() as kept:
            own, other = socket.socketpair()
            kept.callback(own.close)
            given.callback(other.close)
            reading, writing = os.pipe()
            kept.callback(os.close, reading)
            given.callback(os.close, writing)
            command = [str(plan.interpreter), "-I", "-m", "cyrene_sdk._worker", "serve"]
            self.pid = await self._keeper.spawn(
                argv=command if plan.interpreter is not None else None,
                env=self._environment(),
                cwd=str(self._scratch),
                limits=plan.limits,
                fds=(other.fileno(), writing, writing),
            )
            self._keeper.on_end(self.pid, self._process_ended)
            kept.pop_all()
        return own, reading

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        scratch = str(self._scratch)
        marker, value = self._plan.marker
        return {**kept, "HOME": scratch, "TMPDIR": scratch, "PYTHONUNBUFFERED": "1", marker: value}

    def _check(self, greeting: Message | Lost) -> None:
        if isinstance(greeting, Lost):
            raise self._not_ready(greeting)
        contract = greeting.get("contract")
        if type(contract) is int and contract in CONTRACTS:
            self.contract = contract
        else:
            newer = isinstance(contract, int) and contract > CONTRACTS[-1]
            self.kill("it speaks another contract")
            raise StageError(
                f"its worker speaks the SDK contract '{contract!s:.20}', this host speaks {SPOKEN}",
                stage="load",
                mend="upgrade cyrene-host" if newer else "upgrade cyrene-sdk in the interpreter that 'python' names",
            )

    def _not_ready(self, lost: Lost) -> StageError:
        interpreter = self._plan.interpreter
        missing = without_sdk(interpreter, self.printed_last) if interpreter is not None else None
        if missing is not None:
            return StageError(missing[0], stage="load", mend=missing[1])
        printed = f"; it printed last: {self.printed_last}" if self.printed_last else ""
        what = f"its worker ended before it was ready: {lost.why}{printed}"
        return StageError(what, stage="load", mend="`cyrene doctor` looks at the interpreter and at this machine")

    def _take(self, message: Message) -> None:
        kind = message.get("k")
        if kind == "end":
            number = message.get("id")
            asked = self._asked.pop(number, None) if type(number) is int else None
            if asked is not None and not asked[0].done():  # of an unknown request: nothing
                asked[0].set_result(message)
        elif kind == "ready":
            if not self._greeting.done():
                self._greeting.set_result(message)
        else:
            self._on_message(message)

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = loop.call_at(deadline, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the worker if a request is past its limit; else set the alarm for the next."""
        now = loop.time()
        self._alarm, self._alarm_at = None, math.inf
        hung = [number for number, (_, deadline) in self._asked.items() if deadline <= now]
        for number in hung:
            answer, _ = self._asked.pop(number)
            if not answer.done():
                answer.set_result(Lost("it hung and was ended", None, by_limit=True))
        if hung:
            self.kill("a call hung, and it was ended")
            return
        earliest = min((deadline for _, deadline in self._asked.values()), default=math.inf)
        if earliest < math.inf:
            self._set_alarm(loop, earliest)

    def _link_ended(self, error: Exception | None) -> None:
        if isinstance(error, ProtocolError):
            self.kill(f"protocol: {error}")
        else:  # what ends closes its pipe first: only what lives on is killed
            asyncio.get_running_loop().call_later(CLOSED_S, self.kill, "it closed its pipe")

    def _process_ended(self, ending: Ending) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._link.close()
        if self._output is not None:
            self._output.close()
        why = self._why_ended = f"{self._why} ({ending})" if self._why else str(ending)
        if ending.swept:
            _log.warning("plugin '%s': %d processes that its worker left were swept", self._plan.name, ending.swept)
        self.ended.set_result(ending)
        waiting = [answer for answer, _ in self._asked.values()]
        self._asked.clear()
        for answer in (*waiting, self._greeting):
            if not answer.done():
                answer.set_result(Lost(why, ending))
