"""Where a plugin's code is: from an entry of plugins.json to a module, found without importing anything."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyrene_host.catalog.entry_points import PLUGIN_GROUP, EntryPoint, parse_reference, read_entry_points
from cyrene_host.catalog.environments import package_folders
from cyrene_host.catalog.faults import nearest
from cyrene_sdk._worker.manifest_file import locate
from cyrene_sdk.errors import CyreneError

if TYPE_CHECKING:
    from cyrene_host.catalog.entries import PluginEntry

__all__ = ["Source", "SourceError", "resolve_source"]

PLUGINS_FOLDER = "plugins"

_NO_PLUGINS = frozenset({"benchmarks", "build", "conftest", "dist", "docs", "examples", "noxfile", "setup", "tests"})

_Found = Mapping[str, Sequence[EntryPoint]]
_Search = list[str] | None


class SourceError(CyreneError):
    """An entry names no code that can be found, or more than one."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a plugin's code is and which distribution it belongs to.

    Attributes:
        kind: how it was named; `import` and `path` may name what an entry point names too.
        module: the dotted module.
        attribute: the class or factory; None means the only plugin class of the module.
        folder: what is added to `sys.path` when loading; None where the module is installed.
        distribution: the distribution's name, where known; `version` likewise.
        where: for people: the file, entry point or folder that named the code.
        location: the package's folder or the single module's file; None inside an interpreter that hides it.
        dist_path: the `.dist-info` folder of an installed distribution.
        python: the interpreter or virtual environment, where it is not the host's.
    """

    kind: Literal["entry_point", "import", "path"]
    module: str
    attribute: str | None
    folder: Path | None
    distribution: str | None
    version: str | None
    where: str
    location: Path | None = None
    dist_path: Path | None = None
    python: Path | None = None

    def package_dir(self) -> Path | None:
        """Return the folder of the plugin's package; None for a single module, or where it is not known."""
        return self.location if self.location is not None and self.location.is_dir() else None

    def same_as(self, other: Source) -> bool:
        """Whether both are one plugin, named in two ways."""
        if self.python != other.python or _differ(self.attribute, other.attribute):
            return False
        if self.location is None or other.location is None:
            return self.module == other.module
        same_place = self.location.resolve() == other.location.resolve()
        return same_place and (self.module == other.module or None not in (self.attribute, other.attribute))


def resolve_source(entry: PluginEntry, base: Path, entry_points: _Found) -> Source:
    """Find the code that an entry names.

    `path` goes before `import`, and that before the name alone. `import` is looked for among the installed
    packages, then in `plugins/<name>/` beside plugins.json; a name alone is an entry point, or that folder.

    Args:
        entry: an entry of plugins.json that is no MCP server.
        base: the folder of plugins.json.
        entry_points: the plugins that are installed in the host's environment, by name.
    Raises:
        SourceError: nothing there, several candidates, or a folder outside `base`.
    """
    python = base / entry.python if entry.python is not None else None
    try:
        search = None if python is None else package_folders(python)
        if search is not None:
            entry_points = read_entry_points(search).plugins
        if entry.path is not None:
            source = _from_folder(entry, _inside(entry, base, entry.path))
        elif entry.import_ is not None:
            source = _from_import(entry, base, entry_points, search)
        else:
            source = _from_name(entry, base, entry_points, search)
    except OSError as error:
        what = f"its code cannot be looked for: {error.strerror or error}: '{str(error.filename)[:80]}'"
        raise _error(entry, what, "correct the path, or who may read it") from error
    return source if python is None else replace(source, python=python)


def _from_name(entry: PluginEntry, base: Path, entry_points: _Found, search: _Search) -> Source:
    named = {(point.module, point.attribute): point for point in reversed(entry_points.get(entry.name, ()))}
    if len(named) > 1:
        owners = ", ".join(f"'{point.distribution}'" for point in entry_points[entry.name])
        raise _error(entry, f"several distributions offer the name: {owners}", 'add "import" and "class" to choose one')
    for point in named.values():
        return _from_entry_point(entry, point, search)
    folder = _own_folder(entry, base)
    if folder is not None:
        return _from_folder(entry, folder)
    what = f"no installed package offers it, and there is no folder '{PLUGINS_FOLDER}/{entry.name}'"
    mend = 'pip install its package, or give its folder as "path"'
    raise _error(entry, what, _nearest(entry.name, [*entry_points, *_folder_names(base)]) + mend)


def _from_entry_point(entry: PluginEntry, point: EntryPoint, search: _Search) -> Source:
    # A wheel's module lies beside its metadata; to ask every finder for it takes five times as long.
    location = locate(point.module, [str(point.dist_path.parent)]) or locate(point.module, search)
    if location is None and search is None:
        what = f"'{point.distribution}' {point.version} names the module '{point.module}', which is not there"
        raise _error(entry, what, f"install '{point.distribution}' again")
    return Source(
        kind="entry_point",
        module=point.module,
        attribute=entry.class_ or point.attribute,
        folder=None,
        distribution=point.distribution,
        version=point.version,
        where=f"entry point '{point.name}' of {point.distribution} {point.version}",
        location=location,
        dist_path=point.dist_path,
    )


def _from_import(entry: PluginEntry, base: Path, entry_points: _Found, search: _Search) -> Source:
    module = entry.import_ or ""
    location = locate(module, search)
    if location is None:
        folder = _own_folder(entry, base)
        found = _found_in(module, folder) if folder is not None else None
        if found is not None:
            return _in_folder(entry, found, module, entry.class_)
        if search is None:
            what = f"module '{module}' is not installed, and not in a folder '{PLUGINS_FOLDER}/{entry.name}'"
            mend = f"pip install its package, or put it into '{PLUGINS_FOLDER}/{entry.name}/'"
            modules = {point.module for points in entry_points.values() for point in points}
            modules.update(_modules(folder) if folder is not None else ())
            raise _error(entry, what, _nearest(module, modules) + mend)
    points = [point for points in entry_points.values() for point in points if point.module == module]
    fitting = [point for point in points if not _differ(point.attribute, entry.class_)]
    point = fitting[0] if len(fitting) == 1 else None
    return Source(
        kind="import",
        module=module,
        attribute=entry.class_ or (point.attribute if point else None),
        folder=None,
        distribution=point.distribution if point else None,
        version=point.version if point else None,
        where=entry.where,
        location=location,
        dist_path=point.dist_path if point else None,
    )


def _from_folder(entry: PluginEntry, folder: Path) -> Source:
    project = _project(entry, folder)
    if entry.import_ is not None:
        module, attribute = entry.import_, entry.class_
    else:
        module, attribute = _declared(entry, folder, project) or (_only_module(entry, folder), None)
        attribute = entry.class_ or attribute
    found = _found_in(module, folder)
    if found is None:
        what = f"module '{module}' is not in the folder '{folder}'"
        raise _error(entry, what, _nearest(module, _modules(folder)) + 'correct "import" or "path"')
    name, version = project.get("name"), project.get("version")
    return replace(
        _in_folder(entry, found, module, attribute),
        distribution=name if isinstance(name, str) else None,
        version=version if isinstance(version, str) else None,
    )


def _in_folder(entry: PluginEntry, found: tuple[Path, Path], module: str, attribute: str | None) -> Source:
    return Source(
        kind="path",
        module=module,
        attribute=attribute,
        folder=found[0],
        distribution=None,
        version=None,
        where=entry.where,
        location=found[1],
    )


def _inside(entry: PluginEntry, base: Path, path: str) -> Path:
    folder = (base / path).resolve()
    if not folder.is_relative_to(base.resolve()):
        raise _error(entry, f"path '{path}' leads out of '{base}'", "move the folder beside plugins.json")
    if not folder.is_dir():
        near = [child.name for child in folder.parent.iterdir() if child.is_dir()] if folder.parent.is_dir() else []
        raise _error(entry, f"path '{path}' is no folder", _nearest(folder.name, near) + 'correct "path"')
    return folder


def _own_folder(entry: PluginEntry, base: Path) -> Path | None:
    """Return `plugins/<name>/` beside plugins.json, where it exists."""
    parent = (base / PLUGINS_FOLDER).resolve()
    folder = (parent / entry.name).resolve()
    return folder if folder.parent == parent and folder.is_dir() else None


def _folder_names(base: Path) -> list[str]:
    parent = base / PLUGINS_FOLDER
    return [child.name for child in parent.iterdir() if child.is_dir()] if parent.is_dir() else []


def _project(entry: PluginEntry, folder: Path) -> Mapping[str, Any]:
    """Return the table `project` of the folder's pyproject.toml; empty where there is none."""
    file = folder / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _error(entry, f"'{file}' cannot be read: {error}", "correct the file") from error
    return project if isinstance(project, dict) else {}


def _declared(entry: PluginEntry, folder: Path, project: Mapping[str, Any]) -> tuple[str, str | None] | None:
    groups = project.get("entry-points")
    declared = groups.get(PLUGIN_GROUP) if isinstance(groups, dict) else None
    if not isinstance(declared, dict) or not declared:
        return None
    if entry.name not in declared and len(declared) > 1:
        what = f"'{folder / 'pyproject.toml'}' declares several plugins: {_quoted(declared)}"
        raise _error(entry, what, 'give the entry one of these names, or add "import" and "class"')
    return parse_reference(str(declared.get(entry.name, next(iter(declared.values())))))


def _only_module(entry: PluginEntry, folder: Path) -> str:
    modules = _modules(folder)
    if len(modules) != 1:
        what = f"'{folder}' holds {'several modules: ' + _quoted(modules) if modules else 'no Python module'}"
        raise _error(entry, what, 'name the module: add "import"')
    return modules[0]


def _modules(folder: Path) -> list[str]:
    """Return the packages and modules of a project that may be the plugin, by name."""
    children = [child for root in _roots(folder) for child in root.iterdir()]
    names = {child.name for child in children if (child / "__init__.py").is_file()}
    names |= {child.stem for child in children if child.suffix == ".py" and child.is_file()}
    return sorted(n for n in names - _NO_PLUGINS if n.isidentifier() and not n.startswith(("_", "test_")))


def _roots(folder: Path) -> list[Path]:
    return [root for root in (folder, folder / "src") if root.is_dir()]


def _found_in(module: str, folder: Path) -> tuple[Path, Path] | None:
    """Return the folder to import the module from, and where the module is."""
    places = ((root, locate(module, [str(root)])) for root in _roots(folder))
    return next(((root, location) for root, location in places if location is not None), None)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _nearest(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"did you mean '{near}'? Else " if near else ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _error(entry: PluginEntry, what: str, mend: str) -> SourceError:
    return SourceError(what, plugin=entry.name, where=entry.where, mend=mend)
