"""What `cyrene check` and `cyrene manifest` work on: folders, entries of plugins.json, or everything."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.entry_points import PLUGIN_GROUP
from cyrene_host.catalog.faults import nearest
from cyrene_host.catalog.manifests import Manifest, parse_manifest
from cyrene_host.catalog.probe import probe
from cyrene_host.catalog.settings import Settings, limits_for
from cyrene_host.catalog.sources import Source, SourceError, resolve_source
from cyrene_host.catalog.state import PluginState
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.cli.reading import read_inventory
from cyrene_host.host.inventory import Inventory
from cyrene_sdk.errors import CyreneError

__all__ = ["Target", "describe", "find_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """One plugin to look at.

    `record` has its entry and its code, as far as they are there; `inventory` the host around it, None for a folder.
    """

    record: CatalogPlugin
    inventory: Inventory | None = None

    @property
    def name(self) -> str:
        """Its entry's name, or the one it would have."""
        return self.record.name

    @property
    def source(self) -> Source | None:
        """Where its code is; None where it was not found."""
        return self.record.source


def find_targets(choices: Choices, words: Sequence[str]) -> list[Target]:
    """Return the plugins that the words name: a path to a folder or file, or an entry's name; no words mean all.

    Raises:
        WrongUseError: a word is neither.
        PluginsFileError, SettingsError: an entry is named, and the file cannot be used.
    """
    folders = {word: Path(word) for word in words if _is_path(word)}
    inventory = read_inventory(choices) if not words or len(folders) < len(words) else None
    if inventory is not None and not words:
        return [Target(record, inventory) for record in inventory.catalog.plugins.values()]
    targets: list[Target] = []
    for word in words:
        if word in folders:
            targets += [Target(record) for record in _in_folder(folders[word])]
        elif inventory is not None:
            targets.append(Target(_named(word, inventory), inventory))
    return targets


def describe(target: Target) -> Manifest:
    """Import the plugin in a throw-away interpreter and return what it says of itself now.

    Raises:
        CyreneError: its code was not found, cannot be imported, or says what is no manifest.
    """
    record = target.record
    if record.source is None or record.entry is None:
        raise record.error or CyreneError("its code is not known", plugin=record.name, where=record.place)
    settings = target.inventory.settings if target.inventory else Settings()
    described = probe(record.name, record.source, limits_for(record.entry, settings).load_s)
    return parse_manifest(described, origin="live", where=record.source.where, plugin=record.name)


def _is_path(word: str) -> bool:
    return "/" in word or word in (".", "..") or word.endswith(".py") or Path(word).is_dir()


def _named(word: str, inventory: Inventory) -> CatalogPlugin:
    plugins = inventory.catalog.plugins
    if word in plugins:
        return plugins[word]
    near = nearest(word, plugins)
    hint = f"did you mean '{near}'?" if near else f"there are: {', '.join(plugins) or 'none'}; or give a folder"
    raise WrongUseError(f"there is no plugin '{word[:80]}'", where=inventory.file.path.name, mend=hint)


def _in_folder(path: Path) -> list[CatalogPlugin]:
    """Return the plugins of a folder: those that its pyproject.toml declares, else its only one."""
    if not path.exists():
        raise WrongUseError(f"'{path}' does not exist", where="command line", mend="give the folder of a plugin")
    folder = path.parent if path.is_file() else path
    folder = folder.resolve()
    module = {"import": path.stem} if path.is_file() else {}
    return [_record(folder, name, module) for name in _declared(folder) or [folder.name]]


def _declared(folder: Path) -> list[str]:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        return list(project["entry-points"][PLUGIN_GROUP])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []  # what is wrong with the file is said when the code is looked for


def _record(folder: Path, name: str, module: dict[str, Any]) -> CatalogPlugin:
    fitting = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:48] or "plugin"
    values = {"name": fitting, "path": folder.name or ".", **module}
    base = folder.parent
    entry = PluginEntry.model_validate(values, context={"where": str(folder), "base": base})
    record = CatalogPlugin(fitting, entry)
    try:
        record.source = resolve_source(entry, base, {})
    except SourceError as error:
        record.fail(PluginState.BLOCKED, error, "discover")
    return record
