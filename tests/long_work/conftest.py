"""Hosts with a plugin that works for long, in both runtimes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host

PLUGIN = Path(__file__).parent / "plugin.py"


class Site:
    """A folder with plugins.json and the plugin `long`, and a state directory that outlives hosts."""

    def __init__(self, folder: Path, runtime: str) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.file = folder / "plugins.json"
        self.ledger = folder / "ledger"
        self.write(PLUGIN.read_text(encoding="utf-8"))
        entry = {"name": "long", "path": ".", "import": "long_plugin", "class": "Long", "runtime": runtime}
        self.file.write_text(json.dumps([{**entry, "limits": {"kill_grace_s": 0.5}}]), encoding="utf-8")
        self.file.chmod(0o600)

    def write(self, source: str) -> None:
        """Put another text in the place of the plugin's."""
        (self.folder / "long_plugin.py").write_text(source, encoding="utf-8")

    @property
    def notes(self) -> list[str]:
        """What the plugin wrote into its ledger."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    @property
    def settings(self) -> dict[str, Any]:
        """The overrides that every host here has."""
        return {"host.state_dir": str(self.state)}

    def open(self, *, overrides: dict[str, Any] | None = None, **more: Any) -> Any:
        """Return `Host.open` on this folder."""
        return Host.open(self.file, overrides={**self.settings, **(overrides or {})}, **more)


@pytest.fixture(params=["inline", "process"])
def runtime(request: pytest.FixtureRequest) -> str:
    """Each runtime in turn."""
    return str(request.param)


@pytest.fixture
def site(tmp_path: Path, runtime: str) -> Site:
    """A folder with the plugin in one of the runtimes."""
    return Site(tmp_path, runtime)
