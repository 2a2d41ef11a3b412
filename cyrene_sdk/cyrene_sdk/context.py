"""The call that plugin code is serving right now."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import NamedTuple

from cyrene_sdk.errors import NoCurrentCallError

__all__ = ["CurrentCall", "current_call"]


class CurrentCall(NamedTuple):
    """What a tool may know of the call it serves; the place of Go's `ctx`.

    `deadline` is on the clock of `time.monotonic()`, in seconds; None where nothing limits the call.
    """

    call_id: str
    surface: str = "python"
    conversation_id: str | None = None
    user_id: str | None = None
    execution_id: str | None = None
    idempotency_key: str | None = None
    deadline: float | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the deadline (never below 0); None where there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


_current: ContextVar[CurrentCall] = ContextVar("cyrene_current_call")


def current_call() -> CurrentCall:
    """Return the call that this code runs for; works in async code and in threads of a sync tool.

    Raises:
        NoCurrentCallError: no tool call is running here (for instance in `init`).
    """
    try:
        return _current.get()
    except LookupError:
        raise NoCurrentCallError(
            "current_call() was used outside a tool call",
            mend="call it inside a tool's execute, validate or execute_async",
        ) from None
