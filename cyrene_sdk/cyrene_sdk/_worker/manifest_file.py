"""The file `cyrene-plugin.json`: where it lies beside a plugin's code, found without importing, and its text."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

__all__ = ["MANIFEST", "MANIFEST_FILE", "document", "locate", "manifest_path", "manifest_text"]

MANIFEST = 1
"""The number of the file's format."""

MANIFEST_FILE = "cyrene-plugin.json"


def locate(module: str, path: Sequence[str] | None = None) -> Path | None:
    """Return where a module's code is, without importing it or any package above it.

    Args:
        module: a dotted name.
        path: the folders to look in; None for all that this interpreter can import from.
    Returns:
        The folder of the outermost regular package, or the file of a single module; None where there is neither
        (nothing of that name, a built-in module, a zip file).
    """
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    spec = _find_top(parts[0], path)
    for part in parts[1:]:
        if spec is None or spec.origin is not None or spec.submodule_search_locations is None:
            break
        # By its last part alone: for the dotted name, a namespace inside a namespace asks for the imported parent.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations is not None else origin


def manifest_path(location: Path) -> Path:
    """Return the place of the manifest of the plugin that `locate` found at `location`."""
    if location.is_dir():
        return location / MANIFEST_FILE
    return location.with_name(f"{location.stem}.{MANIFEST_FILE}")


def document(described: Mapping[str, Any], attribute: str | None) -> dict[str, Any]:
    """Return the JSON object of the file, keys in their order.

    Args:
        described: what describing the plugin answered: `sdk_contract`, `metadata`, `tools`, perhaps `config_schema`.
        attribute: the class or factory; None where the module has only one.
    """
    written: dict[str, Any] = {
        "manifest": MANIFEST,
        "sdk_contract": described["sdk_contract"],
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    if attribute is not None:
        written["attribute"] = attribute
    written |= {"metadata": described["metadata"], "tools": described["tools"]}
    return written | {key: described[key] for key in ("tool_faults", "config_schema") if described.get(key)}


def manifest_text(written: Mapping[str, Any]) -> str:
    """Return the file's text: the same for the same document, and fit to be committed."""
    return json.dumps(written, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _find_top(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    if path is not None:
        return PathFinder.find_spec(name, path)
    # Every finder, since editable installs bring their own; importlib.util.find_spec would believe sys.modules first.
    found = (finder.find_spec(name, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in found if spec is not None), None)
