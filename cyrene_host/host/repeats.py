"""A call that is made again: under its idempotency key, or with the approval that it waited for."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from cyrene_host.call.context import CallContext
from cyrene_host.call.failures import ended_early
from cyrene_host.call.gate import ArgumentsRefused, read_arguments
from cyrene_host.call.results import failed
from cyrene_host.errors import CallFailedError
from cyrene_host.host.approvals import Approvals
from cyrene_host.host.executions import Executions, UnknownExecutionError, new_id
from cyrene_host.host.lookout import LOOK_S
from cyrene_host.host.records import Records
from cyrene_host.record.approval import Approval, canonical, digest
from cyrene_host.record.execution import Execution
from cyrene_host.record.key_use import KeyUse
from cyrene_sdk.errors import CyreneError, ErrorKind
from cyrene_sdk.types import ToolResult

__all__ = ["Repeats"]

KEY_CHARS = 256

_log = logging.getLogger("cyrene.executions")

_Run = Callable[[CallContext], Awaitable[ToolResult]]


@dataclass(slots=True)
class _Made:
    """A call under a key, made by this host; it is remembered as long as nothing of it is kept."""

    request_sha256: str
    answer: asyncio.Task[ToolResult]
    is_kept: bool = True


class Repeats:
    """Lets a request that comes twice be one call, which a caller who leaves does not end.

    Args:
        records, executions, approvals: the host's.
        fitted: the id of the tool that a name means, and the arguments as it would run with them.
    """

    def __init__(
        self,
        records: Records,
        executions: Executions,
        approvals: Approvals,
        *,
        fitted: Callable[[str, object], tuple[str, dict[str, Any]]],
    ) -> None:
        self._records = records
        self._executions = executions
        self._approvals = approvals
        self._fitted = fitted
        self._made: dict[tuple[str, str], _Made] = {}

    async def call(self, name: str, arguments: object, context: CallContext, run: _Run) -> ToolResult:
        """_Run the call, or return what came of it when it was made first."""
        if context.approval_id is not None:
            return await _told(name, self._approved(name, arguments, context))
        key, request = (context.principal, context.idempotency_key or ""), _digest(name, arguments)
        made = self._made.get(key)
        if made is None:
            work = _told(name, self._once(name, arguments, context, request, run), is_own=True)
            made = self._made[key] = _Made(request, asyncio.get_running_loop().create_task(work))
            made.answer.add_done_callback(lambda _: self._forget(key))
        if made.request_sha256 != request:
            return _failed(name, _used_otherwise())
        return await asyncio.shield(made.answer)

    async def start(self, name: str, arguments: object, context: CallContext, deadline_s: float | None) -> Execution:
        """_Begin an execution, or return the one that was begun first.

        Raises:
            CallFailedError: the key is of another call, or of one of which nothing is known.
            StoreError: whether it was begun before cannot be told.
        """
        execution_id = new_id()
        before = await self._taken(context, _digest(name, arguments), execution_id)
        if before is None:
            return await self._executions.start(
                name, arguments, context=context, deadline_s=deadline_s, execution_id=execution_id
            )
        if before.execution_id is None:
            raise _used_otherwise()
        try:
            return await self._executions.get(before.execution_id)
        except UnknownExecutionError as unknown:
            raise _lost() from unknown

    async def close(self) -> None:
        """End the calls that are being made."""
        answers = [made.answer for made in self._made.values()]
        for answer in answers:
            answer.cancel()
        if answers:
            await asyncio.wait(answers)

    def _forget(self, key: tuple[str, str]) -> None:
        if self._made[key].is_kept:
            del self._made[key]

    async def _once(self, name: str, arguments: object, context: CallContext, request: str, run: _Run) -> ToolResult:
        before = await self._taken(context, request)
        if before is None:
            return await self._first(run, context)
        principal, key = context.principal, context.idempotency_key or ""
        while before.result is None:
            if before.execution_id is not None:
                return await self._result_of(before.execution_id)
            is_mine = before.instance == self._records.instance  # and it is not being made: its end was not kept
            if is_mine or not await self._records.is_alive(before.instance):
                lost = _failed(name, _lost())
                await self._records.keys.keep(principal, key, lost)
                return lost
            await asyncio.sleep(LOOK_S)
            now = await self._records.keys.get(principal, key)
            if now is None:  # it came to nothing, and may be made anew
                return await self._once(name, arguments, context, request, run)
            before = now
        waits = before.result.error_kind is ErrorKind.APPROVAL_REQUIRED and isinstance(before.result.data, dict)
        if waits and (approval_id := before.result.data.get("approval_id")):
            return await self._approved(name, arguments, replace(context, approval_id=approval_id))
        return before.result

    async def _taken(self, context: CallContext, request: str, execution_id: str | None = None) -> KeyUse | None:
        """Take the key for this call; return what it was taken for before, which is the same call."""
        key = context.idempotency_key or ""
        if len(key) > KEY_CHARS:
            raise _refused(f"the idempotency key has more than {KEY_CHARS} characters", "use a shorter one")
        await self._records.claim_for_call()
        before = await self._records.keys.take(context.principal, key, request, execution_id, now=time.time())
        if before is not None and before.request_sha256 != request:
            raise _used_otherwise()
        return before

    async def _first(self, run: _Run, context: CallContext) -> ToolResult:
        principal, key = context.principal, context.idempotency_key or ""
        result = await run(context)
        try:
            if result.effect == "none" and result.retryable:
                await self._records.keys.free(principal, key)
            else:
                await self._records.keys.keep(principal, key, result)
        except CyreneError as error:
            self._made[principal, key].is_kept = False
            _log.error("the result of a call with an idempotency key cannot be kept: %s", error)
        return result

    async def _result_of(self, execution_id: str) -> ToolResult:
        try:
            ended = await self._executions.wait(execution_id)
        except UnknownExecutionError as unknown:
            raise _lost() from unknown
        assert ended.result is not None, "one that has ended has a result"
        return ended.result

    async def _approved(self, name: str, arguments: object, context: CallContext) -> ToolResult:
        approval = await self._approvals.get(context.approval_id or "")
        self._check(approval, name, arguments, context)
        await self._approvals.expire()
        execution = await self._executions.get(approval.execution_id)
        if execution.state == "waiting":
            raise CallFailedError(
                ErrorKind.APPROVAL_REQUIRED,
                f"the call of '{name}' still waits for a person's approval",
                where=f"approval '{approval.id}', execution '{approval.execution_id}'",
                mend=f"`cyrene approvals approve {approval.id}` runs it once",
                details={
                    "approval_id": approval.id,
                    "execution_id": approval.execution_id,
                    "expires_at": approval.expires_at,
                },
            )
        return await self._result_of(execution.id)

    def _check(self, approval: Approval, name: str, arguments: object, context: CallContext) -> None:
        if approval.principal != context.principal:
            raise _denied(approval, "it was asked for by another principal", "ask for an approval of your own")
        tool_id, fitted = self._fitted(name, arguments)
        if approval.tool_id != tool_id:
            raise _denied(approval, f"it is about '{approval.tool_id}', not about '{name}'", "ask for another approval")
        if approval.arguments_sha256 != digest(canonical(fitted)):
            raise _denied(approval, "it is for other arguments than these", "call with those that were shown")


async def _told(name: str, work: Awaitable[ToolResult], *, is_own: bool = False) -> ToolResult:
    """Return what it comes to, as a result; `is_own`: cancelled by nobody but a host that closes."""
    try:
        return await work
    except CallFailedError as error:
        return _failed(name, error)
    except CyreneError as error:
        what = f"whether this call was made before cannot be told: {error.what}"
        kind = ErrorKind.PLUGIN_UNAVAILABLE
        return _failed(name, CallFailedError(kind, what, where=error.where, mend=error.mend, retryable=True))
    except asyncio.CancelledError:
        if not is_own:
            raise
        return _failed(name, ended_early(None, "interrupted", acted=True))


def _lost() -> CallFailedError:
    return CallFailedError(
        ErrorKind.INTERRUPTED,
        "the call was made before, and its host ended before it did",
        mend="look whether it has happened; then make it under a new key",
        acted=True,
    )


def _used_otherwise() -> CallFailedError:
    return _refused(
        "the idempotency key was used for another call", "use a new key for each call, the same for its repeats"
    )


def _digest(name: str, arguments: object) -> str:
    """Tell requests apart; what is no JSON object is refused by every tool, and then that is its result."""
    try:
        told = canonical(read_arguments(arguments))
    except ArgumentsRefused as refused:
        told = refused.message
    return hashlib.sha256(f"{name} {told}".encode("utf-8", "replace")).hexdigest()


def _denied(approval: Approval, why: str, mend: str) -> CallFailedError:
    return CallFailedError(
        ErrorKind.DENIED,
        f"approval '{approval.id}' does not cover this call: {why}",
        plugin=approval.plugin,
        where="CallContext.approval_id",
        mend=mend,
    )


def _refused(what: str, mend: str) -> CallFailedError:
    return CallFailedError(ErrorKind.DENIED, what, where="CallContext.idempotency_key", mend=mend)


def _failed(name: str, error: CallFailedError) -> ToolResult:
    return failed(
        error, tool_name=name, plugin=error.plugin or "", call_id="", error_id="", attempts=0, duration_ms=0, notes=[]
    )
