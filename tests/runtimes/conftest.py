"""Hosts with a plugin that harms its worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host

PLUGINS = Path(__file__).parent / "plugins"

HostWith = Callable[..., Any]


@pytest.fixture(scope="session")
def harmful_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests: a plugin's manifest is found out once."""
    folder = tmp_path_factory.mktemp("runtimes")
    for source in PLUGINS.glob("*.py"):
        (folder / source.stem).mkdir()
        (folder / source.stem / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


@pytest.fixture
def host_with(harmful_folder: Path) -> HostWith:
    """Return a function that makes a host of two plugins, `harmful` and `steady`, each in its worker."""

    def made(*, overrides: dict[str, Any] | None = None, **entry: Any) -> Any:
        limits = {"kill_grace_s": 0.3, **entry.pop("limits", {})}
        entries = [
            {"name": "harmful", "path": "harmful", "limits": limits, **entry},
            {"name": "steady", "path": "steady"},
        ]
        file = harmful_folder / "plugins.json"
        file.write_text(json.dumps(entries), encoding="utf-8")
        file.chmod(0o600)
        return Host.open(file, overrides={"host.state_dir": str(harmful_folder / "state"), **(overrides or {})})

    return made
