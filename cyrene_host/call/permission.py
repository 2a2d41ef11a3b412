"""A person's word on a call: asked for where somebody can be asked, else waited for."""

from __future__ import annotations

import time
from typing import Any

from cyrene_host.call.copies import copied
from cyrene_host.call.execution import ExecutionDesk
from cyrene_host.call.failures import closed_without_approver, held, not_permitted
from cyrene_host.call.policy import ApprovalRequest, Approver
from cyrene_host.call.tool import CallableTool
from cyrene_host.call.underway import Underway
from cyrene_sdk._worker.faults import sentence_of, trace_of
from cyrene_sdk.errors import CyreneError

__all__ = ["Permission"]


class Permission:
    """Gets a person's word.

    Args:
        approver: asks a person here and now; None where nobody is at hand.
        desk: keeps the call until somebody decides, where there is no approver.
    """

    def __init__(self, approver: Approver | None, desk: ExecutionDesk | None) -> None:
        self._approver = approver
        self._desk = desk

    async def get(self, call: Underway, tool: CallableTool, arguments: dict[str, Any]) -> None:
        """Return when a person has said yes; the time that it takes counts against no limit.

        Raises:
            CallFailedError: `denied`; or `approval_required`, with the ids under which the call waits.
        """
        request = _request(call, tool, arguments)
        if self._approver is None:
            raise await self._held(call, tool, request)
        asked = time.monotonic()
        if call.track is not None:
            await call.track.waits()
        try:
            is_approved = await self._approver(request)
        except Exception as error:  # a surface's own code: a question that failed is no yes
            why = f"a person could not be asked: {sentence_of(error)}"
            raise not_permitted(tool, call.danger, why, trace=trace_of(error)) from error
        if is_approved is not True:
            raise not_permitted(tool, call.danger, "the person who was asked refused the call")
        if call.deadline is not None:
            call.deadline += time.monotonic() - asked

    async def _held(self, call: Underway, tool: CallableTool, request: ApprovalRequest) -> CyreneError:
        if self._desk is None:
            return closed_without_approver(tool, call.danger)
        try:
            at = await self._desk.hold(request, call.context, call.track)
            return held(tool.name, tool.provider.name, call.danger, at)
        except CyreneError as error:
            return closed_without_approver(tool, call.danger, why=error.what)


def _request(call: Underway, tool: CallableTool, arguments: dict[str, Any]) -> ApprovalRequest:
    context = call.context
    return ApprovalRequest(
        tool_id=tool.id,
        plugin=tool.provider.name,
        description=tool.definition.description,
        danger=call.danger,
        arguments=copied(arguments),
        principal=context.principal,
        surface=context.surface,
        user_id=context.user_id,
        conversation_id=context.conversation_id,
        fingerprint=tool.fingerprint,
        execution_id=call.track.id if call.track is not None else None,
    )
