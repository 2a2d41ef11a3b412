"""When a failed attempt is followed by another, and after which wait."""

from __future__ import annotations

from cyrene_sdk._worker.faults import Fault
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import DangerLevel, ToolDefinition

__all__ = ["backoff_s", "may_have_acted", "may_retry"]

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 5.0


_BEFORE_ACTING = frozenset({ErrorKind.INVALID_ARGUMENTS, ErrorKind.OVERLOADED, ErrorKind.UNKNOWN_TOOL})


def may_have_acted(fault: Fault) -> bool:
    """Return whether the attempt may have changed something in the world before it failed."""
    return fault.retry != "transient" and fault.kind not in _BEFORE_ACTING


def may_retry(fault: Fault, definition: ToolDefinition, danger: DangerLevel) -> bool:
    """Return whether another attempt is safe, as far as the definition tells.

    After `Transient` always; after an unplanned exception unless the tool says `idempotent: false`; after a
    timeout or a lost worker only if it is read-only or idempotent; of a tool with danger high only if it is
    idempotent. Never after a fault of the arguments or a final one.
    """
    if fault.retry == "never" or (danger is DangerLevel.HIGH and definition.idempotent is not True):
        return False
    if fault.retry == "transient":
        return True
    if fault.retry == "unplanned":
        return definition.idempotent is not False
    return definition.read_only or definition.idempotent is True


def backoff_s(failed_attempts: int, jitter: float) -> float:
    """Return the seconds to wait after the given number of failed attempts: 0.1 doubling to 5.

    Args:
        jitter: a random number of [0, 1); it takes away up to half of the wait, so that callers spread.
    """
    wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (failed_attempts - 1))
    return wait * (1.0 - jitter / 2.0)
