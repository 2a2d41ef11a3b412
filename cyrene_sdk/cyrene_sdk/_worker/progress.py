"""What leaves a running ComplexTool before its outcome: checked, clamped, in order, and not too often."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Pace", "Progress", "Watch", "no_progress", "too_long"]

EVERY_S = 0.1
"""At most so often a report leaves: a person sees no more, and a flood costs nobody anything."""
MESSAGE_CHARS = 1_000
ID_CHARS = 200


class Progress(NamedTuple):
    """One report of a ComplexTool as plain data.

    `execution_id` is the plugin's own, empty where it gave none; `progress` is within 0 and 1 and never falls in one
    attempt; `message` has at most 1,000 characters; `status` is what the plugin says, and the outcome decides.
    """

    execution_id: str
    progress: float
    message: str
    status: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Whoever follows one attempt of a ComplexTool.

    Args:
        idle_s: seconds that may pass without a report.
        tell: called on the event loop with each report, in order, the last one before the outcome; must not raise.
    """

    idle_s: float
    tell: Callable[[Progress], None]


class Pace:
    """Passes reports on: the first at once, then the newest at most ten times a second, the last one always.

    Args:
        tell: takes what is passed on; None where nobody listens.
    """

    def __init__(self, tell: Callable[[Progress], None] | None) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._progress = 0.0
        self._newest: Progress | None = None
        self._timer: asyncio.TimerHandle | None = None

    def take(self, execution_id: object, progress: object, message: object, status: object) -> None:
        """Take one report of code that nobody vouches for; what is no number keeps the progress as it is."""
        if self._tell is None:
            return
        self._progress = max(self._progress, min(_finite(progress), 1.0))
        texts = _text(execution_id, ID_CHARS), _text(message, MESSAGE_CHARS), _text(status, ID_CHARS)
        self._newest = Progress(texts[0], self._progress, *texts[1:])
        if self._timer is None:
            self._pass_on()

    def close(self) -> None:
        """Pass on the last report, if it still waits, and none any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._newest is not None and self._tell is not None:
            self._tell(self._newest)
        self._newest = self._tell = None

    def _pass_on(self) -> None:
        self._timer = None
        newest, self._newest = self._newest, None
        if newest is not None and self._tell is not None:
            self._timer = self._loop.call_later(EVERY_S, self._pass_on)
            self._tell(newest)


def no_progress(idle_s: float) -> str:
    """The sentence for an attempt that reported nothing for too long."""
    return f"no progress for {idle_s:.3g} s (limits.idle_s)"


def too_long(limit_s: float) -> str:
    """The sentence for an attempt that ran for too long, whatever it reported."""
    return f"it ran longer than {limit_s:.3g} s (its timeout_ms, else limits.max_duration_s)"


def _finite(value: Any) -> float:
    """A number as it is; anything else as 0, which changes no progress."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if math.isfinite(number) else 0.0


def _text(value: object, chars: int) -> str:
    if not isinstance(value, str):
        return ""
    return str.__str__(value)[:chars].encode("utf-8", "replace").decode()
