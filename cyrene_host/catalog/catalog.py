"""What this host has: every plugin and tool as data, checked, with nothing imported and nothing started."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from cyrene_host.catalog.definitions import CatalogTool, tools_of, unknown_overrides
from cyrene_host.catalog.demands import DemandError, check_demands, untrusted_inline
from cyrene_host.catalog.dependencies import Needs, order_and_check
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.entry_points import EntryPoint
from cyrene_host.catalog.fingerprints import check_pin
from cyrene_host.catalog.manifests import Manifest, ManifestStore, parse_manifest
from cyrene_host.catalog.names import NamedTool, ToolNames
from cyrene_host.catalog.plugins_file import PluginsFile
from cyrene_host.catalog.probe import ProbeError, probe
from cyrene_host.catalog.settings import Settings, limits_for
from cyrene_host.catalog.sources import Source, SourceError, resolve_source
from cyrene_host.catalog.state import PluginState
from cyrene_host.catalog.tables import problems
from cyrene_host.catalog.versions import VersionError, parse_version
from cyrene_host.version import __version__
from cyrene_sdk.errors import CyreneError

__all__ = ["Catalog", "CatalogPlugin"]

_log = logging.getLogger("cyrene.catalog")


@dataclass(slots=True)
class CatalogPlugin:
    """One plugin: its entry, where its code is, what its manifest says, and whether it can be used.

    `state` is disabled, blocked, incompatible, failed (it could not be described) or discovered; `error` says
    why in the middle three, and `stage` how far it came. `switched` is what a person said over `enabled` of
    the entry: on, off, or nothing.
    """

    name: str
    entry: PluginEntry | None
    state: PluginState = PluginState.DISCOVERED
    source: Source | None = None
    manifest: Manifest | None = None
    error: CyreneError | None = None
    stage: str = "discover"
    tools: tuple[CatalogTool, ...] = ()
    notes: list[str] = field(default_factory=list)
    switched: bool | None = None

    @property
    def place(self) -> str:
        """For people: where its code, or else its entry, is."""
        if self.source is not None:
            return self.source.where
        return self.entry.where if self.entry else "plugins.json"

    def fail(self, state: PluginState, error: CyreneError, stage: str) -> None:
        """Note the first thing that is wrong with the plugin; of a disabled one nothing matters."""
        if self.error is None and self.state is not PluginState.DISABLED:
            error.plugin = error.plugin or self.name
            self.state, self.error, self.stage = state, error, stage

    def describe(self, manifest: Manifest) -> None:
        """Take the definitions of a manifest, with the operator's settings over them."""
        self.manifest = manifest
        self.tools = tools_of(self.name, self.entry, manifest, where=self.place)
        if unknown := unknown_overrides(self.name, self.entry, manifest):
            self.fail(PluginState.BLOCKED, unknown, "check")


class Catalog:
    """All plugins of one plugins.json (and of the entry points that it lets in), in the file's order.

    Attributes:
        plugins: by entry name.
        order: the usable ones, dependencies first.
        notes: what the operator should know though nothing is wrong.
    """

    def __init__(self, plugins: Sequence[CatalogPlugin], notes: Iterable[str] = ()) -> None:
        self.plugins: dict[str, CatalogPlugin] = {plugin.name: plugin for plugin in plugins}
        self.notes = list(notes)
        self.order: list[str] = []
        self._check_dependencies()

    @classmethod
    def load(
        cls,
        file: PluginsFile,
        settings: Settings,
        *,
        entry_points: Mapping[str, Sequence[EntryPoint]],
        store: ManifestStore,
        only: str | None = None,
        switches: Mapping[str, bool] | None = None,
    ) -> Catalog:
        """Find out everything about the plugins that can be found out without importing them here.

        A plugin with neither a shipped nor a kept manifest is imported once, in an interpreter of its own.

        Args:
            file: the plugins.json that was read.
            entry_points: installed plugins by name.
            store: shipped and kept manifests.
            switches: plugins that a person switched on or off, over what their entries say.
            only: describe no plugin anew but this one and its dependencies; None means all, a name of no plugin none.
        """
        base = file.path.parent
        plugins = _entries(file, entry_points, switches or {})
        for plugin in plugins:
            if plugin.error is None:
                _locate(plugin, base, entry_points)
        notes = [*file.notes, *filter(None, map(untrusted_inline, file.entries))]
        notes += [*_settle_repeated(plugins, file, base, entry_points), *_drop_found_again(plugins)]
        for plugin in plugins:
            if plugin.entry is not None and not plugin.entry.where:
                _check_found(plugin)
        with_code = [plugin for plugin in plugins if plugin.source is not None and plugin.error is None]
        unknown = [plugin for plugin in with_code if not _find_manifest(plugin, store)]
        missing = [plugin for plugin in unknown if plugin.state is PluginState.DISCOVERED]
        for part in [missing] if only is None else _needed(only, plugins, missing):
            _describe_all(part, settings, store)
        for plugin in with_code:
            _check_versions(plugin)
        return cls(plugins, notes)

    @property
    def tools(self) -> list[CatalogTool]:
        """All tools of all plugins, usable or not."""
        return [tool for plugin in self.plugins.values() for tool in plugin.tools]

    def named_tools(self) -> list[NamedTool]:
        """Return what the tools' names are made of."""
        return [NamedTool(tool.plugin, tool.given.name, tool.given.id, _alias(tool)) for tool in self.tools]

    @property
    def names(self) -> ToolNames:
        """The names of the tools as they are now."""
        return ToolNames(self.named_tools())

    def needed_by(self, name: str) -> frozenset[str]:
        """Return the entry names that a plugin declares as its dependencies itself."""
        manifest = self.plugins[name].manifest
        found = map(self._named, manifest.metadata.dependencies if manifest else ())
        return frozenset(other for other in found if other is not None)

    def dependencies_of(self, name: str) -> list[str]:
        """Return the entry names that a usable plugin depends on, directly or not, first things first."""
        wanted: set[str] = set()
        stack = [name]
        while stack:
            manifest = self.plugins[stack.pop()].manifest
            for dependency in manifest.metadata.dependencies if manifest else ():
                found = self._named(dependency)
                if found is not None and found not in wanted:
                    wanted.add(found)
                    stack.append(found)
        return [other for other in self.order if other in wanted and other != name]

    def _named(self, dependency: str) -> str | None:
        if dependency in self.plugins:
            return dependency
        return next(
            (p.name for p in self.plugins.values() if p.manifest and p.manifest.metadata.name == dependency), None
        )

    def _check_dependencies(self) -> None:
        self.order, causes = order_and_check({name: _needs(plugin) for name, plugin in self.plugins.items()})
        for name, cause in causes.items():
            self.plugins[name].fail(PluginState.INCOMPATIBLE, cause, "check")


def _entries(
    file: PluginsFile, entry_points: Mapping[str, Sequence[EntryPoint]], switches: Mapping[str, bool]
) -> list[CatalogPlugin]:
    plugins = [_switched(entry, switches.get(entry.name)) for entry in file.entries]
    names = {plugin.name for plugin in plugins}
    for name, fault in file.faults_by_plugin().items():
        plugins.append(_refused(_free(name, names), fault))
        names.add(plugins[-1].name)
    if file.entry_points == "all":
        found = [name for name in sorted(entry_points) if name not in names]
        plugins += [_switched(PluginEntry.model_construct(name=name), switches.get(name)) for name in found]
    return plugins


def _switched(entry: PluginEntry, switch: bool | None) -> CatalogPlugin:
    is_on = entry.enabled if switch is None else switch
    state = PluginState.DISCOVERED if is_on else PluginState.DISABLED
    return CatalogPlugin(entry.name, entry, state, switched=switch)


def _check_found(plugin: CatalogPlugin) -> None:
    """Block what was found under a name that no entry may have: its packager may have written anything."""
    try:
        PluginEntry(name=plugin.name)
    except ValidationError as error:
        [problem] = problems(error, PluginEntry)
        mend = 'give it an entry in plugins.json, with "name", "import" and "class"'
        plugin.fail(PluginState.BLOCKED, CyreneError(problem.what, where=plugin.place, mend=mend), "check")


def _free(name: str, taken: Container[str]) -> str:
    """Return the name itself, or with a number the first that is not taken."""
    numbered = (f"{name}#{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


def _refused(name: str, fault: CyreneError) -> CatalogPlugin:
    return CatalogPlugin(name, None, PluginState.BLOCKED, error=fault, stage="check")


def _locate(plugin: CatalogPlugin, base: Path, entry_points: Mapping[str, Sequence[EntryPoint]]) -> None:
    entry = plugin.entry
    assert entry is not None
    try:
        check_demands(entry)
        plugin.source = resolve_source(entry, base, entry_points)
        if entry.pin is not None:
            check_pin(plugin.source, plugin=plugin.name, version=entry.pin.version, sha256=entry.pin.sha256)
    except (DemandError, SourceError) as error:
        if plugin.state is not PluginState.DISABLED:
            plugin.fail(PluginState.BLOCKED, error, "discover")


def _settle_repeated(
    plugins: list[CatalogPlugin], file: PluginsFile, base: Path, entry_points: Mapping[str, Sequence[EntryPoint]]
) -> list[str]:
    """Merge an entry whose name was listed before, where both mean the same code; else refuse it."""
    notes = []
    taken = {plugin.name: plugin for plugin in plugins}
    for entry in file.repeated:
        first, second = taken[entry.name], CatalogPlugin(_free(entry.name, taken), entry)
        _locate(second, base, entry_points)
        if first.source is not None and second.source is not None and first.source.same_as(second.source):
            places = f"{first.entry.where if first.entry else ''} and {entry.where}"
            notes.append(f"plugin '{entry.name}' is listed twice, {places}, and is one: the first entry counts")
            continue
        what = (
            f"the name '{entry.name}' is listed twice and means two plugins: {first.place}, and {second.place};"
            " the second is not used"
        )
        mend = "remove one of the two, or give it another name"
        refused = _refused(second.name, CyreneError(what, plugin=entry.name, where=entry.where, mend=mend))
        plugins.append(refused)
        taken[refused.name] = refused
    return notes


def _drop_found_again(plugins: list[CatalogPlugin]) -> list[str]:
    """Take out an entry point that was found and that an entry of another name lists already."""
    notes = []
    listed = [plugin for plugin in plugins if plugin.source is not None and plugin.entry and plugin.entry.where]
    for found in [
        plugin for plugin in plugins if plugin.source is not None and not (plugin.entry and plugin.entry.where)
    ]:
        twin = next(
            (other for other in listed if other.source and found.source and found.source.same_as(other.source)), None
        )
        if twin is not None:
            plugins.remove(found)
            notes.append(f"'{found.name}' was found, and is listed as '{twin.name}' already: the two are one")
    return notes


def _find_manifest(plugin: CatalogPlugin, store: ManifestStore) -> bool:
    assert plugin.source is not None
    try:
        manifest = store.find(plugin.source, plugin.name)
    except CyreneError as error:
        plugin.fail(PluginState.INCOMPATIBLE, error, "check")
        return True
    if manifest is None:
        return False
    plugin.describe(manifest)
    return True


def _needed(
    only: str, plugins: Sequence[CatalogPlugin], missing: Sequence[CatalogPlugin]
) -> Iterator[list[CatalogPlugin]]:
    """Yield those of the missing that a plugin needs, itself first; the caller describes each part before the next.

    Any plugin may be meant by a dependency that is no entry's name: then all are needed.
    """
    by_name = {plugin.name: plugin for plugin in plugins}
    wanted, seen = {only} & by_name.keys(), set[str]()
    while wanted - seen:
        if not wanted <= by_name.keys():
            yield [plugin for plugin in missing if plugin.name not in seen]
            return
        yield [plugin for plugin in missing if plugin.name in wanted - seen]
        seen |= wanted
        described = [manifest for name in seen if (manifest := by_name[name].manifest)]
        wanted = {dependency for manifest in described for dependency in manifest.metadata.dependencies}


def _describe_all(plugins: Sequence[CatalogPlugin], settings: Settings, store: ManifestStore) -> None:
    if not plugins:
        return
    with ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1), thread_name_prefix="probe") as pool:
        list(pool.map(lambda plugin: _describe(plugin, settings, store), plugins))


def _describe(plugin: CatalogPlugin, settings: Settings, store: ManifestStore) -> None:
    entry, source = plugin.entry, plugin.source
    assert entry is not None
    assert source is not None
    try:
        described = probe(plugin.name, source, limits_for(entry, settings).load_s)
        manifest = parse_manifest(described, origin="live", where=source.where, plugin=plugin.name)
    except CyreneError as error:
        stage = error.stage if isinstance(error, ProbeError) else "load"
        plugin.fail(PluginState.FAILED, error, stage)
        if isinstance(error, ProbeError) and error.trace:
            _log.debug("plugin '%s': %s", plugin.name, error.trace)
        return
    plugin.notes.extend(store.keep(source, plugin.name, manifest))
    plugin.describe(manifest)


def _check_versions(plugin: CatalogPlugin) -> None:
    if plugin.manifest is None:
        return
    metadata = plugin.manifest.metadata
    try:
        parse_version(metadata.version)
        wanted = metadata.min_cyrene_version
        if wanted and parse_version(__version__) < parse_version(wanted):
            plugin.fail(
                PluginState.INCOMPATIBLE,
                CyreneError(
                    f"it wants Cyrene {wanted} or newer, and this host is {__version__}",
                    where=plugin.place,
                    mend=f"upgrade cyrene-host to {wanted}, or install an older '{plugin.name}'",
                ),
                "check",
            )
    except VersionError as error:
        error.where = f"{plugin.place}, metadata"
        plugin.fail(PluginState.INCOMPATIBLE, error, "check")


def _needs(plugin: CatalogPlugin) -> Needs:
    metadata = plugin.manifest.metadata if plugin.manifest else None
    return Needs(
        name=plugin.name,
        aliases=(metadata.name,) if metadata else (),
        version=metadata.version if metadata else "",
        dependencies=metadata.dependencies if metadata and plugin.error is None else {},
        usable=plugin.state is PluginState.DISCOVERED,
        why_not=f"is {plugin.state}" + (f": {plugin.error.what}" if plugin.error else ""),
        disabled=plugin.state is PluginState.DISABLED,
    )


def _alias(tool: CatalogTool) -> str:
    return (tool.override.alias or "") if tool.override else ""
