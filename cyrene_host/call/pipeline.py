"""The straight line of a call: resolve, gate, validate, ask, attempt, check the result."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from cyrene_host.call.admission import QueueFullError
from cyrene_host.call.attempts import backoff_s, may_have_acted, may_retry
from cyrene_host.call.coerce import coerce
from cyrene_host.call.context import CallContext
from cyrene_host.call.failure_log import FailureLog
from cyrene_host.call.failures import (
    arguments_do_not_fit,
    attempt_failed,
    closed_without_approver,
    deadline_passed,
    hide,
    not_permitted,
    not_ready,
    queue_full,
    redact_error,
    redact_fields,
    returned_failure,
    returns_do_not_fit,
    schema_unusable,
)
from cyrene_host.call.gate import ArgumentsRefused, read_arguments
from cyrene_host.call.hooks import Hooks
from cyrene_host.call.policy import ApprovalRequest, Approver
from cyrene_host.call.results import as_failure, failed, finished
from cyrene_host.call.tool import CallableTool, ToolRuntime
from cyrene_host.errors import CallFailedError, HostStateError
from cyrene_sdk._worker.faults import Fault, sentence_of, trace_of
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk.context import CurrentCall
from cyrene_sdk.types import ToolResult

__all__ = ["Pipeline", "ToolIndex"]

LOCAL = CallContext()
_NESTED = (dict, list)

_log = logging.getLogger("cyrene.call")


class ToolIndex(Protocol):
    """Finds the tool that a spelling means."""

    def resolve(self, name: str) -> CallableTool:
        """Return the tool.

        Raises:
            CallFailedError: `unknown_tool`, or `plugin_unavailable` where the entry's tools are not known.
        """
        ...


class _Call:
    """One call on its way."""

    __slots__ = ("acted", "attempts", "context", "deadline", "id", "notes", "started")

    def __init__(self, id_: str, context: CallContext, deadline_s: float | None) -> None:
        self.id = id_
        self.context = context
        self.started = time.monotonic()
        self.deadline = None if deadline_s is None else self.started + deadline_s
        self.attempts = 0
        self.acted = False
        self.notes: list[str] = []

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def duration_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)


class Pipeline:
    """Runs calls; every surface and every runtime goes through this one.

    Args:
        tools: finds a tool by any spelling that was offered.
        hooks: the enabled hook packages.
        approver: asks a person where the policy says `confirm`; without one such a call is refused.
        sleep, random_: replaced in tests.
    """

    def __init__(
        self,
        tools: ToolIndex,
        *,
        hooks: Hooks | None = None,
        approver: Approver | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
        random_: Callable[[], float] = random.random,
    ) -> None:
        self._tools = tools
        self._hooks = hooks or Hooks()
        self._approver = approver
        self._sleep = sleep
        self._random = random_
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # where it runs
        self._failures = FailureLog()
        self._id = f"call_{secrets.token_hex(6)}"
        self._numbers = itertools.count(1)

    def belong(self) -> None:
        """Belong to the running event loop: in another, whose tasks nobody here could wake, no call is run."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    async def call(
        self, name: str, arguments: object, context: CallContext | None = None, deadline_s: float | None = None
    ) -> ToolResult:
        """Run one tool and return its checked result; see `Host.call`."""
        # A thread runs one loop at a time: this is quicker by 0.1 µs than asking which.
        if self._loop is not None and not (self._thread == threading.get_ident() and self._loop.is_running()):
            self._check_loop(self._loop)
        call = _Call(f"{self._id}_{next(self._numbers)}", context or LOCAL, deadline_s)
        tool: CallableTool | None = None
        checked: dict[str, Any] = {}
        try:
            tool = self._tools.resolve(name)
            checked = self._checked(call, tool, arguments)
            if self._hooks.any_before_call:
                await self._hooks.before_call(tool.id, _copied(checked), call.context)
            if tool.decision == "allow":
                runtime = tool.provider.runtime or await self._ready(call, tool)
            else:
                runtime = await self._permitted(call, tool, checked)
            admission = tool.provider.admission
            if not admission.take():
                await self._queue(call, tool)
            try:
                while isinstance(outcome := await self._attempt(call, tool, checked, runtime), Fault):
                    await self._pause(call, tool, outcome)
            finally:
                admission.leave()
            fields = _fit_to_show(tool, outcome)
            if not fields["success"]:
                error_id = self._tell(call, returned_failure(tool, fields), tool, (arguments, checked))
                fields = as_failure(fields, tool.name, error_id, is_read_only=tool.definition.read_only)
            result = finished(
                fields, tool.name, tool.provider.name, call.id, call.attempts, call.duration_ms(), call.notes
            )
        except CallFailedError as error:
            result = self._failed(call, error, tool, name, (arguments, checked))
        if self._hooks.any_after_call:
            await self._hooks.after_call(tool.id if tool else name, result, call.context)
        return result

    def _check_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse a call from another loop; the own one may have moved to another thread."""
        if asyncio.get_running_loop() is not loop:
            raise _in_another_loop()
        self._thread = threading.get_ident()

    def _attempt(
        self, call: _Call, tool: CallableTool, arguments: dict[str, Any], runtime: ToolRuntime
    ) -> Coroutine[Any, Any, Fields | Fault]:
        """Begin one attempt, within the caller's deadline."""
        limit_s = tool.limit_s if call.deadline is None else self._limit_s(call, tool)
        call.attempts += 1
        own = arguments if call.attempts > tool.definition.max_retries else _copied(arguments)
        # Where a person was asked, the tool has agreed before.
        return runtime.call(tool.name, own, _current(call, limit_s), limit_s, tool.decision == "allow")

    def _checked(self, call: _Call, tool: CallableTool, arguments: object) -> dict[str, Any]:
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

    async def _ready(self, call: _Call, tool: CallableTool) -> ToolRuntime:
        """Return where the tool runs; start its plugin first if it waits for a call."""
        try:
            async with asyncio.timeout(None if call.deadline is None else self._limit_s(call, tool)):
                return await tool.provider.ready()
        except TimeoutError as late:
            raise not_ready(tool) from late

    async def _permitted(self, call: _Call, tool: CallableTool, arguments: dict[str, Any]) -> ToolRuntime:
        """Ask the tool, then a person, and return where it runs; the time a person takes counts against no limit."""
        if tool.decision == "deny":
            raise not_permitted(tool, "the policy denies calls of this danger")
        runtime = tool.provider.runtime or await self._ready(call, tool)
        await self._agreed(call, tool, arguments, runtime)
        if self._approver is None:
            raise closed_without_approver(tool)
        asked = time.monotonic()
        await self._ask(self._approver, call, tool, arguments)
        if call.deadline is not None:
            call.deadline += time.monotonic() - asked
        return runtime

    async def _agreed(self, call: _Call, tool: CallableTool, arguments: dict[str, Any], runtime: ToolRuntime) -> None:
        """Run the tool's own `validate` alone, in one of the plugin's places."""
        admission = tool.provider.admission
        if not admission.take():
            await self._queue(call, tool)
        try:
            limit_s = self._limit_s(call, tool)
            fault = await runtime.validate(tool.name, _copied(arguments), _current(call, limit_s), limit_s)
        finally:
            admission.leave()
        if fault is not None:
            raise attempt_failed(tool, fault, attempt=0, of=0, acted=False, retryable=False)

    async def _ask(self, approver: Approver, call: _Call, tool: CallableTool, arguments: dict[str, Any]) -> None:
        request = ApprovalRequest(
            tool_id=tool.id,
            plugin=tool.provider.name,
            description=tool.definition.description,
            danger=tool.danger,
            arguments=_copied(arguments),
            principal=call.context.principal,
            surface=call.context.surface,
            user_id=call.context.user_id,
            conversation_id=call.context.conversation_id,
        )
        try:
            is_approved = await approver(request)
        except Exception as error:  # a surface's own code: a question that failed is no yes
            why = f"a person could not be asked: {sentence_of(error)}"
            raise not_permitted(tool, why, trace=trace_of(error)) from error
        if is_approved is not True:
            raise not_permitted(tool, "the person who was asked refused the call")

    async def _queue(self, call: _Call, tool: CallableTool) -> None:
        try:
            await tool.provider.admission.wait(self._limit_s(call, tool))
        except (QueueFullError, TimeoutError) as error:
            raise queue_full(tool, waited=isinstance(error, TimeoutError)) from error

    async def _pause(self, call: _Call, tool: CallableTool, fault: Fault) -> None:
        """Wait before another attempt.

        Raises:
            CallFailedError: there must not be another, or the caller's deadline comes first.
        """
        call.acted = (call.acted or may_have_acted(fault)) and not tool.definition.read_only
        may = may_retry(fault, tool.definition, tool.danger)
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

    def _limit_s(self, call: _Call, tool: CallableTool) -> float:
        if call.deadline is None:
            return tool.limit_s
        left_s = call.deadline - time.monotonic()
        if left_s <= 0:
            raise deadline_passed(tool, None, attempt=0, acted=False)
        return min(tool.limit_s, left_s)

    def _tell(self, call: _Call, error: CallFailedError, tool: CallableTool | None, given: tuple[object, ...]) -> str:
        """Log a failure without the plugin's secrets and the call's secret arguments; return its error id."""
        if tool is not None and tool.provider.redactor is not None:
            redact_error(error, tool.provider.redactor)
        shown = hide(error, tool.secret_arguments, given) if tool is not None and tool.secret_arguments else error
        return self._failures.tell(call.id, tool.id if tool else "", call.context.surface, shown)

    def _failed(
        self, call: _Call, error: CallFailedError, tool: CallableTool | None, name: str, given: tuple[object, ...]
    ) -> ToolResult:
        error_id = self._tell(call, error, tool, given)
        return failed(
            error,
            tool_name=tool.name if tool else name[:80].encode("utf-8", "replace").decode(),
            plugin=tool.provider.name if tool else error.plugin or "",
            call_id=call.id,
            error_id=error_id,
            attempts=call.attempts,
            duration_ms=call.duration_ms(),
            notes=call.notes,
        )


def _in_another_loop() -> HostStateError:
    return HostStateError(
        "the host was opened in another event loop than the one that this call runs in",
        where="Host.call",
        mend="from another thread: `asyncio.run_coroutine_threadsafe(host.call(…), loop)`, with the host's loop",
    )


def _copied(value: Any) -> Any:
    """A copy of plain JSON that foreign code may change; copy.deepcopy takes five times as long."""
    copy = value.copy()
    for key, part in copy.items() if type(copy) is dict else enumerate(copy):
        if type(part) in _NESTED:
            copy[key] = _copied(part)
    return copy


def _current(call: _Call, limit_s: float) -> CurrentCall:
    context = call.context
    return tuple.__new__(  # a third of the time of CurrentCall(…), on the path of every call
        CurrentCall,
        (
            call.id,
            context.surface,
            context.conversation_id,
            context.user_id,
            None,
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
