"""What `cyrene doctor` finds in the host's files: settings, state directory, plugins.json, entry points, plugins."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import unquote

from cyrene_host.catalog.catalog import Catalog, CatalogPlugin
from cyrene_host.catalog.entry_points import EntryPoints, read_entry_points
from cyrene_host.catalog.faults import FaultsError
from cyrene_host.catalog.manifests import ManifestStore
from cyrene_host.catalog.plugins_file import PluginsFile, PluginsFileError, find_plugins_file, read_plugins_file
from cyrene_host.catalog.settings import Settings, SettingsError, find_settings_file, read_settings
from cyrene_host.catalog.state import PluginState
from cyrene_host.cli.isolation import look_at_interpreters, look_at_leftovers
from cyrene_host.cli.options import Choices
from cyrene_host.cli.symptoms import Symptom
from cyrene_sdk.errors import CyreneError

__all__ = ["look_at_files"]

DESCRIBE_NONE = ""
"""No entry has this name: nothing is imported anywhere."""


def look_at_files(choices: Choices) -> Iterator[Symptom]:
    """Look at each file on its own; where one cannot be used, its defaults stand in for it."""
    cwd = Path.cwd()
    path = None
    try:
        path = find_plugins_file(Path(choices.plugins) if choices.plugins else None, os.environ, cwd)
    except PluginsFileError as error:
        yield from _faults("plugins.json", error)
    settings = Settings()
    try:
        given = Path(choices.config) if choices.config else None
        found = find_settings_file(given, os.environ, plugins_file=path, cwd=cwd)
        settings = read_settings(found, os.environ, choices.overrides)
        yield Symptom("fine", "cyrene.toml", str(found) if found else "there is none: the defaults hold")
    except SettingsError as error:
        yield from _faults("cyrene.toml", error)
    yield from _state(settings.state_folder())
    yield from look_at_leftovers(settings.state_folder())
    points = read_entry_points()
    yield from _entry_points(points)
    if path is None:
        yield Symptom("note", "plugins.json", f"there is none in '{cwd}': all installed plugins are taken")
        file = PluginsFile(cwd / "plugins.json", (), (), "all", ())
    else:
        try:
            file = read_plugins_file(path)
        except PluginsFileError as error:
            yield from _faults("plugins.json", error)
            return
        yield Symptom("fine", "plugins.json", str(path))
    yield from _plugins(file, settings, points)


def _faults(about: str, error: FaultsError) -> Iterator[Symptom]:
    for fault in error.faults:
        yield _wrong(about, fault)


def _wrong(about: str, error: CyreneError) -> Symptom:
    place = f" ({error.where})" if error.where else ""
    return Symptom("wrong", about, f"{error.what}{place}", error.mend or "")


def _state(folder: Path) -> Iterator[Symptom]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        mend = f"make it yours, or name another: --set host.state_dir={Path('state')}"
        yield Symptom("wrong", "state", f"'{folder}' cannot be written: {error.strerror or error}", mend)
    else:
        yield Symptom("fine", "state", str(folder))


def _entry_points(points: EntryPoints) -> Iterator[Symptom]:
    names = ", ".join(sorted(points.plugins)) or "none"
    yield Symptom("fine", "entry points", f"installed plugins: {names}")
    for name, named in points.plugins.items():
        owners = sorted({point.distribution for point in named})
        if len(owners) > 1:
            what = f"'{name}' is offered by several distributions: {', '.join(owners)}"
            yield Symptom("wrong", "entry points", what, f"uninstall all but one, or give '{name}' an import and class")


def _plugins(file: PluginsFile, settings: Settings, points: EntryPoints) -> Iterator[Symptom]:
    store = ManifestStore(settings.state_folder())
    catalog = Catalog.load(file, settings, entry_points=points.plugins, store=store, only=DESCRIBE_NONE)
    for note in [*catalog.notes, *store.notes]:
        yield Symptom("note", "plugins", note)
    for plugin in catalog.plugins.values():
        yield from _plugin(plugin)
    yield from look_at_interpreters(catalog)
    yield from _vanished(settings.state_folder() / "manifests", {*catalog.plugins, *points.plugins})


def _plugin(plugin: CatalogPlugin) -> Iterator[Symptom]:
    about = f"plugin '{plugin.name}'"
    if plugin.error is not None:
        error = plugin.error
        for fault in error.faults if isinstance(error, FaultsError) else (error,):
            yield _wrong(about, fault)
    elif plugin.manifest is None and plugin.state is PluginState.DISCOVERED:
        yield Symptom("note", about, "not described yet", f"`cyrene check {plugin.name}` looks at it")
    else:
        version = f"{plugin.manifest.metadata.version}, " if plugin.manifest else ""
        yield Symptom("fine", about, f"{version}{plugin.state}, {plugin.place}")
    for tool in plugin.tools:
        if tool.fault is not None:
            yield _wrong(about, tool.fault)


def _vanished(folder: Path, known: Container[str]) -> Iterator[Symptom]:
    """Name the plugins that were described once and are neither listed nor installed now."""
    kept = sorted(unquote(file.stem) for file in folder.glob("*.json")) if folder.is_dir() else []
    for name in kept:
        if name not in known:
            what = f"'{name}' was listed here once, or in another plugins.json, and is not now"
            yield Symptom("note", "plugins", what, "if an upgrade took it away, install its package again")
