"""`cyrene` from the command line to the exit code: streams, options, errors, and an end that nothing delays."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from cyrene_host.cli.logs import logging_to
from cyrene_host.cli.options import CommandFailedError, hoisted
from cyrene_host.cli.screen import Screen
from cyrene_sdk.errors import CyreneError

__all__ = ["main", "run"]

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

COLLECT_AFTER = 100_000
"""New objects between two garbage collections: with Python's 700 they take a twentieth of a command's time."""


def main() -> NoReturn:
    """Run the command line of this process, and end it with the command's exit code.

    The process ends at once: neither a thread that a plugin left hanging nor the interpreter's own tidying up (a
    tenth of the time of `cyrene tools`) is waited for.
    """
    gc.set_threshold(COLLECT_AFTER)
    sys.stdout, sys.stderr = (stream or _nowhere() for stream in (sys.stdout, sys.stderr))
    code = run([_as_utf8(word) for word in sys.argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 fine, 1 it failed, 2 wrong use or configuration, 130 interrupted.

    Args:
        arguments: the words after `cyrene`.
    """
    for stream in (sys.stdout, sys.stderr):
        _write_utf8(stream)
    screen = Screen(sys.stdout, sys.stderr, as_json="--json" in arguments)
    try:
        code = _outcome(arguments, screen, is_debugging="--debug" in arguments)
        if code == INTERRUPTED:
            screen.say("interrupted")
    except BrokenPipeError:  # the reader of the output has gone, as `head` does
        return FAILED
    return code


def _outcome(arguments: Sequence[str], screen: Screen, *, is_debugging: bool) -> int:
    try:
        options, words = hoisted(arguments)
        with logging_to(sys.stderr, is_debugging=is_debugging):
            return _invoke([*options, *words], screen)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except CyreneError as error:
        _tell(screen, error, is_debugging=is_debugging)
        return FAILED if isinstance(error, CommandFailedError) else WRONG_USE
    except Exception as error:  # noqa: BLE001 - the outer edge: a person gets a sentence, not a traceback
        _tell(screen, _unexpected(error), is_debugging=is_debugging)
        return FAILED


def _invoke(words: list[str], screen: Screen) -> int:
    from cyrene_host.cli.usage import invoke  # so that a missing package is told like any other error

    return invoke(words, screen)


def _tell(screen: Screen, error: CyreneError, *, is_debugging: bool) -> None:
    """Tell the error that is being handled."""
    if is_debugging:
        screen.say(traceback.format_exc())
    screen.error(error)
    if screen.as_json:
        parts = {"what": error.what, "plugin": error.plugin, "where": error.where, "mend": error.mend}
        screen.json({"error": parts})


def _unexpected(error: Exception) -> CyreneError:
    if isinstance(error, ModuleNotFoundError):
        return CyreneError(
            f"a package that Cyrene needs is missing: '{error.name}'",
            where=sys.prefix,
            mend="install cyrene-host again; `cyrene doctor` shows what is there",
        )
    number = f"err_{os.urandom(4).hex()}"
    return CyreneError(
        f"Cyrene itself failed: {type(error).__name__}: {str(error)[:200]} [{number}]",
        where=_last_place(error),
        mend="run it again with --debug and report what it prints",
    )


def _last_place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename} line {frame.lineno}"


def _nowhere() -> TextIO:
    """What stands for a stream that was closed before this process began (`>&-`)."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _write_utf8(stream: TextIO) -> None:
    """Chinese is written in every locale, and what is no Unicode text does not stop a command."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _as_utf8(word: str) -> str:
    """Read a word that the locale could not decode as what it most likely is."""
    try:
        return word if word.isprintable() else os.fsencode(word).decode("utf-8")
    except UnicodeError:
        return word
