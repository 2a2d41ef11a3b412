"""The folders that the operator allows, and the documents below one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cyrene_knowledge.documents import is_document
from cyrene_sdk import ArgumentError, ToolFailure

__all__ = ["Folders", "Listing", "documents_below"]

MAX_FILES = 50_000


class Folders:
    """The allowed folders.

    Args:
        allowed: as the configuration names them.
        base: where relative ones start.
    """

    def __init__(self, allowed: Sequence[str], base: Path) -> None:
        self._base = base.resolve()
        self._given = [self._base / folder for folder in allowed]

    @property
    def allowed(self) -> list[Path]:
        """The allowed folders as they are now, symbolic links followed, none within another."""
        found = dict.fromkeys(folder.resolve() for folder in self._given)
        return [
            folder for folder in found if not any(folder != other and folder.is_relative_to(other) for other in found)
        ]

    def resolved(self, folder: Path) -> Path:
        """Return the folder that a caller means, symbolic links followed."""
        return (self._base / folder).resolve()

    def chosen(self, folder: Path | None) -> list[Path]:
        """Return the folders to index: the one that a caller names, or all that are allowed.

        Raises:
            ArgumentError: it is not within an allowed folder, or is no folder.
            ToolFailure: no folder is allowed, or none of them is there.
        """
        allowed = self.allowed
        if not allowed:
            raise ToolFailure(
                "no folder may be indexed; the operator allows some in plugins.json, "
                'as "config": {"folders": ["docs"]} of this plugin\'s entry'
            )
        if folder is not None:
            return [self._one(folder, allowed)]
        there = [path for path in allowed if path.is_dir()]
        if not there:
            raise ToolFailure(f"none of the folders that may be indexed is there: {self.named(allowed)}")
        return there

    def shown(self, path: Path | str) -> str:
        """Return a path for people and models: from the base folder on where it is below that."""
        path = Path(path)
        return path.relative_to(self._base).as_posix() if path.is_relative_to(self._base) else path.as_posix()

    def named(self, folders: Sequence[Path]) -> str:
        """Return the names of some folders, in quotes."""
        return ", ".join(f"'{self.shown(folder)}'" for folder in folders)

    def _one(self, folder: Path, allowed: Sequence[Path]) -> Path:
        wanted = self.resolved(folder)
        if not any(wanted.is_relative_to(root) for root in allowed):  # said before anything about what is there
            raise ArgumentError(
                f"the folder '{str(folder)[:80]}' may not be indexed; allowed are {self.named(allowed)} "
                "and the folders in them",
                path="/folder",
            )
        if not wanted.is_dir():
            what = "is a file; name its folder" if wanted.exists() else "is not there"
            raise ArgumentError(f"the folder '{str(folder)[:80]}' {what}", path="/folder")
        return wanted


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents below a folder, and the folders below it that could not be listed, with the reason."""

    files: list[Path]
    unlisted: dict[Path, str]


def documents_below(folder: Path, tick: Callable[[int], None]) -> Listing:
    """List the documents below a folder, by name; hidden ones and symbolic links are left out.

    Args:
        folder: where to begin.
        tick: told now and then how many there are so far; raises to stop.
    Raises:
        ArgumentError: there are more than 50,000.
    """
    files: list[Path] = []
    unlisted: dict[Path, str] = {}

    def note(error: OSError) -> None:
        unlisted[Path(error.filename)] = error.strerror or "it cannot be listed"

    for at, folders, names in os.walk(folder, onerror=note):  # follows no links to folders
        tick(len(files))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        documents = (Path(at, name) for name in sorted(names) if is_document(name) and not name.startswith("."))
        files += (path for path in documents if not path.is_symlink())
        if len(files) > MAX_FILES:
            raise ArgumentError(
                f"there are more than {MAX_FILES} documents below '{folder.name}'; name a folder in it", path="/folder"
            )
    return Listing(files, unlisted)
