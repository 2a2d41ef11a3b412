"""Calls that run long or wait for a person, for programs and surfaces."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

from cyrene_host.call.context import CallContext, Caller
from cyrene_host.call.execution import Approved, Held, Track
from cyrene_host.call.failures import ended_early
from cyrene_host.call.policy import ApprovalRequest
from cyrene_host.errors import CallFailedError, HostStateError
from cyrene_host.host.ends import failed_result, state_after, withdrawn
from cyrene_host.host.lookout import LOOK_S, Lookout
from cyrene_host.host.records import Records
from cyrene_host.host.running import Running
from cyrene_host.record.approval import Approval, canonical, digest
from cyrene_host.record.execution import Execution, ExecutionEvent, ExecutionState
from cyrene_sdk.types import DangerLevel, ToolResult

__all__ = ["Executions", "UnknownExecutionError", "new_id"]

APPROVAL_S = 300.0
"""How long a call waits for a person."""
MOST_UNKEPT = 200
"""So many that have ended are remembered where the database does not take them."""


class UnknownExecutionError(HostStateError):
    """There is no such execution, or it belongs to somebody else."""


class _Run(Protocol):
    """The pipeline's `call`."""

    def __call__(
        self,
        name: str,
        arguments: object,
        *,
        context: CallContext | None = None,
        deadline_s: float | None = None,
        caller: Caller | None = None,
        track: Track | None = None,
        approved: Approved | None = None,
    ) -> Awaitable[ToolResult]: ...


class Executions:
    """`host.executions`: start, list, read, follow and cancel.

    Args:
        records: where they are kept.
        lookout: looks for what other processes want of those that run here.
        shown: makes of a tool's name and arguments what is kept of them: tool id, plugin, arguments without secrets.
    """

    run: _Run
    """Set by the host: the pipeline needs this object, and this one the pipeline."""

    def __init__(
        self, records: Records, lookout: Lookout, *, shown: Callable[[str, object], tuple[str, str, Any]]
    ) -> None:
        self._records = records
        self._lookout = lookout
        self._shown = shown
        self._running: dict[str, Running] = {}
        lookout.add(self._look)

    async def start(
        self,
        name: str,
        arguments: object,
        *,
        context: CallContext,
        deadline_s: float | None = None,
        execution_id: str | None = None,
    ) -> Execution:
        """Begin a call of any tool and return its execution at once; see `Host.start_execution`."""
        await self._records.claim_for_call()
        running = self._new(name, arguments, context, execution_id)
        await running.become("queued")
        self._go(running, name, arguments, context=context, deadline_s=deadline_s)
        return running.execution

    async def call(
        self,
        tool_id: str,
        arguments: object,
        context: CallContext,
        deadline_s: float | None,
        caller: Caller | None,
    ) -> ToolResult:
        """_Run a tool that runs long and wait for its result; of those who leave only a tool ends it."""
        await self._records.claim_for_call()
        running = self._new(tool_id, arguments, context)
        self._go(running, tool_id, arguments, context=context, deadline_s=deadline_s, caller=caller)
        try:
            await running.ended.wait()
        except asyncio.CancelledError:
            if caller is not None:  # a nested call is part of the one that it is nested in
                self._end(running, "cancelled")
            raise
        assert running.execution.result is not None, "one that has ended has a result"
        return running.execution.result

    async def hold(self, request: ApprovalRequest, context: CallContext, track: Track | None) -> Held:
        """Keep a call until a person has decided."""
        await self._records.claim_for_call()
        known = self._running.get(track.id) if track is not None else None
        running = known or self._new(request.tool_id, request.arguments, context)
        now, arguments = time.time(), canonical(request.arguments)
        approval = Approval(
            id=f"apr_{secrets.token_hex(8)}",
            execution_id=running.id,
            tool_id=request.tool_id,
            plugin=request.plugin,
            description=request.description,
            danger=request.danger,
            arguments=arguments,
            arguments_sha256=digest(arguments),
            fingerprint=request.fingerprint,
            principal=request.principal,
            surface=request.surface,
            created_at=now,
            expires_at=now + APPROVAL_S,
            user_id=request.user_id,
            conversation_id=request.conversation_id,
        )
        try:
            await self._records.approvals.add(approval)  # first: who sees that it waits will look for it
            shown = self._shown(request.tool_id, request.arguments)[2]
            await running.become("waiting", approval_id=approval.id, arguments=shown)
        except BaseException:
            if known is None:  # nobody else sees it through
                self._drop(running)
            raise
        self._drop(running)
        self._lookout.need()
        return Held(running.id, approval.id, approval.expires_at)

    async def resume(self, approval: Approval) -> Execution:
        """_Run a call that was approved; whoever asks for this has used the approval up."""
        await self._records.claim_for_call()
        running = await self._taken_up(approval.execution_id)
        kept = running.execution
        context = CallContext(
            surface=kept.surface,  # type: ignore[arg-type]  # it was one of them when it was kept
            principal=kept.principal,
            conversation_id=kept.conversation_id,
            user_id=kept.user_id,
            parent_call_id=kept.parent_call_id,
        )
        await running.become("queued")
        approved = Approved(approval.fingerprint, DangerLevel(approval.danger))
        self._go(running, approval.tool_id, approval.arguments, context=context, approved=approved)
        return running.execution

    async def settle(self, execution_id: str, error: CallFailedError) -> Execution:
        """End one that waited for a person in vain."""
        running = await self._taken_up(execution_id)
        result = failed_result(running.execution, error)
        await running.end(state_after(result), result)
        await self._left(running)
        return running.execution

    async def list(
        self, *, principal: str | None = None, states: Sequence[ExecutionState] = (), limit: int = 100
    ) -> Sequence[Execution]:
        """Return the newest executions, newest first.

        Args:
            principal: only this one's; None for all.
            states: only those in one of these states.
            limit: how many at most.
        """
        if not self._records.store.exists():
            return []
        await self._records.ready()
        kept = await self._records.executions.list(principal=principal, states=states, limit=limit)
        live = {found.id: found.execution for found in self._running.values()}
        return [live.get(execution.id, execution) for execution in kept]

    async def ids(self, *, limit: int = 10_000) -> Sequence[str]:
        """Return the ids of the newest that are kept, newest first."""
        if not self._records.store.exists():
            return []
        await self._records.ready()
        return await self._records.executions.ids(limit=limit)

    def has(self, execution_id: str) -> bool:
        """Whether this very host runs it, so that it ends with this host at the latest."""
        return execution_id in self._running

    async def get(self, execution_id: str, *, principal: str | None = None) -> Execution:
        """Return one.

        Args:
            principal: who asks; None for an operator, who may see all.
        Raises:
            UnknownExecutionError: there is none of this id, or it is not this principal's.
        """
        running = self._running.get(execution_id)
        execution = running.execution if running is not None else None
        if running is None and self._records.store.exists():
            await self._records.ready()
            execution = await self._records.executions.get(execution_id)
        if execution is None or principal not in (None, execution.principal):
            raise _unknown(execution_id)
        return execution

    async def wait(self, execution_id: str, *, principal: str | None = None) -> Execution:
        """Return one when it has ended; one that waits for a person may take its 300 s.

        Raises:
            UnknownExecutionError: as `get`.
        """
        async with contextlib.aclosing(self.events(execution_id, principal=principal)) as events:
            async for event in events:
                if event.is_last:
                    break
        return await self.get(execution_id, principal=principal)

    async def events(
        self, execution_id: str, *, after: int = 0, principal: str | None = None
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Yield what happened after the event with the number `after`, then what happens, to the end.

        Raises:
            UnknownExecutionError: as `get`.
        """
        await self.get(execution_id, principal=principal)
        while True:
            running = self._running.get(execution_id)
            source = running.events(after) if running is not None and after >= running.first else None
            if source is None:
                source = _each(await self._records.executions.events(execution_id, after))
            before = after
            async with contextlib.aclosing(source):
                async for event in source:
                    after = event.seq
                    yield event
                    if event.is_last:
                        return
            if after == before and (await self.get(execution_id)).is_ended:
                return  # its end could not be kept
            if after == before:
                await asyncio.sleep(LOOK_S)
                await self._records.recover()  # the host that ran it may have died meanwhile

    async def cancel(self, execution_id: str, *, principal: str | None = None) -> Execution:
        """Cancel one; return it as it is then. One that has ended stays as it is.

        A running tool is told, and ended with its worker if it has not ended after `kill_grace_s`; `wait` returns
        when it has.

        Raises:
            UnknownExecutionError: as `get`.
        """
        execution = await self.get(execution_id, principal=principal)
        running = self._running.get(execution_id)
        if execution.is_ended:
            return execution
        if _is_held(execution):
            if running is not None:
                await running.left.wait()  # it is just being kept, or ended
            return await self._withdraw(execution, by=principal)
        if running is None:
            await self._records.executions.ask_to_cancel(execution_id)
            return execution
        self._end(running, "cancelled")
        return running.execution

    async def close(self) -> None:
        """End all that runs, as interrupted, and return when that is kept."""
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for running in list(self._running.values()):
            self._end(running, "interrupted")
        if tasks:
            await asyncio.wait(tasks)

    def _new(self, name: str, arguments: object, context: CallContext, execution_id: str | None = None) -> Running:
        tool_id, plugin, shown = self._shown(name, arguments)
        execution = Execution(
            id=execution_id or new_id(),
            tool_id=tool_id,
            plugin=plugin,
            state="queued",
            principal=context.principal,
            surface=context.surface,
            created_at=time.time(),
            arguments=shown,
            conversation_id=context.conversation_id,
            user_id=context.user_id,
            parent_call_id=context.parent_call_id,
        )
        running = Running(execution, self._records.executions)
        running.shown = shown
        self._running[running.id] = running
        return running

    async def _taken_up(self, execution_id: str) -> Running:
        """Go on with one that was left to wait."""
        before = self._running.get(execution_id)
        if before is not None:
            await before.left.wait()
        kept = await self.get(execution_id)
        seq = await self._records.executions.last_event(kept.id)
        running = self._running[kept.id] = Running(kept, self._records.executions, seq=seq)
        running.shown = self._shown(kept.tool_id, kept.arguments)[2]
        return running

    def _go(self, running: Running, name: str, arguments: object, **how: Any) -> None:
        running.task = asyncio.get_running_loop().create_task(self._see_through(running, name, arguments, **how))
        self._lookout.need()

    async def _see_through(self, running: Running, name: str, arguments: object, **how: Any) -> None:
        running.has_begun = True
        if running.ending is not None:
            result = failed_result(running.execution, ended_early(None, running.ending, acted=False))
        else:
            result = await self.run(name, arguments, track=running, **how)
        if running.left.is_set():
            return  # it waits for a person now
        running.has_begun = False  # what follows is not to be cancelled
        await running.end(state_after(result), result)
        await self._left(running)

    async def _left(self, running: Running) -> None:
        """Leave one that has ended to the database; if that cannot take it now, remember it and try again."""
        if await running.keep():
            self._drop(running)
            return
        self._lookout.need()
        for forgotten in self._unkept()[:-MOST_UNKEPT]:
            self._drop(forgotten)

    def _unkept(self) -> Sequence[Running]:
        return [running for running in self._running.values() if running.ended.is_set()]

    def _drop(self, running: Running) -> None:
        running.leave()
        if self._running.get(running.id) is running:
            del self._running[running.id]

    def _end(self, running: Running, why: Literal["cancelled", "interrupted"]) -> None:
        if running.ending is None and not _is_held(running.execution):
            running.ending = why
            if running.task is not None and running.has_begun:
                running.task.cancel()

    async def _withdraw(self, execution: Execution, *, by: str | None) -> Execution:
        """Cancel one that waits for a person; if it is being run at this moment, that is to end."""
        approval_id, at, why = execution.approval_id or "", time.time(), "the execution was cancelled"
        refuse = self._records.approvals.refuse
        if not await refuse(approval_id, "denied", at=at, by=by, reason=why, is_void=True):
            await self._records.executions.ask_to_cancel(execution.id)
            return await self.get(execution.id)
        return await self.settle(execution.id, withdrawn(execution))

    async def _look(self) -> bool:
        """See to what other processes want to be cancelled, and to ends that could not be kept."""
        for running in self._unkept():
            if await running.keep():
                self._drop(running)
        if self._running:
            for execution_id in await self._records.executions.asked_to_cancel():
                with contextlib.suppress(UnknownExecutionError):
                    await self.cancel(execution_id)
        return bool(self._running)


def _is_held(execution: Execution) -> bool:
    """Whether it waits for a person who is not here."""
    return execution.state == "waiting" and execution.approval_id is not None


async def _each(events: Sequence[ExecutionEvent]) -> AsyncGenerator[ExecutionEvent, None]:
    for event in events:
        yield event


def new_id() -> str:
    """Return an id for an execution."""
    return f"exe_{secrets.token_hex(8)}"


def _unknown(execution_id: str) -> UnknownExecutionError:
    return UnknownExecutionError(
        f"there is no execution '{execution_id[:80]}'",
        where="execution id",
        mend="`cyrene executions list` shows those that there are",
    )
