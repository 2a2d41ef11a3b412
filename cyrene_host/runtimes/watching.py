"""The host's own watch over ComplexTools in a worker: what they report, and how long they may report nothing."""

from __future__ import annotations

import asyncio

from cyrene_host.runtimes.answers import progress_told
from cyrene_host.runtimes.worker import Worker
from cyrene_sdk._worker.progress import Pace, Watch, no_progress, too_long
from cyrene_sdk._worker.wire import Message

__all__ = ["Watched"]


class Watched:
    """One attempt that is followed. The worker paces, clamps and limits too; nobody here relies on it.

    Args:
        watch: who follows it.
        limit_s: seconds that it may take in all.
        slack_s: seconds that the worker has to see to a limit itself, before it counts as hung.
        worker: where it runs.

    `number` is that of its request, once it is sent.
    """

    def __init__(self, watch: Watch, *, limit_s: float, slack_s: float, worker: Worker) -> None:
        self.number = 0
        self._idle_s = watch.idle_s
        self._limit_s = limit_s
        self._slack_s = slack_s
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._last_deadline = self._loop.time() + limit_s
        self._deadline = self._next_deadline()
        self._pace = Pace(watch.tell)

    def take(self, message: Message) -> None:
        """Take what the worker tells; what is no progress is dropped."""
        told = progress_told(message)
        if told is not None:
            self._deadline = self._next_deadline()
            self._worker.be_patient(self.number, self._deadline + self._slack_s)
            self._pace.take(*told)

    def close(self) -> None:
        """Pass on the last report, and no other."""
        self._pace.close()

    @property
    def passed(self) -> str:
        """The sentence for the limit that comes first."""
        if self._deadline < self._last_deadline:
            return no_progress(self._idle_s)
        return too_long(self._limit_s)

    def _next_deadline(self) -> float:
        return min(self._loop.time() + self._idle_s, self._last_deadline)
