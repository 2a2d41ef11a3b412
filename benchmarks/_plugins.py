"""Plugins made for a run: one that greets, a package of hooks, and many installed ones with shipped manifests."""

from __future__ import annotations

import importlib.util
import json
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "tool_schema",
    "write_distributions",
    "write_greeter",
    "write_hooks",
    "write_interpreter",
    "write_plugins_json",
]

_INLINE = {"runtime": "inline"}
_SDK_NEEDS = (
    "annotated_types",
    "cyrene_sdk",
    "pluggy",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
)

_GREETER = '''"""A plugin that greets."""

from cyrene_sdk import BasePlugin, PluginMetadata, tool


class BenchPlugin(BasePlugin):
    meta = PluginMetadata(name="bench", version="1.0.0", description="Greets.")

    @tool(danger_level="low", max_retries=2)
    async def greet(self, name: str, n: int) -> str:
        """Greet somebody n times."""
        return f"hi {name} {n}"
'''
_HOOKS = '''"""Hooks that do nothing but run."""

from cyrene_sdk.hooks import hookimpl


@hookimpl
def before_call(tool_id, arguments, context):
    return None


@hookimpl
def after_call(tool_id, result, context):
    return None
'''
_NEVER_IMPORTED = '''"""Leaves a mark when it is imported, which listing tools must never do."""

from pathlib import Path

Path(__file__).with_name("imported").touch()
'''


def write_greeter(
    folder: Path, module: str, *, entry: Mapping[str, Any] = _INLINE, copies: int = 1, hooks: str | None = None
) -> Path:
    """Write a `path` plugin with the tool `greet`, and return its plugins.json.

    Args:
        folder: made here; the host's state goes below it too.
        module: the import name of the plugin.
        entry: the keys of its entry that say where it runs.
        copies: how many entries name it: `bench`, `bench1`, `bench2` and so on.
        hooks: the entry point of a hook package to enable.
    """
    package = folder / "bench" / module
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_GREETER)
    shared = {"path": "./bench", "import": module, "class": "BenchPlugin", "trust": "full", **entry}
    entries = [{"name": f"bench{number or ''}", **shared} for number in range(copies)]
    plugins_json = write_plugins_json(folder, entries)
    if hooks is not None:
        with (folder / "cyrene.toml").open("a") as settings:
            settings.write(f'\n[hooks]\nenabled = ["{hooks}"]\n')
    return plugins_json


def write_hooks(site: Path) -> str:
    """Install a hook package into `site`, put that on the search path, and return its entry point's name."""
    site.mkdir(parents=True)
    (site / "bench_hooks.py").write_text(_HOOKS)
    _write_dist_info(site, "bench-hooks", "[cyrene.hooks]\nbench = bench_hooks\n", files=["bench_hooks.py"])
    sys.path.append(str(site))
    return "bench"


def write_plugins_json(folder: Path, entries: list[dict[str, Any]]) -> Path:
    """Write plugins.json and a cyrene.toml that keeps the state beside it, the audit off; return the former."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cyrene.toml").write_text(f"[host]\nstate_dir = {json.dumps(str(folder / 'state'))}\naudit = false\n")
    plugins_json = folder / "plugins.json"
    plugins_json.write_text(json.dumps(entries, indent=1))
    return plugins_json


def write_interpreter(folder: Path) -> str:
    """Make a virtual environment of links to `cyrene-sdk` and what it needs, and of no more; return its folder."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in _SDK_NEEDS:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        found = origin.parent if origin.name == "__init__.py" else origin
        (site / found.name).symlink_to(found)
    return str(folder)


def write_distributions(site: Path, *, plugins: int, tools: int) -> list[dict[str, Any]]:
    """Install plugins into `site`, each with its entry point and shipped manifest; return their entries."""
    names = [f"bench-{number:03d}" for number in range(plugins)]
    for number, name in enumerate(names):
        module = name.replace("-", "_")
        package = site / module
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(_NEVER_IMPORTED)
        manifest = _manifest(name, [_definition(number * tools + place) for place in range(tools)])
        (package / "cyrene-plugin.json").write_text(json.dumps(manifest))
        files = [f"{module}/__init__.py", f"{module}/cyrene-plugin.json"]
        _write_dist_info(site, name, f"[cyrene.plugins]\n{name} = {module}:BenchPlugin\n", files=files)
    return [{"name": name} for name in names]


def tool_schema(number: int) -> dict[str, Any]:
    """Return the parameters of one of many tools: two to six properties, every fifth with nested objects."""
    properties: dict[str, Any] = {
        "query": {"type": "string", "description": f"what to look for, variant {number}", "minLength": 1},
        "limit": {"type": "integer", "description": "how many at most", "minimum": 1, "maximum": 100, "default": 10},
        "lang": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "language code", "default": None},
        "mode": {"enum": ["fast", "safe", "exact"], "description": "how to search", "default": "fast"},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "only with these", "default": []},
        "exact": {"type": "boolean", "description": "no near matches", "default": False},
    }
    chosen = dict(list(properties.items())[: 2 + number % 5])
    schema: dict[str, Any] = {"type": "object", "properties": chosen, "required": ["query"]}
    if number % 5 == 0:
        field = {"type": "string", "minLength": 1}
        schema["$defs"] = {
            "Filter": {
                "type": "object",
                "properties": {"field": field, "op": {"enum": ["eq", "lt", "gt"]}, "value": {"type": "string"}},
                "required": ["field", "op", "value"],
            }
        }
        chosen["filters"] = {"type": "array", "items": {"$ref": "#/$defs/Filter"}, "description": "all must hold"}
    return schema


def _definition(number: int) -> dict[str, Any]:
    return {
        "id": "",
        "name": f"search_{number:04d}",
        "displayName": "",
        "description": f"Search collection {number}. Call it when a user asks for something of that collection.",
        "category": "tool",
        "complexity": "simple",
        "parameters": tool_schema(number),
        "danger_level": "low",
    }


def _manifest(name: str, tools: list[dict[str, Any]]) -> Mapping[str, Any]:
    metadata = {"name": name, "version": "1.0.0"}
    return {"manifest": 1, "sdk_contract": 2, "attribute": "BenchPlugin", "metadata": metadata, "tools": tools}


def _write_dist_info(site: Path, name: str, entry_points: str, *, files: list[str]) -> None:
    folder = site / f"{name.replace('-', '_')}-1.0.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n\n" + "text\n" * 200)
    (folder / "entry_points.txt").write_text(entry_points)
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
