"""Who asks for a call, and from where."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cyrene_host.errors import HostStateError

__all__ = ["CallContext", "Caller", "Surface"]

MOST_PRINCIPAL_CHARS = 256

Surface = Literal["python", "cli", "http", "mcp", "openai", "chat", "plugin"]


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who asks for a call, and from where; it travels with the call into the plugin's `current_call()`.

    Args:
        surface: the door the call came in by.
        principal: who is asking, at most 256 characters; approvals and executions belong to a principal.
        idempotency_key: makes a repeated request the same call, for 24 h; the second gets the first's result. A
            caller who leaves does not end the call: it is there to be asked for again.
        approval_id: the approval that this very call waited for: it gets the result of the one run that came of it.
    Raises:
        HostStateError: the principal is too long.
    """

    surface: Surface = "python"
    principal: str = "local"
    conversation_id: str | None = None
    user_id: str | None = None
    parent_call_id: str | None = None
    idempotency_key: str | None = None
    approval_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a principal that no database could find again: it is part of keys."""
        if len(self.principal) > MOST_PRINCIPAL_CHARS:
            raise HostStateError(
                f"the principal has {len(self.principal)} characters, and may have {MOST_PRINCIPAL_CHARS}",
                where="CallContext.principal",
                mend="give an account's id",
            )


class Caller(NamedTuple):
    """A plugin that calls a tool through its host.

    Args:
        plugin: its entry name.
        may_call: entry names: its own, and those of the plugins that it declares as dependencies.
        call_id: the call that its code is serving; None outside one.
    """

    plugin: str
    may_call: Collection[str]
    call_id: str | None
