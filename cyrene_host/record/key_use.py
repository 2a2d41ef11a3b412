"""What an idempotency key was used for."""

from __future__ import annotations

from typing import NamedTuple

from cyrene_sdk.types import ToolResult

__all__ = ["KEPT_S", "KeyUse"]

KEPT_S = 24 * 3600.0


class KeyUse(NamedTuple):
    """What a key was first used for, and what came of it.

    `execution_id` is set where an execution was started under it, which has the result. `result` is None while a call
    runs.
    """

    request_sha256: str
    instance: str
    result: ToolResult | None
    execution_id: str | None = None
