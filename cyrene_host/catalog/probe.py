"""Ask a throw-away interpreter for a plugin's manifest, so that the host itself imports nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from cyrene_host.catalog.sources import Source
from cyrene_sdk.errors import CyreneError

__all__ = ["ProbeError", "interpreter_of", "probe", "without_sdk"]

ANSWER_BYTES = 4 * 1024 * 1024
GRACE_S = 2.0
TOLD_CHARS = 500
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV")


class ProbeError(CyreneError):
    """A plugin could not be described; `stage` says how far it came, `trace` is for the log."""

    def __init__(
        self,
        what: str,
        *,
        plugin: str,
        where: str | None = None,
        mend: str | None = None,
        stage: str = "load",
        trace: str = "",
    ) -> None:
        super().__init__(what, plugin=plugin, where=where, mend=mend)
        self.stage = stage
        self.trace = trace


def interpreter_of(python: Path | None) -> Path:
    """Return the interpreter that a plugin runs on: its virtual environment's, or the host's own."""
    if python is None:
        return Path(sys.executable)
    if python.is_dir():
        return python / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return python


def without_sdk(interpreter: Path, printed: str) -> tuple[str, str] | None:
    """Return what is wrong and how to mend it, where an interpreter ended because it has no cyrene-sdk; else None.

    Args:
        printed: the last that it printed.
    """
    if "No module named 'cyrene_sdk" not in printed:
        return None
    return f"its interpreter '{interpreter}' has no cyrene-sdk", f"`{interpreter} -m pip install cyrene-sdk`"


def probe(plugin: str, source: Source, limit_s: float) -> dict[str, Any]:
    """Import the plugin once in an interpreter of its own and return its manifest as a JSON object.

    `init` and `start` never run. The interpreter and all that it started are gone when this returns.

    Raises:
        ProbeError: the plugin fails to import, is no plugin, takes too long, or its interpreter ends.
    """
    request = {
        "module": source.module,
        "attribute": source.attribute,
        "folder": str(source.folder) if source.folder else None,
        "limit_s": limit_s,
        "sys_path": [entry for entry in sys.path if entry] if source.python is None else [],
    }
    with tempfile.TemporaryFile() as printed:
        answer = _ask(plugin, source, json.dumps(request).encode(), limit_s, printed)
        if answer is None or not answer.strip():
            raise _silent(plugin, source, limit_s, printed, timed_out=answer is None)
    try:
        told = json.loads(answer)
        manifest, error = told.get("manifest"), told.get("error")
    except (ValueError, AttributeError, RecursionError) as cause:
        raise _garbled(plugin, source, len(answer)) from cause
    if isinstance(manifest, dict):
        return manifest
    if not isinstance(error, dict):
        raise _garbled(plugin, source, len(answer))
    raise ProbeError(
        str(error.get("what")),
        plugin=plugin,
        where=error.get("where") or source.where,
        mend=error.get("mend"),
        stage=str(error.get("stage")),
        trace=str(error.get("trace")),
    )


def _ask(plugin: str, source: Source, request: bytes, limit_s: float, printed: IO[bytes]) -> bytes | None:
    """Return what the interpreter answers; None where it did not within the limit."""
    reading, writing = os.pipe()
    argv = [str(interpreter_of(source.python)), "-I", "-m", "cyrene_sdk._worker", "describe", "--fd", str(writing)]
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            pass_fds=(writing,),
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        os.close(reading)
        raise ProbeError(
            f"its interpreter '{argv[0]}' cannot be started: {error}",
            plugin=plugin,
            where=source.where,
            mend="correct 'python' in the entry: an interpreter or a virtual environment with cyrene-sdk",
        ) from error
    finally:
        os.close(writing)
    try:
        assert child.stdin is not None
        with suppress(BrokenPipeError), child.stdin:
            child.stdin.write(request)
        return _read(reading, time.monotonic() + limit_s + GRACE_S)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _read(descriptor: int, deadline: float) -> bytes | None:
    """Read one line: what the plugin's code forked may hold the pipe open for ever."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    parts: list[bytes] = []
    size = 0
    while size <= ANSWER_BYTES:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        part = os.read(descriptor, 65536)
        parts.append(part)
        size += len(part)
        if not part or part.endswith(b"\n"):
            break
    return b"".join(parts)


def _garbled(plugin: str, source: Source, size: int) -> ProbeError:
    too_large = f"its manifest has more than {ANSWER_BYTES:,} bytes"
    return ProbeError(
        too_large if size > ANSWER_BYTES else "its interpreter answered no manifest",
        plugin=plugin,
        where=source.where,
        mend="shorten its definitions" if size > ANSWER_BYTES else "use the same cyrene-sdk there as the host has",
    )


def _silent(plugin: str, source: Source, limit_s: float, printed: IO[bytes], *, timed_out: bool) -> ProbeError:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - TOLD_CHARS))
    last = printed.read(TOLD_CHARS).decode("utf-8", "replace").strip()
    missing = without_sdk(interpreter_of(source.python), last)
    if missing is not None:
        return ProbeError(missing[0], plugin=plugin, where=source.where, mend=missing[1], trace=last)
    what = (
        f"'load' did not end within its limit of {limit_s:g} s"
        if timed_out
        else "its interpreter ended while loading it"
    )
    return ProbeError(
        what + (f"; it printed last: {last}" if last else ""),
        plugin=plugin,
        where=source.where,
        mend="`cyrene check` runs the same import; limits.load_s in the entry is its limit",
        trace=last,
    )
