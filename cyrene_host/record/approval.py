"""A call that waits for a person's word, as it is kept and shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, NamedTuple

__all__ = ["Approval", "ApprovalState", "canonical", "digest"]

ApprovalState = Literal["pending", "approved", "denied", "expired"]


class Approval(NamedTuple):
    """One call that waits, or waited, for a person's word. Times are seconds since the epoch.

    `arguments` is the canonical JSON text of all arguments that will run; once that is decided, or has run, without
    secret ones. `arguments_sha256` is of that which will run. `fingerprint` is that of the tool's
    definition when the person was asked. `used_at`: when the call was run, which happens once.
    """

    id: str
    execution_id: str
    tool_id: str
    plugin: str
    description: str
    danger: str
    arguments: str
    fingerprint: str
    principal: str
    surface: str
    created_at: float
    expires_at: float
    user_id: str | None = None
    conversation_id: str | None = None
    state: ApprovalState = "pending"
    decided_at: float | None = None
    decided_by: str | None = None
    reason: str | None = None
    used_at: float | None = None
    arguments_sha256: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that surfaces show, arguments included: a person has to see all of them."""
        told = {name: getattr(self, name) for name in Approval._fields if name != "arguments_sha256"}
        return told | {"arguments": json.loads(self.arguments)}


def digest(arguments: str) -> str:
    """Return the SHA-256 of canonical arguments."""
    return hashlib.sha256(arguments.encode()).hexdigest()


def canonical(arguments: Any) -> str:
    """Return the one text that equal arguments have: what is shown, bound and run."""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
