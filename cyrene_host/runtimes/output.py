"""What a worker prints and logs: taken off its hands at once, told to the log up to a limit, counted beyond."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable

__all__ = ["Allowance", "Output"]

KEPT_BYTES = 262_144
KEPT_EVERY_S = 60.0
LINE_BYTES = 8_192
LAST_BYTES = 500


class Allowance:
    """How much of one plugin's words goes to the log: 256 KiB a minute; what is beyond is only counted.

    Args:
        logger: the plugin's log.
        verb: what the plugin does with the words: `printed` or `logged`.
        clock: monotonic seconds.
    """

    def __init__(self, logger: logging.Logger, verb: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._verb = verb
        self._clock = clock
        self._since = clock()
        self._used = 0
        self._is_over = False
        self.size_bytes = 0
        self.left_out_bytes = 0

    def take(self, size: int) -> int:
        """Return how many of the next `size` bytes go to the log."""
        now = self._clock()
        if now - self._since >= KEPT_EVERY_S:
            self._since, self._used, self._is_over = now, 0, False
        granted = min(size, KEPT_BYTES - self._used)
        self._used += granted
        self.size_bytes += size
        self.left_out_bytes += size - granted
        if granted < size and not self._is_over:
            self._is_over = True
            self._logger.warning("it %s more than %d bytes; the rest is only counted", self._verb, KEPT_BYTES)
        return granted

    def close(self) -> None:
        """Tell how much it was, where something was left out."""
        if self.left_out_bytes:
            self._logger.warning("it %s %d bytes in all", self._verb, self.size_bytes)


class Output(asyncio.Protocol):
    """The reading end of a worker's standard output and standard error.

    It goes to the plugin's log line by line, up to its allowance. What was printed last is kept for an error
    that needs it.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._allowance = Allowance(logger, "printed")
        self._line = b""
        self._last = b""
        self._transport: asyncio.BaseTransport | None = None

    @classmethod
    async def open(cls, descriptor: int, logger: logging.Logger) -> Output:
        """Read from a pipe until it ends or `close` is called."""
        output = cls(logger)
        pipe = os.fdopen(descriptor, "rb", buffering=0)
        await asyncio.get_running_loop().connect_read_pipe(lambda: output, pipe)
        return output

    @property
    def last(self) -> str:
        """The end of what was printed."""
        return self._last.decode("utf-8", "replace").strip()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._last = (self._last + data[-LAST_BYTES:])[-LAST_BYTES:]
        granted = self._allowance.take(len(data))
        if granted:
            self._write(data[:granted])

    def close(self) -> None:
        """Stop reading: an orphan may hold the other end open."""
        if self._line:
            self._write(b"\n")
        if self._transport is not None:
            self._transport.close()
        self._allowance.close()

    def _write(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > LINE_BYTES:
            lines.append(self._line)
            self._line = b""
        for line in filter(None, lines):
            self._logger.info("%s", line[:LINE_BYTES].decode("utf-8", "replace"))
