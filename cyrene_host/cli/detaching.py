"""`cyrene call --detach`: a call in a process of its own, which outlives the terminal, and how that tells its start."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from cyrene_host.cli.following import show_result
from cyrene_host.cli.options import Choices
from cyrene_host.cli.reading import read_settings_alone
from cyrene_host.record.execution import Execution
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import ToolResult

__all__ = ["detach", "log_of", "logging_into", "report_begun"]

LOG_BYTES = 1_048_576
KEPT_LOGS = 100
INTERRUPT_S = 5.0


def detach(choices: Choices, name: str, arguments: bytes, options: Sequence[str]) -> int:
    """Start a call in a process of its own, and return once it is kept; print its id, or why it did not begin.

    Args:
        name: the tool.
        arguments: as JSON text.
        options: further options of `cyrene call`.
    """
    log = _new_log(choices)
    given = [word for name, value in _given(choices) for word in (name, value)]
    words = [*given, "--json", "call", *options, "--background", str(log), "--args", "-", "--", name]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            # With -P no module in the folder at hand is mistaken for one of ours.
            [sys.executable, "-P", "-m", "cyrene_host.cli", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    told, code = _heard(process, arguments)
    if "execution" in told:
        if choices.as_json:
            choices.screen.json(told["execution"])
        else:
            execution_id = told["execution"]["id"]
            choices.screen.answer(execution_id)
            choices.screen.say(f"it goes on by itself: `cyrene executions show {execution_id} --follow`")
        return 0
    if "result" in told:
        log.unlink(missing_ok=True)
        return show_result(choices, ToolResult.from_json(told["result"]))
    return _failed(choices, told.get("error"), code, log)


def report_begun(choices: Choices, execution: Execution, log: Path) -> None:
    """Tell the process that started this one, in which the call runs, that it has begun; it waits no longer then."""
    with contextlib.suppress(OSError):  # its log keeps the first name
        log.rename(log.with_name(f"{execution.id}.log"))
    choices.screen.json({"execution": execution.to_dict()})
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    os.close(nowhere)


def log_of(state_dir: Path, execution_id: str) -> Path | None:
    """Return the log of an execution that ran in the background; None if it did not."""
    log = state_dir / "logs" / f"{execution_id}.log"
    return log if log.is_file() else None


@contextlib.contextmanager
def logging_into(choices: Choices) -> Iterator[None]:
    """Keep what this process says on standard error, up to 1 MiB."""
    capped = _Capped(sys.stderr)
    with choices.screen.through(capped), contextlib.redirect_stderr(capped):
        yield


class _Capped(io.TextIOBase):
    """Takes text up to a limit, and then says once that it takes no more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._left = LOG_BYTES

    def write(self, text: str) -> int:
        if self._left > 0:
            self._left -= len(text.encode("utf-8", "replace"))
            self._stream.write(text if self._left > 0 else "the log is full: no more is kept\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def _given(choices: Choices) -> Iterator[tuple[str, str]]:
    if choices.plugins is not None:
        yield "--plugins", choices.plugins
    if choices.config is not None:
        yield "--config", choices.config
    for key, value in choices.overrides.items():
        yield "--set", f"{key}={value}"


def _new_log(choices: Choices) -> Path:
    """Make an empty log for its owner alone, and remove the oldest where there are many."""
    folder = read_settings_alone(choices).state_folder() / "logs"
    log = folder / f"call-{secrets.token_hex(8)}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        old = sorted(folder.glob("*.log"), key=lambda found: found.stat().st_mtime)
        for found in old[: max(0, len(old) + 1 - KEPT_LOGS)]:
            found.unlink(missing_ok=True)
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise CyreneError(
            f"the log of a call in the background cannot be written: {(error.strerror or str(error)).lower()}",
            where=str(error.filename or folder),
            mend="make the state directory writable, or call it without --detach",
        ) from error
    return log


def _heard(process: subprocess.Popen[bytes], arguments: bytes) -> tuple[dict[str, Any], int]:
    """Hand over the arguments, and wait for the one document that the process tells: it has begun, or has not."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(arguments)
        written = process.stdout.read()
        try:
            told = json.loads(written)
        except ValueError:
            return {}, process.wait()
        return told, 0 if "execution" in told else process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(INTERRUPT_S)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


def _failed(choices: Choices, parts: dict[str, Any] | None, code: int, log: Path) -> int:
    """Tell why there is no execution."""
    if parts is not None:
        log.unlink(missing_ok=True)
        error = CyreneError(parts["what"], plugin=parts["plugin"], where=parts["where"], mend=parts["mend"])
    else:
        error = CyreneError(
            f"the process of the call ended before the call had begun: exit status {code}",
            where=str(log),
            mend="look into that log, or call it without --detach",
        )
    choices.screen.error(error)
    if choices.as_json:
        choices.screen.json({"error": {name: getattr(error, name) for name in ("what", "plugin", "where", "mend")}})
    return code or 1
