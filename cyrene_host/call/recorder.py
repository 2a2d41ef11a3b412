"""What the pipeline needs of the audit: a record when a call begins, and one when it ends."""

from __future__ import annotations

from typing import Protocol

from cyrene_host.call.underway import Underway
from cyrene_sdk.types import ToolResult

__all__ = ["CallRecorder"]


class CallRecorder(Protocol):
    """Writes the records of calls."""

    def started(self, call: Underway, *, is_approved: bool = False) -> None:
        """Record that a call begins; its `is_recorded` tells so from then on.

        Raises:
            CallFailedError: `audit_unavailable`: it cannot be written, and the call is too dangerous to go on without.
        """
        ...

    async def secured(self, call: Underway) -> None:
        """Return when what was recorded is on the disk.

        Raises:
            CallFailedError: `audit_unavailable`.
        """
        ...

    def ended(self, call: Underway, result: ToolResult) -> None:
        """Record how it ended."""
        ...
