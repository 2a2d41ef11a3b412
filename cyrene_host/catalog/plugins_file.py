"""Reads plugins.json: which plugins its operator wants, and every fault of the file at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from pydantic import Field, ValidationError

from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.faults import FaultsError, FileFault, read_operator_file
from cyrene_host.catalog.json_text import Json, JsonTextError, Outline, Repeated, outline, parse
from cyrene_host.catalog.secrets import reference_problems
from cyrene_host.catalog.tables import Problem, Table, keys_of, problems

__all__ = [
    "EntryFault",
    "PluginsDocument",
    "PluginsFile",
    "PluginsFileError",
    "find_plugins_file",
    "read_plugins_file",
]

MAX_FILE_BYTES = 1_048_576


class PluginsDocument(Table):
    """plugins.json when it is an object; a list is the value of `plugins`."""

    plugins: list[Any] = Field(default=[], description="the entries, as below")
    entry_points: Literal["listed", "all"] = Field(
        default="listed", description="all: load every installed plugin, also those without an entry"
    )


class EntryFault(FileFault):
    """One fault inside an entry: it blocks the plugin `name`, the others go on."""

    def __init__(self, what: str, *, name: str, file: str, pointer: str, line: int, mend: str) -> None:
        super().__init__(what, plugin=name, file=file, pointer=pointer, line=line, mend=mend)
        self.name = name


class PluginsFileError(FaultsError):
    """plugins.json cannot be used at all; `faults` has every fault that was found, those of entries too."""


@dataclass(frozen=True, slots=True)
class PluginsFile:
    """What plugins.json says.

    Attributes:
        path: the file.
        entries: the entries without a fault, in the file's order.
        faults: the faults of the others.
        repeated: entries whose name one before them has, and which say otherwise; whether they mean the same code
            is for the catalog to find out.
        entry_points: whether only what is listed is loaded, or every installed plugin.
        notes: what was found and needs no mending.
    """

    path: Path
    entries: tuple[PluginEntry, ...]
    faults: tuple[EntryFault, ...]
    entry_points: Literal["listed", "all"]
    notes: tuple[str, ...] = ()
    repeated: tuple[PluginEntry, ...] = ()

    def faults_by_plugin(self) -> dict[str, FaultsError]:
        """Return the faults of each entry as one error, by the plugin's name."""
        grouped: dict[str, list[EntryFault]] = {}
        for fault in self.faults:
            grouped.setdefault(fault.name, []).append(fault)
        return {name: FaultsError(faults) for name, faults in grouped.items()}


def find_plugins_file(given: Path | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the path of plugins.json: the one given, else `CYRENE_PLUGINS`, else in `cwd`; None if there is none.

    Raises:
        PluginsFileError: a path was given, and there is nothing.
    """
    named = given or (Path(env["CYRENE_PLUGINS"]) if env.get("CYRENE_PLUGINS") else None)
    path = cwd / (named or "plugins.json")
    if os.path.lexists(path):
        return path
    if named is None:
        return None
    wrong = "--plugins, or the path given to Host.open" if given else "or unset the environment variable CYRENE_PLUGINS"
    raise PluginsFileError([FileFault(f"'{path}' does not exist", file=str(path), mend=f"correct {wrong}")])


def read_plugins_file(path: Path) -> PluginsFile:
    """Read plugins.json and check all of it that needs no plugin; nothing is imported.

    Raises:
        PluginsFileError: it cannot be read, others may write it, it is no JSON, or its top level is wrong.
    """
    try:
        content, distrust = read_operator_file(path, max_bytes=MAX_FILE_BYTES)
    except FileFault as error:
        raise PluginsFileError([error]) from error
    try:
        document = parse(content, source=path.name, refuse_repeated=False)
    except JsonTextError as error:
        raise PluginsFileError([*distrust, error]) from error
    reading = _Reading(path, outline(content))
    found = reading.result(document)
    if distrust or reading.faults:
        raise PluginsFileError([*distrust, *reading.faults, *found.faults])
    return found


class _Reading:
    """One reading of the file, with what it found so far."""

    def __init__(self, path: Path, text: Outline) -> None:
        self.faults: list[FileFault] = []  # of the top level
        self._path = path
        self._base = path.parent.resolve()
        self._text = text
        self._entry_faults: list[EntryFault] = []
        self._notes: list[str] = []
        self._repeated: list[PluginEntry] = []
        self._seen: dict[str, tuple[str, PluginEntry | None]] = {}  # name → pointer of its first entry, and the entry

    def result(self, document: Json) -> PluginsFile:
        is_list = isinstance(document, list)
        top = self._top_level({"plugins": document} if is_list else document)
        for index, raw in enumerate(top.plugins):
            self._read_entry(raw, f"/{index}" if is_list else f"/plugins/{index}", index)
        entries = tuple(entry for _, entry in self._seen.values() if entry is not None)
        return PluginsFile(
            self._path,
            entries,
            tuple(self._entry_faults),
            top.entry_points,
            tuple(self._notes),
            tuple(self._repeated),
        )

    def _top_level(self, document: Json) -> PluginsDocument:
        found = [_repeated(twice, "") for twice in self._text.repeated if twice.pointer.count("/") == 1]
        listed = document.get("plugins") if isinstance(document, dict) else None
        top = PluginsDocument(plugins=listed if isinstance(listed, list) else [])
        try:
            top = PluginsDocument.model_validate(document)
        except ValidationError as error:
            found += [_top_level_problem(problem, document) for problem in problems(error, PluginsDocument)]
        self.faults += [FileFault(p.what, mend=p.mend, **self._place(p.pointer)) for p in found]
        return top

    def _read_entry(self, raw: Any, pointer: str, index: int) -> None:
        if not isinstance(raw, dict):
            what, mend = "an entry must be an object", 'write {"name": "hello"}, or more of its keys'
            self._add_fault(f"entry-{index + 1}", pointer, Problem((), what, mend))
            return
        values = _normal(raw)
        name = str(values.get("name", f"entry-{index + 1}"))[:80]
        found = [*_spelling_problems(raw), *reference_problems(values.get("config"), ("config",))]
        found += [_repeated(twice, pointer) for twice in self._text.repeated if twice.pointer.startswith(f"{pointer}/")]
        where = f"{self._path.name} line {self._text.line_of(pointer)}, {pointer}"
        entry = None
        try:
            entry = PluginEntry.model_validate(values, context={"where": where, "base": self._base})
        except ValidationError as error:
            found += problems(error, PluginEntry)
        for problem in found:
            self._add_fault(name, pointer, problem)
        if name in self._seen:
            self._compare(name, pointer, entry)
        else:
            self._seen[name] = (pointer, None if found else entry)

    def _compare(self, name: str, pointer: str, entry: PluginEntry | None) -> None:
        """Merge a second entry of one name into the first if it says the same; if not, leave it to the catalog."""
        first_pointer, first = self._seen[name]
        first_line, line = self._text.line_of(first_pointer), self._text.line_of(pointer)
        lines = f"lines {first_line} and {line}" if first_line != line else f"line {line}"
        if first is not None and entry is not None and dict(first) == dict(entry):
            self._notes.append(f"plugin '{name}' is listed twice alike, on {lines}: the two are one")
            return
        if first is not None and entry is not None:
            self._repeated.append(entry)
            return
        what = f"the name is listed twice, on {lines}, and the entries differ: the second is not used"
        self._add_fault(name, pointer, Problem((), what, "remove one of the two, or give it another name"))

    def _add_fault(self, name: str, pointer: str, problem: Problem) -> None:
        place = self._place(pointer + problem.pointer)
        self._entry_faults.append(EntryFault(problem.what, name=name, mend=problem.mend, **place))

    def _place(self, pointer: str) -> _Place:
        return {"file": self._path.name, "pointer": pointer, "line": self._text.line_of(pointer)}


class _Place(TypedDict):
    file: str
    pointer: str
    line: int


def _normal(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with a name, where one can be derived, and with one spelling of `class`."""
    values = dict(raw)
    if "class" in values:
        values.pop("struct", None)
    source = values.get("path") or values.get("import")
    if "name" not in values and isinstance(source, str):
        values["name"] = re.split(r"[/.]", source.partition(":")[0].rstrip("/."))[-1].removeprefix("cyrene_").lower()
    return values


def _spelling_problems(raw: dict[str, Any]) -> Iterator[Problem]:
    if "class" in raw and raw["class"] != raw.get("struct", raw["class"]):
        yield Problem(("struct",), "'struct' is another spelling of 'class', and the two differ", "keep one of them")


def _repeated(twice: Repeated, beneath: str) -> Problem:
    keys = tuple(twice.pointer.removeprefix(beneath)[1:].split("/"))
    what = f"key '{keys[-1]}' is given twice, first on line {twice.first_line}"
    return Problem(keys, what, "remove one of the two")


def _top_level_problem(problem: Problem, document: Json) -> Problem:
    if not isinstance(document, dict):
        return Problem((), "plugins.json must be a list of plugins, or an object with them", 'write {"plugins": []}')
    if len(problem.keys) == 1 and problem.keys[0] in keys_of(PluginEntry):
        return Problem(problem.keys, problem.what, 'put the entry into a list: {"plugins": [{"name": …}]}')
    return problem
