"""The faults of an operator's file: each in four parts, all of a file at once."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from cyrene_sdk.errors import CyreneError

__all__ = ["FaultsError", "FileFault", "nearest", "read_operator_file"]


class FileFault(CyreneError):
    """One fault of a file: `pointer` is a JSON pointer (empty for the file itself), `line` None where none is known."""

    def __init__(
        self,
        what: str,
        *,
        file: str,
        mend: str,
        pointer: str = "",
        line: int | None = None,
        plugin: str | None = None,
    ) -> None:
        place = f"{file} line {line}" if line else file
        super().__init__(what, plugin=plugin, where=f"{place}, {pointer}" if pointer else place, mend=mend)
        self.pointer = pointer
        self.line = line


class FaultsError(CyreneError):
    """One or more faults that were found together; `faults` holds them and its text prints each."""

    def __init__(self, faults: Sequence[CyreneError]) -> None:
        first = faults[0]
        what = first.what if len(faults) == 1 else f"{len(faults)} faults, the first: {first.what}"
        super().__init__(what, plugin=first.plugin, where=first.where, mend=first.mend)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` is most likely a misspelling of; None if none is near."""
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


def read_operator_file(path: Path, *, max_bytes: int) -> tuple[bytes, list[FileFault]]:
    """Return the bytes of a file, with a fault if others than its owner may write it (POSIX only, as ssh has it).

    Raises:
        FileFault: the file is absent, no regular file, unreadable or larger than `max_bytes`.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
            raise FileFault(f"'{path}' is {kind}", file=str(path), mend=f"give the path of a file '{path.name}'")
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise FileFault(f"'{path}' does not exist", file=str(path), mend="correct the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileFault(f"'{path}' cannot be read: {reason}", file=str(path), mend="check its permissions") from error
    if len(content) > max_bytes:
        raise FileFault(f"'{path}' is larger than {max_bytes:,} bytes", file=str(path), mend="make it smaller")
    return content, _writable_by_others(path, mode)


def _writable_by_others(path: Path, mode: int) -> list[FileFault]:
    if os.name != "posix" or not mode & (stat.S_IWGRP | stat.S_IWOTH):
        return []
    what = f"'{path}' may be written by others than its owner (mode {stat.S_IMODE(mode):04o}), so it is not trusted"
    return [FileFault(what, file=str(path), mend=f"chmod go-w '{path}'")]
