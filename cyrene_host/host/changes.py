"""What a reload changes: which plugins stay as they are, which go, and which are new or other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import Limits, PluginEntry
from cyrene_host.catalog.fingerprints import source_key
from cyrene_host.catalog.secrets import SecretError, resolve
from cyrene_host.catalog.settings import limits_for
from cyrene_host.catalog.state import PluginState
from cyrene_host.host.inventory import Inventory

__all__ = ["Changes", "Standing", "changes", "stands_for"]


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


@dataclass(frozen=True, slots=True)
class Standing:
    """What a plugin stands for in a host; where any of it differs, the plugin is another one.

    Args:
        limits: the entry's, and those of cyrene.toml.
        config: the entry's, with secrets resolved.
        secrets: the texts that are redacted.
        entry, files: how it is listed, and the key of its files.
        state, cause: whether it can be used, and why not.
    """

    limits: Limits
    config: Mapping[str, Any] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    entry: Mapping[str, Any] | None
    files: str | None
    state: PluginState
    cause: str | None


def changes(before: Mapping[str, Standing], now: Mapping[str, Standing]) -> Changes:
    """Compare what the plugins of a host stood for with what they stand for now, by name."""
    both = [name for name in now if name in before]
    return Changes(
        unchanged=tuple(name for name in both if before[name] == now[name]),
        changed=tuple(name for name in both if before[name] != now[name]),
        added=tuple(name for name in now if name not in before),
        removed=tuple(name for name in before if name not in now),
    )


def stands_for(record: CatalogPlugin, inventory: Inventory) -> Standing:
    """Return what a plugin stands for; block it where a secret of its configuration is missing."""
    entry = record.entry or PluginEntry(name="unusable")
    config, secrets = _resolved(record, entry, inventory)
    return Standing(
        limits=limits_for(entry, inventory.settings),
        config=config,
        secrets=secrets,
        entry=record.entry.model_dump(mode="json") if record.entry is not None else None,
        files=source_key(record.source) if record.source is not None else None,
        state=record.state,
        cause=record.error.what if record.error is not None else None,
    )


def _resolved(
    record: CatalogPlugin, entry: PluginEntry, inventory: Inventory
) -> tuple[Mapping[str, Any], frozenset[str]]:
    where = f"{entry.where}/config" if entry.where else ""
    try:
        return resolve(entry.config, inventory.base, os.environ, plugin=record.name, where=where)
    except SecretError as error:
        if record.state is PluginState.DISCOVERED:
            record.fail(PluginState.BLOCKED, error, "check")
        return {}, frozenset()
