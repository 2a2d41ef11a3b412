"""What the pipeline needs of executions: calls that run long, or wait for a person."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from cyrene_host.call.context import CallContext, Caller
from cyrene_host.call.policy import ApprovalRequest
from cyrene_sdk.types import DangerLevel, ToolResult

__all__ = ["Approved", "ExecutionDesk", "Held", "Track"]


class Approved(NamedTuple):
    """What a person said yes to: the definition of a tool, and how dangerous the call counted."""

    fingerprint: str
    danger: DangerLevel


class Held(NamedTuple):
    """A call that waits for a person; `expires_at` in seconds since the epoch."""

    execution_id: str
    approval_id: str
    expires_at: float


class Track(Protocol):
    """One execution, as the call that it is about follows it."""

    id: str
    ending: Literal["cancelled", "interrupted"] | None
    """Why its task is cancelled: somebody asked for it, or the host stops."""

    def tell(self, report: Any) -> None:
        """Take a report of progress."""
        ...

    async def waits(self) -> None:
        """A person is asked now."""
        ...

    async def runs(self, call_id: str) -> None:
        """The tool's code is entered now."""
        ...


class ExecutionDesk(Protocol):
    """Takes what does not end within one call."""

    async def call(
        self,
        tool_id: str,
        arguments: object,
        context: CallContext,
        deadline_s: float | None,
        caller: Caller | None,
    ) -> ToolResult:
        """Run a tool that runs long as an execution of its own, which a caller who leaves does not end."""
        ...

    async def hold(self, request: ApprovalRequest, context: CallContext, track: Track | None) -> Held:
        """Keep a call until a person has decided.

        Raises:
            CyreneError: it cannot be kept.
        """
        ...
