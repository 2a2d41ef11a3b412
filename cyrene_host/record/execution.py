"""An execution and what happens to it, as they are kept and shown."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from cyrene_sdk.types import ToolResult

__all__ = ["ENDED", "Execution", "ExecutionEvent", "ExecutionState"]

ExecutionState = Literal["waiting", "queued", "running", "completed", "failed", "cancelled", "interrupted"]
"""`waiting` for a person; `queued` for a place; `interrupted`: its host ended before it did."""
ENDED: frozenset[ExecutionState] = frozenset({"completed", "failed", "cancelled", "interrupted"})


class Execution(NamedTuple):
    """A call that runs long or waits for a person. Times are seconds since the epoch, `progress` goes from 0.0 to 1.0.

    `tool_id` is as the caller wrote it where no tool has that name. `arguments` are complete, secrets too: who shows
    them asks first which are secret.
    """

    id: str
    tool_id: str
    plugin: str
    state: ExecutionState
    principal: str
    surface: str
    created_at: float
    arguments: Any = None
    conversation_id: str | None = None
    user_id: str | None = None
    parent_call_id: str | None = None
    call_id: str = ""
    progress: float = 0.0
    message: str = ""
    plugin_execution_id: str | None = None
    approval_id: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    result: ToolResult | None = None

    @property
    def is_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in ENDED

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that surfaces show: without the arguments, which may be secret."""
        told = {name: getattr(self, name) for name in _SHOWN}
        told["result"] = self.result.to_dict() if self.result is not None else None
        return told


class ExecutionEvent(NamedTuple):
    """One thing that happened to an execution; `seq` counts from 1 without a gap, the last has the result."""

    seq: int
    at: float
    state: ExecutionState
    progress: float = 0.0
    message: str = ""
    result: ToolResult | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.state in ENDED

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that surfaces show."""
        told = {name: getattr(self, name) for name in ("seq", "at", "state", "progress", "message")}
        return told if self.result is None else {**told, "result": self.result.to_dict()}


_SHOWN = [name for name in Execution._fields if name not in ("arguments", "result")]
