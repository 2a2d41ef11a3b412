"""Import a plugin and make its object, with each way that this can fail told apart."""

from __future__ import annotations

import difflib
import importlib
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import FileFinder, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from cyrene_sdk._worker.faults import StageError, sentence_of, trace_of
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.protocols import Plugin

__all__ = ["Code", "forget_plugin", "load_plugin", "plugin_classes"]

# Plugins load side by side. An import that goes through `sys.meta_path` while it is changed in place may miss a finder.
_FINDERS_CHANGE = threading.Lock()

PLUGIN_METHODS = ("metadata", "init", "start", "stop", "health", "tools")


@dataclass(frozen=True, slots=True)
class Code:
    """Where a plugin's class is: `attribute` None means the only plugin class of the module.

    `folder`, if given, is where the top-level package must come from.
    """

    module: str
    attribute: str | None = None
    folder: str | None = None

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Code:
        """Read what `to_dict` wrote."""
        return cls(spec["module"], spec.get("attribute"), spec.get("folder"))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object for another process."""
        return {"module": self.module, "attribute": self.attribute, "folder": self.folder}

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}" if self.attribute else self.module


def load_plugin(code: Code) -> Plugin:
    """Import the module and return the plugin object.

    Raises:
        StageError: of stage `load`; the module fails to import, the class is not there, or is no plugin.
    """
    module = _import(code)
    target = _find(module, code)
    try:
        plugin = target()
    except BaseException as error:
        what = f"'{code}' cannot be made: {type(error).__name__}: {sentence_of(error)}"
        raise _load_error(what, error, code) from error
    missing = [name for name in PLUGIN_METHODS if not callable(getattr(plugin, name, None))]
    if missing:
        raise StageError(
            f"'{code}' is no plugin: it has no {_quoted(missing)}",
            stage="load",
            where=_file_of(module),
            mend="derive the class from cyrene_sdk.BasePlugin, or write the missing methods",
        )
    return plugin  # type: ignore[no-any-return]  # checked by its methods just above


def forget_plugin(code: Code) -> None:
    """Let go of the modules that came from the plugin's own folder, so that the next load reads its files afresh.

    Modules of an installed package stay: others may have imported them too.
    """
    if code.folder is not None:
        _forget(code.module.partition(".")[0], set())


def plugin_classes(module: ModuleType) -> list[str]:
    """Return the names of the plugin classes that the module defines, or takes from a module inside it."""
    found = {
        value: name
        for name, value in reversed(vars(module).items())
        if isinstance(value, type)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
        and all(callable(getattr(value, method, None)) for method in PLUGIN_METHODS)
    }
    return list(reversed(found.values()))


def _import(code: Code) -> ModuleType:
    top = code.module.partition(".")[0]
    before = set(sys.modules)
    try:
        if code.folder is not None:
            _import_top(top, code.folder)
        return importlib.import_module(code.module)
    except StageError:
        raise
    except BaseException as error:
        _forget(top, before)
        if isinstance(error, ModuleNotFoundError) and f"{code.module}.".startswith(f"{error.name}."):
            place = code.folder or "the host's Python environment"
            raise StageError(
                f"module '{code.module}' was not found in {place}",
                stage="load",
                mend="install the plugin's package, or correct 'import' or 'path' in its entry",
                trace=trace_of(error),
            ) from error
        if isinstance(error, SystemExit):
            what = f"module '{code.module}' exited during import ({sentence_of(error)})"
        else:
            what = f"module '{code.module}' failed to import: {type(error).__name__}: {sentence_of(error)}"
        raise _load_error(what, error, code) from error


def _import_top(top: str, folder: str) -> None:
    """Import the top-level package from `folder` itself, whatever else on sys.path has its name."""
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: siblings of the package are found, nothing else is hidden
    finder = _InFolder(top, folder)
    with _FINDERS_CHANGE:
        sys.meta_path = [finder, *sys.meta_path]
    try:
        # By Python's own import, which makes a second entry for the same module wait until it is complete.
        module = importlib.import_module(top)
    finally:
        with _FINDERS_CHANGE:
            sys.meta_path = [other for other in sys.meta_path if other is not finder]
    origins = [_file_of(module) or "", *getattr(module, "__path__", ())]
    if not any(Path(origin).resolve().is_relative_to(Path(folder).resolve()) for origin in origins if origin):
        raise StageError(
            f"a module '{top}' is loaded from '{origins[-1]}' already, not from '{folder}'",
            stage="load",
            mend=f"rename the plugin's module '{top}': module names are shared in one interpreter",
        )


class _InFolder:
    """Finds one top-level module, in one folder only."""

    def __init__(self, top: str, folder: str) -> None:
        self._top = top
        self._folder = folder

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Return the spec of the module in the folder; None for every other module."""
        if fullname != self._top:
            return None
        spec = PathFinder.find_spec(fullname, [self._folder])
        if spec is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec


def _forget(top: str, before: set[str]) -> None:
    """Take a failed import's modules out again, so that a corrected file is read afresh."""
    for name in [name for name in list(sys.modules) if name not in before and name.partition(".")[0] == top]:
        sys.modules.pop(name, None)
    # Not `importlib.invalidate_caches()`, which fails where another plugin's import adds to this dict meanwhile.
    for finder in sys.path_importer_cache.copy().values():
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()


def _find(module: ModuleType, code: Code) -> Any:
    offered = plugin_classes(module)
    if code.attribute is None:
        if len(offered) == 1:
            return getattr(module, offered[0])
        found = f"has several plugin classes: {_quoted(offered)}" if offered else "has no plugin class"
        raise StageError(
            f"module '{code.module}' {found}",
            stage="load",
            where=_file_of(module),
            mend='name the class in the entry: "class": "…"',
        )
    target = getattr(module, code.attribute, None)
    if target is None:
        near = difflib.get_close_matches(code.attribute, offered or list(vars(module)), n=1)
        raise StageError(
            f"module '{code.module}' has no class '{code.attribute}'",
            stage="load",
            where=_file_of(module),
            mend=f"did you mean '{near[0]}'?" if near else "name one of its classes in the entry's 'class'",
        )
    if not callable(target):
        raise StageError(
            f"'{code}' is no plugin class: it is a {type(target).__name__}",
            stage="load",
            where=_file_of(module),
            mend="name a class derived from cyrene_sdk.BasePlugin, or a function that returns a plugin",
        )
    return target


def _load_error(what: str, error: BaseException, code: Code) -> StageError:
    top = code.module.partition(".")[0]
    where = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).partition(".")[0] == top:
            where = f"{frame.f_code.co_filename} line {line}"
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename} line {error.lineno}"
    if isinstance(error, CyreneError):  # what a decorator refuses says itself where it is and what mends it
        return StageError(error.what, stage="load", where=error.where or where, mend=error.mend, trace=trace_of(error))
    return StageError(
        what,
        stage="load",
        where=where,
        mend="mend the plugin's code or install what it imports; `cyrene check` runs the same import",
        trace=trace_of(error),
    )


def _file_of(module: ModuleType) -> str | None:
    return getattr(module, "__file__", None)


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
