"""When a plugin that was lost is started again, and when nobody tries any more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["MOST_RESTARTS", "WITHIN_S", "Restarts"]

MOST_RESTARTS = 3
WITHIN_S = 300.0
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0


class Restarts:
    """The restarts of one plugin: the first at once, then after 1 s doubling to 60 s; 5 quiet minutes start over.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=MOST_RESTARTS)
        self._last: float | None = None
        self._wait_s = 0.0

    @property
    def recent(self) -> int:
        """How many restarts there were within the last 5 minutes; after three nobody tries any more."""
        now = self._clock()
        return sum(now - moment < WITHIN_S for moment in self._times)

    def next_wait_s(self, *, is_own: bool = True) -> float | None:
        """Return the seconds to wait before the next start; None after three restarts within 5 minutes.

        Args:
            is_own: the plugin may be to blame; else it waits alike, but this restart is not counted.
        """
        now = self._clock()
        if is_own and len(self._times) == MOST_RESTARTS and now - self._times[0] < WITHIN_S:
            return None
        if self._last is None or now - self._last >= WITHIN_S:
            self._wait_s = 0.0
        wait_s = self._wait_s
        self._wait_s = min(LONGEST_WAIT_S, 2 * wait_s) or FIRST_WAIT_S
        self._last = now + wait_s
        if is_own:
            self._times.append(self._last)
        return wait_s

    def forget(self) -> None:
        """Start over: a person has looked at it."""
        self._times.clear()
        self._last = None
