"""Danger: how dangerous a call counts, what the operator's policy makes of it, and who may confirm it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cyrene_sdk.types import DangerLevel

__all__ = ["ApprovalRequest", "Approver", "Decision", "effective_danger"]

Decision = Literal["allow", "confirm", "deny"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked: the tool, the full arguments that will run, who wants it and where.

    `fingerprint` is that of the tool's definition; `execution_id` names the execution that the call is about, if any.
    """

    tool_id: str
    plugin: str
    description: str
    danger: DangerLevel
    arguments: Mapping[str, Any]
    principal: str
    surface: str
    user_id: str | None = None
    conversation_id: str | None = None
    fingerprint: str = ""
    execution_id: str | None = None


Approver = Callable[[ApprovalRequest], Awaitable[bool]]
"""Asks a person; True runs the call once."""


def effective_danger(
    declared: DangerLevel | None, operator: DangerLevel | None, *, undeclared: DangerLevel, trusted: bool
) -> DangerLevel:
    """Return the level that counts.

    The operator's where the plugin is trusted in full, else the higher of the definition's (`undeclared`
    where it says none) and the operator's: an entry may raise a danger, only full trust may lower it.
    """
    if operator is not None and trusted:
        return operator
    own = declared or undeclared
    return own if operator is None or own.rank >= operator.rank else operator
