"""The process runtime: a plugin in a worker of its own, behind a pipe."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cyrene_host.runtimes.answers import call_answer, metadata_answer, stage_failure, tools_answer
from cyrene_host.runtimes.keeper import Keeper
from cyrene_host.runtimes.output import Allowance
from cyrene_host.runtimes.questions import Questions
from cyrene_host.runtimes.watching import Watched
from cyrene_host.runtimes.worker import Lost, Plan, Worker
from cyrene_sdk._worker.contract import FIRST_WITH_PROGRESS
from cyrene_sdk._worker.faults import Fault, Stage, StageError
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk._worker.progress import Watch
from cyrene_sdk._worker.runner import ToolListing
from cyrene_sdk._worker.wire import Message
from cyrene_sdk.context import CurrentCall
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.protocols import HostAPI, PluginConfig
from cyrene_sdk.types import PluginMetadata

__all__ = ["ProcessRuntime", "WorkerLostError"]

LOG_CHARS = 8_000
LEAST_LINE = 200
"""What a line costs at least: empty ones fill a log too."""
SLACK = 0.9
"""The share of the grace in which a worker has to see to a passed limit itself."""
SWALLOWED = "a call did not end when it was cancelled; its worker is replaced"


class WorkerLostError(StageError):
    """The worker ended in the middle of a stage, or between two calls."""


class ProcessRuntime:
    """One plugin in one worker. A crash, a hang or a leak of it harms nobody else.

    Args:
        plan: what the worker is started with.
        keeper: starts it.
        on_lost: told once when the worker ended or has to be replaced though nobody stopped it: a sentence, and
            whether the plugin may be to blame (it is not where all workers ended with their keeper).
    """

    def __init__(self, plan: Plan, keeper: Keeper, *, on_lost: Callable[[str, bool], None]) -> None:
        self._plan = plan
        self._keeper = keeper
        self._on_lost = on_lost
        self._worker: Worker | None = None
        self._calls: dict[str, CurrentCall] = {}  # those that run
        self._watched: dict[int, Watched] = {}
        self._questions = Questions(self._send, self._calls.get)
        self._logger = logging.getLogger(f"cyrene.plugin.{plan.name}")
        self._allowance = Allowance(self._logger, "logged")
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._is_worn = False
        self.abandoned = 0  # a worker with a given-up call is replaced
        self.checks_config = False

    @property
    def pid(self) -> int | None:
        """The worker's process id, while it runs."""
        return self._worker.pid if self._worker is not None and not self._worker.ended.done() else None

    async def load(self, limit_s: float) -> PluginMetadata:
        """Start the worker and import the plugin in it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        worker = self._worker = Worker(self._plan, self._keeper, on_message=self._take)
        try:
            async with asyncio.timeout(limit_s):
                await worker.start(self._logger.getEffectiveLevel())
        except TimeoutError as error:
            worker.kill("it was not ready in time")
            what = f"its worker was not ready within the limit of {limit_s:.3g} s"
            raise StageError(what, stage="load", mend="raise limits.load_s in the entry", timed_out=True) from error
        worker.ended.add_done_callback(self._ended)
        message = await self._stage("load", max(0.01, deadline - loop.time()))
        value = message.get("value")
        self.checks_config = isinstance(value, dict) and value.get("checks_config") is True
        return metadata_answer(message)

    async def init(self, config: PluginConfig, limit_s: float) -> None:
        """Hand over the configuration."""
        name, version, folder = config.name, config.version, str(config.folder)
        await self._stage("init", limit_s, config=dict(config), name=name, version=version, folder=folder)

    async def start(self, host: HostAPI, limit_s: float) -> None:
        """Start the plugin; what it asks of its host is answered from now on."""
        self._questions.host = host
        try:
            data_dir = host.data_dir
        except OSError as error:
            mend = "see that the state directory can be written"
            raise StageError(f"its data folder cannot be made: {error}", stage="start", mend=mend) from error
        await self._stage("start", limit_s, version=host.version, name=self._plan.name, data_dir=str(data_dir))

    async def tools(self, limit_s: float) -> ToolListing:
        """Ask for the live definitions."""
        return tools_answer(await self._stage("tools", limit_s))

    async def health(self, limit_s: float) -> None:
        """Ask whether it is well; a worker that does not answer is left alone, for it may be busy."""
        try:
            async with asyncio.timeout(limit_s + self._plan.grace_s / 2):
                await self._stage("health", limit_s, patience_s=math.inf)
        except TimeoutError as error:
            what = f"'health' did not end within its limit of {limit_s:.3g} s"
            raise StageError(what, stage="health", mend="find what it blocks in", timed_out=True) from error

    async def stop(self, limit_s: float) -> None:
        """Let the plugin release what it holds."""
        self._is_stopping = True
        await self._stage("stop", limit_s)

    async def close(self) -> None:
        """End the worker, and all that it started."""
        self._is_stopping = True
        self._questions.close()
        self._allowance.close()
        if self._worker is not None:
            await self._worker.end()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        call: CurrentCall,
        limit_s: float,
        validate: bool = True,
        watch: Watch | None = None,
    ) -> Fields | Fault:
        """Run one attempt in the worker."""
        order = {"k": "call", "tool": name, "args": arguments, "call": call, "limit": limit_s, "validate": validate}
        self._calls[call.call_id] = call
        try:
            answer = await (self._ask(order, limit_s) if watch is None else self._ask_watched(order, limit_s, watch))
        finally:
            self._calls.pop(call.call_id, None)
        if type(answer) is not dict:
            return self._lost(answer, limit_s)  # type: ignore[arg-type]  # the other of the two
        outcome = call_answer(answer)
        if answer.get("abandoned"):
            self._wear_out(SWALLOWED)
        if isinstance(outcome, Fault) and outcome.exception == "MemoryError":
            return self._out_of_memory(outcome)
        return outcome

    async def validate(self, name: str, arguments: dict[str, Any], call: CurrentCall, limit_s: float) -> Fault | None:
        """Run the tool's own `validate` alone."""
        order = {"k": "validate", "tool": name, "args": arguments, "call": call, "limit": limit_s}
        self._calls[call.call_id] = call
        try:
            answer = await self._ask(order, limit_s)
        finally:
            self._calls.pop(call.call_id, None)
        if isinstance(answer, Lost):
            return self._lost(answer, limit_s)
        outcome = call_answer(answer) if "fault" in answer else None
        return outcome if isinstance(outcome, Fault) else None

    async def _ask_watched(self, order: Message, limit_s: float, watch: Watch) -> Message | Lost:
        """Ask for an attempt that tells its progress; a worker with an older SDK runs it without."""
        worker = self._worker
        if worker is None or worker.contract < FIRST_WITH_PROGRESS:
            return await self._ask(order, limit_s)
        watched = Watched(watch, limit_s=limit_s, slack_s=SLACK * self._plan.grace_s, worker=worker)
        try:
            answer = await self._ask({**order, "idle": watch.idle_s}, min(limit_s, watch.idle_s), watched)
        finally:
            self._watched.pop(watched.number, None)
            watched.close()
        return replace(answer, passed=watched.passed) if isinstance(answer, Lost) else answer

    async def _ask(self, order: Message, limit_s: float, watched: Watched | None = None) -> Message | Lost:
        worker = self._worker
        if worker is None:
            return Lost("it has ended", None)
        number, answer = worker.request(order, limit_s + SLACK * self._plan.grace_s)
        if watched is not None:
            watched.number = number
            self._watched[number] = watched
        try:
            return await answer
        except asyncio.CancelledError:
            if order["k"] == "stage":
                worker.forget(number)
                raise
            leaving = asyncio.get_running_loop().create_task(self._leave(worker, number))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            await asyncio.shield(leaving)  # a cancel scope cancels again and again; the call is seen to all the same
            raise

    async def _leave(self, worker: Worker, number: int) -> None:
        """See to a call whose caller has left."""
        said = await worker.cancel(number, self._plan.grace_s)
        if isinstance(said, dict) and said.get("abandoned"):
            self._wear_out(SWALLOWED)

    async def _stage(self, stage: Stage, limit_s: float, *, patience_s: float | None = None, **more: Any) -> Message:
        order = {"k": "stage", "stage": stage, "limit": limit_s, **more}
        answer = await self._ask(order, limit_s if patience_s is None else patience_s)
        if isinstance(answer, Lost):
            if answer.by_limit:
                what = f"'{stage}' did not end within its limit of {limit_s:.3g} s, and its worker was ended"
                raise StageError(what, stage=stage, mend="find what it blocks in, or raise the limit", timed_out=True)
            raise WorkerLostError(
                f"its worker ended during '{stage}': {answer.why}{self._printed()}",
                stage=stage,
                mend="the plugin's log has what it printed; `cyrene check` runs the same import",
            )
        if "error" in answer:
            raise stage_failure(answer["error"], stage)
        return answer

    def _lost(self, lost: Lost, limit_s: float) -> Fault:
        """Say what became of a call whose worker is gone."""
        if lost.by_limit:
            self._wear_out("a call hung, and its worker was ended")
            passed = lost.passed or f"no answer within {limit_s:.3g} s"
            return Fault(ErrorKind.TIMEOUT, f"{passed}; its worker was ended", retry="timeout")
        self._ended()  # before the next call comes
        ending = lost.ending
        if ending is not None and ending.signal == signal.SIGXCPU:
            limit = self._plan.limits.get("cpu_seconds")
            return Fault(
                ErrorKind.RESOURCE_EXCEEDED,
                f"its worker used up its {limit} s of processor time (limits.cpu_seconds)",
                retry="lost",
            )
        return Fault(ErrorKind.WORKER_CRASHED, f"the plugin's worker ended: {lost.why}", retry="lost")

    def _out_of_memory(self, fault: Fault) -> Fault:
        limit = self._plan.limits.get("memory_mb")
        return Fault(
            ErrorKind.RESOURCE_EXCEEDED,
            f"the tool needs more memory than the worker may have (limits.memory_mb is {limit})",
            trace=fault.trace,
        )

    def _wear_out(self, why: str, *, is_own: bool = True) -> None:
        """Have the worker replaced: it is gone, or a given-up call still runs in it."""
        if not self._is_worn and not self._is_stopping:
            self._is_worn = True
            self._on_lost(why, is_own)

    def _ended(self, _: object = None) -> None:
        worker = self._worker
        why = worker.why if worker is not None else ""
        ended_with_keeper = worker is not None and worker.ended.done() and worker.ended.result().status is None
        self._wear_out(f"its worker ended: {why}{self._printed()}", is_own=not ended_with_keeper)

    def _take(self, message: Message) -> None:
        kind = message.get("k")
        if kind == "ask":
            self._questions.take(message)
        elif kind == "unask":
            self._questions.drop(message)
        elif kind == "log":
            self._relay(message)
        elif kind == "progress":
            number = message.get("id")
            watched = self._watched.get(number) if type(number) is int else None
            if watched is not None:
                watched.take(message)

    def _send(self, message: Message) -> None:
        if self._worker is not None:
            self._worker.send(message)

    def _printed(self) -> str:
        printed = self._worker.printed_last if self._worker is not None else ""
        return f"; it printed last: {printed}" if printed else ""

    def _relay(self, message: Message) -> None:
        """Tell the plugin's log what the worker logs, up to its allowance."""
        level, text = message.get("level"), message.get("text")
        if type(level) is int and isinstance(text, str):
            line = text[:LOG_CHARS]
            size = max(len(line), LEAST_LINE)
            if self._allowance.take(size) == size:
                self._logger.log(min(max(level, 0), logging.CRITICAL), "%s", line)
