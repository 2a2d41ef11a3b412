"""Which plugins nobody tries to start any more: kept in the state directory until something changes."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from cyrene_host.catalog.catalog import CatalogPlugin

__all__ = ["FailureMarks"]

_log = logging.getLogger("cyrene.plugins")


class FailureMarks:
    """Remembers, by plugin, why it was given up, and the version and config that it was given up with.

    Args:
        state_dir: the host's; the file `given-up.json` in it is made when needed.
    """

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "given-up.json"

    def find(self, record: CatalogPlugin) -> str | None:
        """Return why a plugin was given up; None if it was not, or its version or config is another now."""
        mark = self._read().get(record.name)
        is_same = isinstance(mark, dict) and mark.get("key") == _key(record)
        return str(mark.get("why")) if is_same and isinstance(mark, dict) else None

    def mark(self, record: CatalogPlugin, why: str) -> None:
        """Remember that a plugin was given up."""
        self._write(self._read() | {record.name: {"key": _key(record), "why": why}})

    def clear(self, name: str) -> bool:
        """Forget what was remembered of a plugin; return whether there was anything."""
        marks = self._read()
        was_marked = marks.pop(name, None) is not None
        if was_marked:
            self._write(marks)
        return was_marked

    def _read(self) -> dict[str, Any]:
        try:
            marks = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            _log.warning("'%s' was left aside: %s", self._file, error)
            return {}
        return marks if isinstance(marks, dict) else {}

    def _write(self, marks: dict[str, Any]) -> None:
        temporary = self._file.with_suffix(".tmp")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(marks, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            temporary.replace(self._file)
        except OSError as error:
            _log.warning("'%s' could not be written: %s", self._file, error)


def _key(record: CatalogPlugin) -> str:
    """Stand for what a plugin is and how it is set up; another key means that it may be tried again."""
    version = record.manifest.metadata.version if record.manifest else ""
    entry = record.entry.model_dump(mode="json") if record.entry else {}
    text = json.dumps([version, entry, str(record.source)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
