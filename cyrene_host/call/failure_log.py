"""The log of calls that failed: each failure is told once, and its repeats are counted."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass

from cyrene_host.errors import CallFailedError

__all__ = ["FailureLog"]

WINDOW_S = 1.0

_log = logging.getLogger("cyrene.call")


@dataclass(slots=True)
class _Told:
    what: str
    error_id: str
    repeats: int = 0


class FailureLog:
    """Writes failed calls to the log `cyrene.call`.

    The same failure of the same tool again within a second is only counted, and has the error id under which the
    log tells it: a hundred calls that find a plugin busy are two lines.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], _Told] = {}

    def tell(self, call_id: str, tool_id: str, surface: str, error: CallFailedError) -> str:
        """Log a failure, with its traceback where it has one, and return the error id that finds it.

        Args:
            tool_id: empty where the call means no tool.
        """
        key = (tool_id, error.kind)
        earlier = self._told.get(key)
        if earlier is not None and earlier.what == error.what:
            earlier.repeats += 1
            return earlier.error_id
        told = self._told[key] = _Told(error.what, f"err_{secrets.token_hex(4)}")
        asyncio.get_running_loop().call_later(WINDOW_S, self._sum_up, key, told)
        trace = f"\n{error.trace}" if error.trace else ""
        _log.warning(
            "call '%s' of '%s' from %s ended as %s [%s]: %s%s",
            *(call_id, tool_id, surface, error.kind, told.error_id, error.what, trace),
        )
        return told.error_id

    def _sum_up(self, key: tuple[str, str], told: _Told) -> None:
        if self._told.get(key) is told:
            del self._told[key]
        if told.repeats:
            _log.warning("calls of '%s' ended as %s %d more times like [%s]", *key, told.repeats, told.error_id)
