"""A call that is made again: under its idempotency key, or with the approval that it waited for."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from cyrene_host.call.context import CallContext
from cyrene_host.call.gate import ArgumentsRefused, read_arguments
from cyrene_host.call.results import failed
from cyrene_host.errors import CallFailedError
from cyrene_host.host.approvals import Approvals
from cyrene_host.host.executions import Executions
from cyrene_host.host.lookout import LOOK_S
from cyrene_host.host.records import Records
from cyrene_host.record.approval import Approval, canonical
from cyrene_sdk.errors import CyreneError, ErrorKind
from cyrene_sdk.types import ToolResult

__all__ = ["Repeats"]

KEY_CHARS = 256

_Run = Callable[[CallContext], Awaitable[ToolResult]]


class Repeats:
    """Lets a request that comes twice be one call.

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
        self._running: dict[tuple[str, str], asyncio.Future[ToolResult]] = {}

    async def call(self, name: str, arguments: object, context: CallContext, run: _Run) -> ToolResult:
        """_Run the call, or return what came of it when it was made first."""
        try:
            if context.approval_id is not None:
                return await self._approved(name, arguments, context)
            return await self._once(name, arguments, context, run)
        except CallFailedError as error:
            return _failed(name, error)
        except CyreneError as error:
            return _failed(
                name,
                CallFailedError(
                    ErrorKind.PLUGIN_UNAVAILABLE,
                    f"whether this call was made before cannot be told: {error.what}",
                    where=error.where,
                    mend=error.mend,
                    retryable=True,
                ),
            )

    async def _once(self, name: str, arguments: object, context: CallContext, run: _Run) -> ToolResult:
        key, principal = context.idempotency_key or "", context.principal
        if len(key) > KEY_CHARS:
            raise _refused(f"the idempotency key has more than {KEY_CHARS} characters", "use a shorter one")
        await self._records.claim()
        request = _digest(name, arguments)
        before = await self._records.keys.take(principal, key, request, now=time.time())
        if before is None:
            return await self._first(principal, key, run, context)
        if before.request_sha256 != request:
            raise _refused(
                "the idempotency key was used for another call", "use a new key for each call, the same for its repeats"
            )
        while before is not None and before.result is None:
            if before.instance == self._records.instance and (mine := self._running.get((principal, key))) is not None:
                return await asyncio.shield(mine)
            if not await self._records.is_alive(before.instance):
                return await self._lost(name, principal, key)
            await asyncio.sleep(LOOK_S)
            before = await self._records.keys.get(principal, key)
        if before is None or before.result is None:  # it came to nothing, and may be made anew
            return await self._once(name, arguments, context, run)
        return before.result

    async def _first(self, principal: str, key: str, run: _Run, context: CallContext) -> ToolResult:
        answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._running[principal, key] = answer
        try:
            result = await run(context)
            if result.effect == "none" and result.retryable:
                await self._records.keys.free(principal, key)
            else:
                await self._records.keys.keep(principal, key, result)
            answer.set_result(result)
            return result
        finally:
            answer.cancel()
            del self._running[principal, key]

    async def _lost(self, name: str, principal: str, key: str) -> ToolResult:
        error = CallFailedError(
            ErrorKind.INTERRUPTED,
            "the call was made before, and its host ended before it did",
            mend="look whether it has happened; then make it under a new key",
            acted=True,
        )
        result = _failed(name, error)
        await self._records.keys.keep(principal, key, result)
        return result

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
        ended = await self._executions.wait(execution.id)
        assert ended.result is not None, "one that has ended has a result"
        return ended.result

    def _check(self, approval: Approval, name: str, arguments: object, context: CallContext) -> None:
        if approval.principal != context.principal:
            raise _denied(approval, "it was asked for by another principal", "ask for an approval of your own")
        tool_id, fitted = self._fitted(name, arguments)
        if approval.tool_id != tool_id:
            raise _denied(approval, f"it is about '{approval.tool_id}', not about '{name}'", "ask for another approval")
        if approval.arguments != canonical(fitted):
            raise _denied(approval, "it is for other arguments than these", "call with those that were shown")


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
