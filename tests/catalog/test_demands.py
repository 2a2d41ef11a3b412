"""An entry that demands what this host cannot give is blocked, and its code is not touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.manifests import ManifestStore
from cyrene_host.catalog.plugins_file import read_plugins_file
from cyrene_host.catalog.settings import Settings
from cyrene_host.catalog.state import PluginState

Load = Callable[..., Catalog]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that loads a catalog of one entry; its code, in the folder `w`, leaves a mark."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "weather.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")

    def loaded(entry: dict[str, Any]) -> Catalog:
        file = tmp_path / "plugins.json"
        file.write_text(json.dumps([{"name": "w", **entry}]))
        file.chmod(0o600)
        store = ManifestStore(tmp_path / "state")
        return Catalog.load(read_plugins_file(file), Settings(), entry_points={}, store=store)

    return loaded


@pytest.mark.parametrize(
    ("entry", "what", "key", "mend"),
    [
        (
            {"mcp": {"command": "mcp-files"}},
            "it is an MCP server, and this host connects to none",
            "mcp",
            "disable the entry",
        ),
        (
            {"path": "w", "permissions": {"network": False}},
            "its 'permissions' cannot be enforced: this host runs plugins without a sandbox",
            "permissions",
            "remove 'permissions' if you trust its code, or disable the entry",
        ),
    ],
    ids=["mcp", "permissions"],
)
def test_what_cannot_be_given_blocks_the_plugin_before_its_code_runs(
    load: Load, tmp_path: Path, entry: dict[str, Any], what: str, key: str, mend: str
) -> None:
    plugin = load(entry).plugins["w"]

    assert plugin.state is PluginState.BLOCKED
    assert str(plugin.error) == f"plugin 'w': {what}\n  where: plugins.json line 1, /0/{key}\n  mend:  {mend}"
    assert not (tmp_path / "mark").exists()
    assert load({**entry, "enabled": False}).plugins["w"].state is PluginState.DISABLED


def test_a_plugin_inside_the_host_is_warned_of_until_it_is_trusted(load: Load) -> None:
    inside: dict[str, Any] = {"path": "w", "runtime": "inline"}

    assert load(inside).notes == [
        'plugin \'w\' runs inside the host: set "trust" to "full" if you trust its code (plugins.json line 1, /0)'
    ]
    for unwarned in ({**inside, "trust": "full"}, {**inside, "enabled": False}, {"path": "w"}):
        assert load(unwarned).notes == []
