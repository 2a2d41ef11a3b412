"""What stands for a plugin's files: the key of a kept manifest, and the digest that an operator pins."""

from __future__ import annotations

import csv
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cyrene_host.catalog.sources import Source, SourceError
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.manifest_file import manifest_path

__all__ = ["check_pin", "source_digest", "source_key"]

MAX_FILES = 5_000
"""A plugin's package has tens of files; a folder with more is a mistake, and reading it all would slow every start."""


class _UncountableError(Exception):
    """The files of a source are unknown, or too many."""


_NO_CODE = frozenset({"__pycache__", "node_modules"})
_WRITTEN_BY_INSTALLERS = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"})


def source_key(source: Source) -> str | None:
    """Return what a manifest is kept under: it changes whenever the manifest might.

    An installed wheel stands by name, version and the digest of its RECORD; anything else by path, size and time of
    change of its package's files. Both with the class, the SDK contract and the Python version.

    Returns:
        One line of text; None where the files are not known.
    """
    record = _record_of_wheel(source)
    if record is not None:
        files = f"wheel {source.distribution} {source.version} {hashlib.sha256(record).hexdigest()}"
    elif source.location is not None:
        files = f"files {source.location} {_digest(_stamps(source.location))}"
    else:
        return None
    python = f"{source.python or ''} {sys.version_info.major}.{sys.version_info.minor}".strip()
    return f"{source.module}:{source.attribute or ''} | {files} | contract {CONTRACT} | python {python}"


def source_digest(source: Source, *, plugin: str | None = None) -> str:
    """Return the sha256 (hex) over a plugin's files as they are now: what `pin` names.

    Of an installed wheel these are the files that its RECORD lists, without those that installers write, so that one
    wheel has one digest everywhere; otherwise the source tree.

    Args:
        plugin: the plugin's name, for the error.
    Raises:
        SourceError: the files are not known, cannot be read, or are more than 5,000.
    """
    try:
        return _digest(_contents(source))
    except (OSError, _UncountableError) as error:
        raise SourceError(
            f"'{source.module}' has no digest: {error}",
            plugin=plugin,
            where=source.where,
            mend="remove 'sha256' from the entry's 'pin', or install the plugin as a wheel",
        ) from error


def check_pin(source: Source, *, plugin: str, version: str | None, sha256: str | None) -> None:
    """Compare a plugin's files with the `pin` of its entry.

    Raises:
        SourceError: the version or the digest differs, or cannot be told.
    """
    if version and source.version != version:
        raise SourceError(
            f"version '{version}' is pinned, found is '{source.version or 'none'}'",
            plugin=plugin,
            where=source.where,
            mend="install the pinned version, or correct 'pin' in the entry",
        )
    if not sha256:
        return
    found = source_digest(source, plugin=plugin)
    if found != sha256.lower():
        raise SourceError(
            f"its files are not the pinned ones: their sha256 is '{found}', not '{sha256[:64]}'",
            plugin=plugin,
            where=source.where,
            mend="find out what changed; if it is wanted, put the new sha256 into 'pin'",
        )


def _record_of_wheel(source: Source) -> bytes | None:
    """Return the RECORD of the wheel that the source's files came in; None for editable and other sources."""
    if source.dist_path is None:
        return None
    try:
        record = (source.dist_path / "RECORD").read_bytes()
    except OSError:
        return None
    top = source.module.partition(".")[0].encode()
    lists_the_module = record.startswith((top + b"/", top + b".py,")) or any(
        start in record for start in (b"\n" + top + b"/", b"\n" + top + b".py,")
    )
    return record if lists_the_module else None


def _stamps(location: Path) -> Iterator[str]:
    if location.is_file():
        # A single module may import its neighbours.
        files: Iterable[Path] = [*sorted(location.parent.glob("*.py")), manifest_path(location)]
    else:
        files = _tree(location)
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue  # gone since it was listed: the key changes by its absence
        yield f"{file} {stat.st_size} {stat.st_mtime_ns}"


def _contents(source: Source) -> Iterator[str]:
    record = _record_of_wheel(source)
    if record is not None and source.dist_path is not None:
        root, files = source.dist_path.parent, _recorded(source.dist_path, record)
    elif source.location is not None:
        place = source.folder or source.location
        root, files = (place, _tree(place)) if place.is_dir() else (place.parent, iter([place]))
    else:
        raise _UncountableError("its files are not known")
    for count, file in enumerate(files, start=1):
        if count > MAX_FILES:
            raise _UncountableError(f"it has more than {MAX_FILES} files")
        yield f"{file.relative_to(root).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}"


def _recorded(dist_path: Path, record: bytes) -> Iterator[Path]:
    names = sorted(row[0] for row in csv.reader(record.decode().splitlines()) if row)
    for name in names:
        is_own = not name.startswith(("..", "/")) and not name.endswith(".pyc")
        if is_own and not (name.startswith(dist_path.name) and name.rpartition("/")[2] in _WRITTEN_BY_INSTALLERS):
            yield dist_path.parent / name


def _tree(root: Path) -> Iterator[Path]:
    """Yield the first files below a folder in a fixed order, one more than `MAX_FILES` at most."""
    left = MAX_FILES + 1
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NO_CODE and not name.startswith("."))
        for name in sorted(names)[:left]:
            if not name.endswith(".pyc"):
                left -= 1
                yield Path(folder, name)
        if left <= 0:
            return


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode(errors="surrogateescape") + b"\n")
    return digest.hexdigest()
