"""Everything an operator has put in place, read and checked: settings, plugins.json, and the catalog made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.entry_points import EntryPoints, read_entry_points
from cyrene_host.catalog.manifests import ManifestStore
from cyrene_host.catalog.plugins_file import PluginsFile, find_plugins_file, read_plugins_file
from cyrene_host.catalog.settings import Settings, find_settings_file, read_settings
from cyrene_host.catalog.switches import Switches

if TYPE_CHECKING:
    from cyrene_host.catalog.vouched import Vouched

__all__ = ["Inventory"]


@dataclass(frozen=True, slots=True)
class Inventory:
    """What this host has, without any plugin code in it and nothing started."""

    settings: Settings
    file: PluginsFile
    entry_points: EntryPoints
    store: ManifestStore
    switches: Switches
    catalog: Catalog

    @property
    def base(self) -> Path:
        """The folder that paths in plugins.json start from."""
        return self.file.path.parent

    @property
    def state_dir(self) -> Path:
        """Where the host keeps what outlives it."""
        return self.settings.state_folder()

    @classmethod
    def read(
        cls,
        plugins: str | Path | None = None,
        *,
        config: str | Path | None = None,
        overrides: Mapping[str, Any] | None = None,
        only: str | None = None,
        vouched: Callable[[Path], Vouched] | None = None,
    ) -> Self:
        """Read settings and plugins, and describe those that have no manifest yet.

        Args:
            plugins: plugins.json; None looks at `CYRENE_PLUGINS`, then in the current folder. Where there is
                none, all installed plugins are taken.
            config: cyrene.toml; None looks at `CYRENE_CONFIG`, then beside plugins.json.
            overrides: settings by dotted name, such as `tools.smart_select`, above file and environment.
            only: describe no other plugin than this one and what it needs; a name that no plugin has means all.
            vouched: takes the state directory and knows the manifests that need no check; None checks all.
        Raises:
            PluginsFileError, SettingsError: a file that cannot be used, with all its faults.
        """
        cwd = Path.cwd()
        path = find_plugins_file(Path(plugins) if plugins else None, os.environ, cwd)
        found = find_settings_file(Path(config) if config else None, os.environ, plugins_file=path, cwd=cwd)
        settings = read_settings(found, os.environ, overrides or {})
        file = read_plugins_file(path) if path else _no_file(cwd)
        entry_points = read_entry_points()
        state_dir = settings.state_folder()
        store = ManifestStore(state_dir, vouched(state_dir) if vouched is not None else None)
        taken = entry_points.plugins if file.entry_points == "all" else {}
        names = {*taken, *(entry.name for entry in file.entries)}
        only = only if only in names else None
        switches = Switches(settings.state_folder())
        catalog = Catalog.load(
            file, settings, entry_points=entry_points.plugins, store=store, only=only, switches=switches.read()
        )
        return cls(settings, file, entry_points, store, switches, catalog)


def _no_file(folder: Path) -> PluginsFile:
    note = f"there is no plugins.json in '{folder}': all installed plugins are taken"
    return PluginsFile(path=folder / "plugins.json", entries=(), faults=(), entry_points="all", notes=(note,))
