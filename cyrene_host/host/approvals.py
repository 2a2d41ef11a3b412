"""Calls that wait for a person's word, for programs and surfaces."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from cyrene_host.call.tool import CallableTool
from cyrene_host.catalog.accepted import ChangedDefinition
from cyrene_host.errors import CallFailedError, HostStateError
from cyrene_host.host.executions import Executions
from cyrene_host.host.lookout import Lookout
from cyrene_host.host.records import Records
from cyrene_host.record.approval import Approval, ApprovalState
from cyrene_host.record.execution import Execution
from cyrene_host.record.instances import StateInUseError
from cyrene_sdk.errors import ErrorKind

__all__ = ["ApprovalError", "Approvals"]


class ApprovalError(HostStateError):
    """The approval cannot be decided so: it is not there, decided, expired, or not what was asked about any more."""


class Approvals:
    """`host.approvals`: list, approve and deny.

    Args:
        records: where they are kept.
        executions: runs what is approved.
        lookout: looks for what other processes decided.
        find: the tool with an id.
        accept: keeps a tool's definition as accepted.
        changed: the tools whose definition is another than the accepted one.
        decided: told of each decision, for the audit.
    """

    def __init__(
        self,
        records: Records,
        executions: Executions,
        lookout: Lookout,
        *,
        find: Callable[[str], CallableTool],
        accept: Callable[[CallableTool, str], None],
        changed: Callable[[], Sequence[ChangedDefinition]],
        decided: Callable[[Approval, str, str], None],
    ) -> None:
        self._records = records
        self._executions = executions
        self._lookout = lookout
        self._find = find
        self._accept = accept
        self._changed = changed
        self._decided = decided
        lookout.add(self._look)

    async def list(self, *, states: Sequence[ApprovalState] = ("pending",), limit: int = 100) -> Sequence[Approval]:
        """Return the newest, newest first.

        Args:
            states: only those in one of these states.
            limit: how many at most.
        """
        if not self._records.store.exists():
            return []
        await self.expire()
        return await self._records.approvals.list(states=states, limit=limit)

    async def ids(self, *, limit: int = 10_000) -> Sequence[str]:
        """Return the ids of the newest, newest first."""
        if not self._records.store.exists():
            return []
        return await self._records.approvals.ids(limit=limit)

    async def get(self, approval_id: str) -> Approval:
        """Return one.

        Raises:
            ApprovalError: there is none of this id.
        """
        if not self._records.store.exists():
            raise _error(approval_id, "does not exist", "`cyrene approvals list` shows what waits")
        await self._records.ready()
        try:
            approval = await self._records.approvals.get(approval_id)
        except ValueError as error:
            raise _error(approval_id, f"cannot be used: {error}", "start the call again") from error
        if approval is None:
            raise _error(approval_id, "does not exist", "`cyrene approvals list` shows what waits")
        return approval

    async def approve(self, approval_id: str, *, by: str) -> Execution:
        """Say yes: the call runs once, with the arguments that were shown.

        Args:
            by: who decides.
        Returns:
            Its execution.
        Raises:
            ApprovalError: it does not exist, was decided before, has expired, or its tool is not what was asked about.
        """
        approval = await self._pending(approval_id)
        tool = await self._unchanged(approval)
        if not await self._records.approvals.approve(approval_id, at=time.time(), by=by):
            raise _decided_already(await self.get(approval_id))
        self._decided(approval, "approved", by)
        self._accept(tool, by)
        return await self._run(approval)

    async def deny(self, approval_id: str, *, by: str, reason: str = "") -> Execution:
        """Say no: the call never runs.

        Args:
            by: who decides.
            reason: told to the caller.
        Returns:
            Its execution, which has failed.
        Raises:
            ApprovalError: it does not exist, was decided before, or has expired.
        """
        approval = await self._pending(approval_id)
        if not await self._records.approvals.refuse(approval_id, "denied", at=time.time(), by=by, reason=reason):
            raise _decided_already(await self.get(approval_id))
        self._decided(approval, "denied", by)
        said = f": {reason}" if reason else ""
        return await self._executions.settle(approval.execution_id, _refusal(approval, f"a person refused it{said}"))

    def changed(self) -> Sequence[ChangedDefinition]:
        """Return the tools that nobody can call because their definition is not the accepted one."""
        return self._changed()

    def accept(self, tool_id: str, *, by: str) -> None:
        """Accept a tool's definition as it is now.

        Args:
            by: who accepts it.
        Raises:
            ApprovalError: there is no such tool.
            AcceptedError: the state directory cannot be written.
        """
        try:
            tool = self._find(tool_id)
        except CallFailedError as unknown:
            raise ApprovalError(unknown.what, where="tool id", mend=unknown.mend) from unknown
        self._accept(tool, by)

    async def _pending(self, approval_id: str) -> Approval:
        approval = await self.get(approval_id)
        if approval.state == "pending" and approval.expires_at <= time.time():
            await self.expire()
            approval = await self.get(approval_id)
        if approval.state != "pending":
            raise _decided_already(approval)
        return approval

    async def _unchanged(self, approval: Approval) -> CallableTool:
        """Return the tool; one whose definition changed since the person was asked is not run."""
        try:
            tool = self._find(approval.tool_id)
        except CallFailedError as gone:
            raise _error(approval.id, f"is about a tool that is gone: {gone.what}", "bring the plugin back") from gone
        if tool.fingerprint == approval.fingerprint:
            return tool
        why = f"the definition of '{approval.tool_id}' has changed since approval was asked for"
        if await self._records.approvals.refuse(approval.id, "denied", at=time.time(), by=None, reason=why):
            self._decided(approval, "denied", "definition changed")
            await self._executions.settle(approval.execution_id, _refusal(approval, why))
        raise _error(approval.id, f"is void: {why}", "look at the tool as it is now, and start the call again")

    async def _run(self, approval: Approval) -> Execution:
        """Run it here, unless another host is at work: that one looks for what was approved."""
        if await self._is_here() and await self._records.approvals.use(approval, at=time.time()):
            return await self._executions.resume(approval)
        return await self._executions.get(approval.execution_id)

    async def _is_here(self) -> bool:
        """Whether this host may run it: claimed before it is used up, since what is used up runs nowhere else."""
        if await self._records.resident() is not None:
            return False
        try:
            await self._records.claim()
        except StateInUseError:
            return False
        return True

    async def expire(self) -> Sequence[Approval]:
        """End those that waited too long, and return those that are still to be seen to."""
        await self._records.ready()
        now = time.time()
        still_open = await self._records.approvals.open()
        late = [found for found in still_open if _until(found) <= now]
        for approval in late:
            if await self._records.approvals.refuse(approval.id, "expired", at=now, by=None, is_void=True):
                self._decided(approval, "expired", "")
                what = "decided" if approval.state == "pending" else "ran it after it was approved"
                why = f"nobody {what} within {approval.expires_at - approval.created_at:.0f} s"
                await self._executions.settle(approval.execution_id, _refusal(approval, why))
        return [approval for approval in still_open if approval not in late]

    async def _look(self) -> bool:
        """Run what another process approved, and see to what has expired."""
        still_open = await self.expire()
        for approval in still_open:
            if approval.state == "approved" and self._records.is_resident:  # a command may end before it does
                await self._run(approval)
        return bool(still_open)


def _until(approval: Approval) -> float:
    """Until when one may be decided, or run once it is approved: a yes is not for ever either."""
    if approval.state == "pending" or approval.decided_at is None:
        return approval.expires_at
    return approval.decided_at + approval.expires_at - approval.created_at


def _refusal(approval: Approval, why: str) -> CallFailedError:
    return CallFailedError(
        ErrorKind.DENIED,
        f"the call of '{approval.tool_id}' (danger {approval.danger}) was refused: {why}",
        plugin=approval.plugin,
        where=f"approval '{approval.id}'",
        mend="ask for it again if it is still wanted",
    )


def _decided_already(approval: Approval) -> ApprovalError:
    if approval.state == "expired":
        return _error(
            approval.id, f"has expired at {_clock(approval.expires_at)}", "start the call again, and decide in time"
        )
    by = f" by '{approval.decided_by}'" if approval.decided_by else ""
    why = f" ({approval.reason})" if approval.reason else ""
    at = f" at {_clock(approval.decided_at)}" if approval.decided_at else ""
    mend = f"`cyrene executions show {approval.execution_id}` shows what became of the call"
    return _error(approval.id, f"was {approval.state}{by}{at}{why}: it is decided once", mend)


def _error(approval_id: str, what: str, mend: str) -> ApprovalError:
    return ApprovalError(f"approval '{approval_id[:80]}' {what}", where="approval id", mend=mend)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
