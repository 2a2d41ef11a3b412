"""The straight line of a call: resolve, gate, validate, ask, attempt, check the result."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from threading import get_ident
from typing import Any, Protocol

from cyrene_host.call.admission import QueueFullError
from cyrene_host.call.attempts import backoff_s, may_have_acted, may_retry
from cyrene_host.call.coerce import coerce
from cyrene_host.call.context import CallContext, Caller
from cyrene_host.call.copies import copied
from cyrene_host.call.endings import Endings
from cyrene_host.call.execution import Approved, ExecutionDesk, Track
from cyrene_host.call.failures import (
    arguments_do_not_fit,
    attempt_failed,
    deadline_passed,
    not_permitted,
    not_ready,
    queue_full,
    returns_do_not_fit,
    schema_unusable,
)
from cyrene_host.call.gate import ArgumentsRefused, read_arguments
from cyrene_host.call.hooks import Hooks
from cyrene_host.call.permission import Permission
from cyrene_host.call.policy import Approver
from cyrene_host.call.recorder import CallRecorder
from cyrene_host.call.secrecy import redact_fields, without_secrets_told
from cyrene_host.call.tool import CallableTool, ToolRuntime
from cyrene_host.call.underway import Underway
from cyrene_host.errors import CallFailedError, HostStateError
from cyrene_sdk._worker.faults import Fault
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk._worker.progress import Watch
from cyrene_sdk.context import CurrentCall
from cyrene_sdk.types import DangerLevel, ToolResult

__all__ = ["Pipeline", "ToolIndex"]

LOCAL = CallContext()

_log = logging.getLogger("cyrene.call")


class ToolIndex(Protocol):
    """Finds the tool that a spelling means."""

    def resolve(self, name: str) -> CallableTool:
        """Return the tool.

        Raises:
            CallFailedError: `unknown_tool`, or `plugin_unavailable` where the entry's tools are not known.
        """
        ...

    def has(self, tool_id: str) -> bool:
        """Whether there is a tool with this id."""
        ...


class Pipeline:
    """Runs calls; every surface and every runtime goes through this one.

    Args:
        tools: finds a tool by any spelling that was offered.
        hooks: the enabled hook packages.
        approver: asks a person where the policy says `confirm`; without one such a call waits at the desk.
        desk: takes calls that run long or wait for a person; without one the former run here, the latter are refused.
        recorder: writes the audit's records of calls.
        sleep, random_: replaced in tests.
    """

    def __init__(
        self,
        tools: ToolIndex,
        *,
        hooks: Hooks | None = None,
        approver: Approver | None = None,
        desk: ExecutionDesk | None = None,
        recorder: CallRecorder | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
        random_: Callable[[], float] = random.random,
    ) -> None:
        self._tools = tools
        self._hooks = hooks or Hooks()
        self._permission = Permission(approver, desk)
        self._desk = desk
        self._recorder = recorder
        self._underway: dict[str, Underway] = {}
        self._sleep = sleep
        self._random = random_
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # where it runs
        self._endings = Endings(recorder)
        self._id = f"call_{secrets.token_hex(6)}"
        self._numbers = itertools.count(1)

    def belong(self) -> None:
        """Belong to the running event loop: in another, whose tasks nobody here could wake, no call is run."""
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()

    async def call(  # noqa: C901 - the straight line of a call: each coroutine more costs all of them 0.1 µs
        self,
        name: str,
        arguments: object,
        context: CallContext | None = None,
        deadline_s: float | None = None,
        *,
        caller: Caller | None = None,
        track: Track | None = None,
        approved: Approved | None = None,
    ) -> ToolResult:
        """Run one tool and return its checked result; see `Host.call`.

        `caller` is the plugin that calls through its host; `track` the execution that this call is about (a tool that
        runs long gets one of its own); `approved` what a person has said yes to.
        """
        # A thread runs one loop at a time: this is quicker by 0.1 µs than asking which.
        if self._loop is not None and not (self._thread == get_ident() and self._loop.is_running()):
            self._check_loop(self._loop)
        call = Underway(f"{self._id}_{next(self._numbers)}", name, context or LOCAL, deadline_s, track)
        self._underway[call.id] = call
        try:
            tool = call.tool = self._tools.resolve(name)
            if caller is not None or approved is not None:
                self._place(call, tool, caller, approved)
            if tool.idle_s is not None and track is None and self._desk is not None:
                return await self._desk.call(tool.id, arguments, call.context, deadline_s, caller)
            checked = call.arguments = self._checked(call, tool, arguments)
            if self._recorder is not None:
                self._recorder.started(call, is_approved=approved is not None)
            if self._hooks.any_before_call:
                await self._hooks.before_call(tool.id, copied(checked), call.context)
            decision = tool.decision if call.raised is None else call.decision
            if decision == "allow" or (decision == "confirm" and approved is not None):
                runtime = tool.provider.runtime or await self._ready(call, tool)
            else:
                runtime = await self._permitted(call, tool, checked)
            if track is not None or self._recorder is not None:
                await self._before_entry(call)
            admission = tool.provider.admission
            is_guest = call.outer is not None and call.shares_place
            if not is_guest and not admission.take():
                await self._queue(call, tool)
            try:
                while isinstance(outcome := await self._attempt(call, tool, checked, runtime), Fault):
                    await self._pause(call, tool, outcome)
            finally:
                if not is_guest:
                    admission.leave()
            if tool.returns is not None or tool.provider.redactor is not None:
                outcome = _fit_to_show(tool, outcome)
            result = self._endings.answered(call, tool, outcome, arguments)
        except CallFailedError as error:
            result = self._endings.failed(call, error, arguments)
        except asyncio.CancelledError as left:
            result = self._cancelled(call, arguments, left)
        finally:
            del self._underway[call.id]
        if self._hooks.any_after_call:
            await self._hooks.after_call(call.tool.id if call.tool else name, result, call.context)
        return result

    async def call_from(self, caller: Caller, name: str, arguments: object, *, deadline_s: float | None) -> ToolResult:
        """Run a tool for a plugin; without its plugin's name before it, one of the caller's own comes first."""
        outer = self._underway.get(caller.call_id or "")
        asked = outer.context if outer is not None else CallContext(principal=f"plugin:{caller.plugin}")
        context = replace(
            asked, surface="plugin", parent_call_id=caller.call_id, idempotency_key=None, approval_id=None
        )
        own = f"{caller.plugin}.{name}"
        name = own if self._tools.has(own) else name
        return await self.call(name, arguments, context=context, deadline_s=deadline_s, caller=caller)

    def fitted(self, name: str, arguments: object) -> tuple[str, dict[str, Any]]:
        """Return the id of the tool that a name means, and the arguments as it would run with them.

        Raises:
            CallFailedError: there is no such tool, or they do not fit.
        """
        tool = self._tools.resolve(name)
        return tool.id, self._checked(Underway("", name, LOCAL, None, None), tool, arguments)

    def _place(self, call: Underway, tool: CallableTool, caller: Caller | None, approved: Approved | None) -> None:
        """Put a call into the one that it is nested in, and hold it to what was approved."""
        if caller is not None:
            call.nest(tool, caller, self._underway)
        if approved is not None:
            call.approve(tool, approved)

    def _cancelled(self, call: Underway, arguments: object, left: asyncio.CancelledError) -> ToolResult:
        """Return the result of a call whose execution was told to end; else let the cancellation go on."""
        result = self._endings.cancelled(call, arguments)
        if call.track is None or call.track.ending is None:
            raise left
        task = asyncio.current_task()
        assert task is not None, "a coroutine is cancelled in a task"
        task.uncancel()
        return result

    async def _before_entry(self, call: Underway) -> None:
        """Tell the execution that its tool is entered, and let nothing of danger high happen without its record."""
        if call.track is not None:
            await call.track.runs(call.id)
        if self._recorder is not None and call.danger is DangerLevel.HIGH:
            await self._recorder.secured(call)

    def _check_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse a call from another loop; the own one may have moved to another thread."""
        if asyncio.get_running_loop() is not loop:
            raise _in_another_loop()
        self._thread = get_ident()

    def _attempt(
        self, call: Underway, tool: CallableTool, arguments: dict[str, Any], runtime: ToolRuntime
    ) -> Coroutine[Any, Any, Fields | Fault]:
        """Begin one attempt, within the caller's deadline."""
        limit_s = tool.limit_s if call.deadline is None else self._limit_s(call, tool)
        call.attempts += 1
        own = arguments if call.attempts > tool.definition.max_retries else copied(arguments)
        if tool.idle_s is None or call.track is None:
            return runtime.call(tool.name, own, _current(call, limit_s), limit_s, not call.has_agreed)
        watch = Watch(tool.idle_s, without_secrets_told(tool, call.track.tell))
        return runtime.call(tool.name, own, _current(call, limit_s), limit_s, not call.has_agreed, watch)

    def _checked(self, call: Underway, tool: CallableTool, arguments: object) -> dict[str, Any]:
        """Gate the arguments and fit them to the tool's schema."""
        if tool.schema is None:
            raise schema_unusable(tool)
        try:
            checked = read_arguments(arguments)
        except ArgumentsRefused as refused:
            raise arguments_do_not_fit(tool, refused.reason, [refused.message]) from refused
        if tool.schema.is_valid(checked):
            return checked
        checked, call.notes = coerce(tool.schema.enforced, checked, secret=tool.secret_arguments)
        if faults := tool.schema.faults(checked):
            raise arguments_do_not_fit(tool, "schema", [str(fault) for fault in faults])
        return checked

    async def _ready(self, call: Underway, tool: CallableTool) -> ToolRuntime:
        """Return where the tool runs; start its plugin first if it waits for a call."""
        try:
            async with asyncio.timeout(None if call.deadline is None else self._limit_s(call, tool)):
                return await tool.provider.ready()
        except TimeoutError as late:
            raise not_ready(tool) from late

    async def _permitted(self, call: Underway, tool: CallableTool, arguments: dict[str, Any]) -> ToolRuntime:
        """Ask the tool, in one of the plugin's places, then a person, and return where it runs."""
        if call.decision == "deny":
            raise not_permitted(tool, call.danger, "the policy denies calls of this danger")
        runtime = tool.provider.runtime or await self._ready(call, tool)
        is_guest = call.shares_place
        if not is_guest and not tool.provider.admission.take():
            await self._queue(call, tool)
        try:
            limit_s = self._limit_s(call, tool)
            fault = await runtime.validate(tool.name, copied(arguments), _current(call, limit_s), limit_s)
        finally:
            if not is_guest:
                tool.provider.admission.leave()
        if fault is not None:
            raise attempt_failed(tool, fault, attempt=0, of=0, acted=False, retryable=False)
        call.has_agreed = True
        await self._permission.get(call, tool, arguments)
        return runtime

    async def _queue(self, call: Underway, tool: CallableTool) -> None:
        try:
            await tool.provider.admission.wait(self._limit_s(call, tool))
        except (QueueFullError, TimeoutError) as error:
            raise queue_full(tool, waited=isinstance(error, TimeoutError)) from error

    async def _pause(self, call: Underway, tool: CallableTool, fault: Fault) -> None:
        """Wait before another attempt.

        Raises:
            CallFailedError: there must not be another, or the caller's deadline comes first.
        """
        call.acted = (call.acted or may_have_acted(fault)) and not tool.definition.read_only
        may = may_retry(fault, tool.definition, call.danger)
        most = 1 + tool.definition.max_retries
        if not may or call.attempts >= most:
            retryable = may or fault.retry == "transient"
            raise attempt_failed(
                tool,
                fault,
                attempt=call.attempts,
                of=most,
                acted=call.acted,
                retryable=retryable,
                is_late=call.is_late,
            )
        wait_s = backoff_s(call.attempts, self._random())
        if call.deadline is None or time.monotonic() + wait_s < call.deadline:
            _log.info("tool '%s': attempt %d failed (%s); again in %.1f s", tool.id, call.attempts, fault.kind, wait_s)
            await self._sleep(wait_s)
            if not call.is_late:
                return
        raise deadline_passed(tool, fault, attempt=call.attempts, acted=call.acted)

    def _limit_s(self, call: Underway, tool: CallableTool) -> float:
        if call.deadline is None:
            return tool.limit_s
        left_s = call.deadline - time.monotonic()
        if left_s <= 0:
            raise deadline_passed(tool, None, attempt=0, acted=False)
        return min(tool.limit_s, left_s)


def _in_another_loop() -> HostStateError:
    return HostStateError(
        "the host was opened in another event loop than the one that this call runs in",
        where="Host.call",
        mend="from another thread: `asyncio.run_coroutine_threadsafe(host.call(…), loop)`, with the host's loop",
    )


def _current(call: Underway, limit_s: float) -> CurrentCall:
    context = call.context
    return tuple.__new__(  # a third of the time of CurrentCall(…), on the path of every call
        CurrentCall,
        (
            call.id,
            context.surface,
            context.conversation_id,
            context.user_id,
            None if call.track is None else call.track.id,
            context.idempotency_key,
            time.monotonic() + limit_s,
        ),
    )


def _fit_to_show(tool: CallableTool, fields: Fields) -> Fields:
    """Hold the data against the tool's own `returns`, and take the plugin's secrets out."""
    if (
        tool.returns is not None
        and fields["success"]
        and "data" in fields
        and not tool.returns.is_valid(fields["data"])
    ):
        raise returns_do_not_fit(tool, tool.returns.faults(fields["data"]))
    redactor = tool.provider.redactor
    return fields if redactor is None else redact_fields(fields, redactor)
