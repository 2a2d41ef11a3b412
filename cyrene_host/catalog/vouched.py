"""The manifest texts that this very version of Cyrene has checked before, and need not check again."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import jsonschema_rs
import pydantic
import pydantic_core
from pydantic_core import from_json, to_json

from cyrene_host.catalog.schemas import closing, compiled, rules
from cyrene_host.catalog.whole_file import replace_whole
from cyrene_host.version import __version__
from cyrene_sdk import types

__all__ = ["MAX_DIGESTS", "Vouched"]

MAX_DIGESTS = 4096
"""A host has tens of plugins, each with a few versions over the years; a digest that fell out costs one more check."""

_MAX_BYTES = 1_048_576


class Vouched:
    """The SHA-256 digests of checked texts, kept in `checked.json` of the state directory.

    A text that was found good would be found good again: one changed byte makes another digest, and another version
    of what checks forgets them all. The file is believed as kept manifests are: who can write it could as well change
    those. Without it, or where it cannot be written, every text is checked at every start.

    Args:
        state_dir: the host's state directory; made when something is kept.
    """

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "checked.json"
        self._checked_by = list(_checkers())
        self._digests = dict.fromkeys(self._kept())  # the oldest first

    def __contains__(self, digest: str) -> bool:
        return digest in self._digests

    def add(self, digests: Iterable[str]) -> None:
        """Keep the digests of texts that were checked in full and have no fault."""
        new = [digest for digest in digests if digest not in self._digests]
        if not new:
            return
        newest = [*self._digests, *new][-MAX_DIGESTS:]
        self._digests = dict.fromkeys(newest)
        with suppress(OSError):  # the next start checks again
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(self._file, to_json({"checked_by": self._checked_by, "digests": newest}, indent=1).decode())

    def _kept(self) -> list[str]:
        try:
            status = self._file.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
                return []
            kept = from_json(self._file.read_bytes())
        except (OSError, ValueError):
            return []
        if not isinstance(kept, dict) or kept.get("checked_by") != self._checked_by:
            return []
        digests = kept.get("digests")
        return [digest for digest in digests if isinstance(digest, str)] if isinstance(digests, list) else []


def _checkers() -> Iterator[str]:
    """Yield what a check rests on: versions; and files, since a checkout and a rebuilt wheel keep their version."""
    yield f"cyrene-host {__version__}"
    yield f"pydantic {pydantic.VERSION}, pydantic-core {pydantic_core.__version__}"
    yield f"python {sys.version}"
    own = [Path(str(module.__file__)) for module in (types, rules, closing, compiled)]
    for file in [
        Path(__file__).with_name("manifests.py"),
        *own,
        *sorted(Path(str(jsonschema_rs.__file__)).parent.glob("*.*")),
    ]:
        with suppress(OSError):  # from a zip file: its version has to do
            status = file.stat()
            yield f"{file} {status.st_size} {status.st_mtime_ns}"
