"""Which plugins nobody tries to start any more: kept in the state directory until something changes."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.supervise.restarts import MOST_RESTARTS, WITHIN_S
from cyrene_sdk.errors import CyreneError

__all__ = ["FailureMarks", "GivenUpError"]

_log = logging.getLogger("cyrene.plugins")


class GivenUpError(CyreneError):
    """A plugin was lost again and again, and nobody starts it any more.

    Args:
        record: the plugin.
        why: how it was lost the last time.
    """

    def __init__(self, record: CatalogPlugin, why: str) -> None:
        super().__init__(
            f"it is not started any more after {MOST_RESTARTS} restarts within {WITHIN_S / 60:g} minutes; last: {why}",
            plugin=record.name,
            where=record.place,
            mend=f"mend it, then `cyrene plugins restart {record.name}`; a new version or config is tried too",
        )


class FailureMarks:
    """Remembers, by plugin, why it was given up, and the version and config that it was given up with.

    Args:
        state_dir: the host's; the file `given-up.json` in it is made when needed.
    """

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "given-up.json"

    def find(self, record: CatalogPlugin) -> str | None:
        """Return why a plugin was given up; None if it was not, or its version or config is another now."""
        return self.find_all([record]).get(record.name)

    def find_all(self, records: Iterable[CatalogPlugin]) -> dict[str, str]:
        """Return, by name, why each of these plugins was given up that was."""
        marks = self._read()
        found = {}
        for record in records:
            mark = marks.get(record.name)
            if isinstance(mark, dict) and mark.get("key") == _key(record):
                found[record.name] = str(mark.get("why"))
        return found

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
