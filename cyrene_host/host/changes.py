"""What a reload changes: which plugins stay as they are, which go, and which are new or other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cyrene_host.catalog.catalog import Catalog, CatalogPlugin
from cyrene_host.catalog.fingerprints import source_key
from cyrene_host.supervise.life import Life

__all__ = ["Changes", "Standing", "changes", "stands_for"]

Standing = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """The names of plugins by what happens to them; `changed` are stopped and started as they are now."""

    unchanged: tuple[str, ...]
    changed: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def to_dict(self) -> dict[str, list[str]]:
        """Return the JSON object."""
        return {
            "unchanged": list(self.unchanged),
            "changed": list(self.changed),
            "added": list(self.added),
            "removed": list(self.removed),
        }


def changes(lives: Mapping[str, Life], standing: Mapping[str, Standing], catalog: Catalog) -> Changes:
    """Compare the plugins of a host with a catalog that was read anew.

    Args:
        standing: what each plugin stood for when the host took it in, as `stands_for` said.
    """
    both = [name for name in catalog.plugins if name in lives]
    unchanged = tuple(name for name in both if standing[name] == stands_for(catalog.plugins[name]))
    return Changes(
        unchanged=unchanged,
        changed=tuple(name for name in both if name not in unchanged),
        added=tuple(name for name in catalog.plugins if name not in lives),
        removed=tuple(name for name in lives if name not in catalog.plugins),
    )


def stands_for(record: CatalogPlugin) -> Standing:
    """Return what makes a plugin another one: its entry, its files, and whether it can be used."""
    key = source_key(record.source) if record.source is not None else None
    entry = record.entry.model_dump(mode="json") if record.entry is not None else None
    return entry, key, record.state, record.error.what if record.error is not None else None
