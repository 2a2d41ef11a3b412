"""The log of a command: on stderr, without what the command says itself."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from cyrene_host.cli.safe_text import cleaned

__all__ = ["logging_to", "plugin_log_shown"]

PLUGIN_LOGS = "cyrene.plugin"

TOLD_BY_COMMANDS = ("cyrene.call", "cyrene.plugins")
"""Loggers of failures that a command prints in four parts."""


@contextmanager
def logging_to(stream: TextIO, *, is_debugging: bool) -> Iterator[None]:
    """Write the log of this process to `stream`, or to what stands for it: warnings, or everything for debugging."""
    handler = _Handler(stream)
    handler.setFormatter(_SafeFormatter("%(levelname)s %(name)s: %(message)s"))
    if not is_debugging:
        handler.addFilter(lambda record: record.name not in TOLD_BY_COMMANDS)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if is_debugging else logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@contextmanager
def plugin_log_shown() -> Iterator[None]:
    """Show what plugins print and log, as long as this lasts."""
    logger = logging.getLogger(PLUGIN_LOGS)
    level = logger.level
    logger.setLevel(min(logging.INFO, logger.getEffectiveLevel()))
    try:
        yield
    finally:
        logger.setLevel(level)


class _Handler(logging.StreamHandler[TextIO]):
    """Follows standard error: while a bar is drawn there, the log goes above it."""

    def emit(self, record: logging.LogRecord) -> None:
        if self.stream is not sys.stderr:
            self.setStream(sys.stderr)
        super().emit(record)


class _SafeFormatter(logging.Formatter):
    """Plugins may log anything."""

    def format(self, record: logging.LogRecord) -> str:
        return cleaned(super().format(record))
