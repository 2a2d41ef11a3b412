"""What a worker prints: taken off its hands at once, kept up to a limit, told to the log."""

from __future__ import annotations

import asyncio
import logging
import os

__all__ = ["Output"]

KEPT_BYTES = 262_144
LINE_BYTES = 8_192
LAST_BYTES = 500


class Output(asyncio.Protocol):
    """The reading end of a worker's standard output and standard error.

    The first 256 KiB go to the plugin's log line by line; the rest is counted. What was printed last is kept
    for an error that needs it.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._line = b""
        self._last = b""
        self._transport: asyncio.BaseTransport | None = None
        self.size_bytes = 0

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
        room = KEPT_BYTES - self.size_bytes
        self.size_bytes += len(data)
        if room > 0:
            self._write(data[:room])
        if room > 0 >= room - len(data):
            self._logger.warning("it printed more than %d bytes; the rest is only counted", KEPT_BYTES)

    def close(self) -> None:
        """Stop reading: an orphan may hold the other end open."""
        if self._line:
            self._write(b"\n")
        if self._transport is not None:
            self._transport.close()
        if self.size_bytes > KEPT_BYTES:
            self._logger.warning("it printed %d bytes in all", self.size_bytes)

    def _write(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > LINE_BYTES:
            lines.append(self._line)
            self._line = b""
        for line in lines:
            self._logger.info("%s", line[:LINE_BYTES].decode("utf-8", "replace"))
