"""What an idempotency key was used for."""

from __future__ import annotations

from dataclasses import dataclass

from cyrene_sdk.types import ToolResult

__all__ = ["KEPT_S", "KeyUse"]

KEPT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What a key was first used for, and what came of it; `result` is None while the call runs."""

    request_sha256: str
    instance: str
    result: ToolResult | None
