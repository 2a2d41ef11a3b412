"""One call on its way, and the calls that it is nested in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cyrene_host.errors import CallFailedError
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import DangerLevel

if TYPE_CHECKING:
    from cyrene_host.call.context import CallContext, Caller
    from cyrene_host.call.execution import Approved, Track
    from cyrene_host.call.policy import Decision
    from cyrene_host.call.tool import CallableTool

__all__ = ["Underway"]

MOST_LEVELS = 4
"""A call, one inside it, one inside that, and one more."""


class Underway:
    """One call on its way.

    `name` is as the caller wrote it; `tool` is None until that is resolved, `arguments` until they are checked.
    `outer` is the call that it is nested in; `raised` the danger of that one, or the one that a person was told, where
    it is higher than the tool's own.
    `has_agreed` tells that the tool's own `validate` was asked before a person was.
    """

    # Of the class, not set in each call: what few calls ever change.
    tool: CallableTool | None = None
    arguments: dict[str, Any] | None = None
    attempts = 0
    acted = False
    has_agreed = False
    is_recorded = False
    outer: Underway | None = None
    raised: DangerLevel | None = None

    def __init__(
        self, id_: str, name: str, context: CallContext, deadline_s: float | None, track: Track | None
    ) -> None:
        self.id = id_
        self.name = name
        self.context = context
        self.track = track
        self.started = time.monotonic()
        self.deadline = None if deadline_s is None else self.started + deadline_s
        self.notes: list[str] = []

    @property
    def danger(self) -> DangerLevel:
        """How dangerous it counts: as the most dangerous of those that it is nested in."""
        return self.raised or self._tool.danger

    @property
    def decision(self) -> Decision:
        """What the operator says to that."""
        return self._tool.decision if self.raised is None else self._tool.policy[self.raised]

    @property
    def is_late(self) -> bool:
        """Whether the caller's deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def duration_ms(self) -> int:
        """Milliseconds since it began."""
        return int((time.monotonic() - self.started) * 1000)

    @property
    def shares_place(self) -> bool:
        """Whether a call that it is nested in holds a place in the same plugin, which then serves both."""
        return any(outer.tool is not None and outer.tool.provider is self._tool.provider for outer in self._around())

    def nest(self, tool: CallableTool, caller: Caller, underway: Mapping[str, Underway]) -> None:
        """Take the place inside the call that the caller's code is serving, and count as dangerous as that one.

        Raises:
            CallFailedError: `denied`: the plugin may not call this tool, or the calls are nested too deep.
        """
        self.outer = underway.get(caller.call_id) if caller.call_id is not None else None
        if self.outer is not None and self.outer.danger.rank > tool.danger.rank:
            self.raised = self.outer.danger
        chain = " → ".join(reversed([outer.tool.id for outer in self._around() if outer.tool is not None]))
        where = f"call_tool, in {chain}" if chain else f"call_tool, in plugin '{caller.plugin}'"
        if tool.provider.name not in caller.may_call:
            raise CallFailedError(
                ErrorKind.DENIED,
                f"plugin '{caller.plugin}' may not call '{tool.id}': it does not declare '{tool.provider.name}'",
                plugin=caller.plugin,
                where=where,
                mend=f"its author has to name '{tool.provider.name}' in the dependencies of its metadata",
            )
        levels = 1 + sum(1 for _ in self._around())
        if levels > MOST_LEVELS:
            raise CallFailedError(
                ErrorKind.DENIED,
                f"'{tool.id}' would be the call at depth {levels}: at most {MOST_LEVELS} are nested",
                plugin=caller.plugin,
                where=where,
                mend="its author has to see that tools do not call each other in a circle",
            )

    def approve(self, tool: CallableTool, approved: Approved) -> None:
        """Count as dangerous as the person was told who has said yes.

        Raises:
            CallFailedError: `denied`: the tool is not what that person saw.
        """
        if tool.fingerprint != approved.fingerprint:
            raise CallFailedError(
                ErrorKind.DENIED,
                f"the definition of '{tool.id}' has changed since its call was approved",
                plugin=tool.provider.name,
                where=f"tool '{tool.id}'",
                mend="look at the tool as it is now, and start the call again",
            )
        if approved.danger.rank > self.danger.rank:
            self.raised = approved.danger

    def _around(self) -> Iterator[Underway]:
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.outer

    @property
    def _tool(self) -> CallableTool:
        assert self.tool is not None, "the name is resolved first"
        return self.tool
