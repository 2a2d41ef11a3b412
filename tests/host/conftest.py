"""Plugins on disk for the tests of the host."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HostFolder = Callable[..., Path]


@pytest.fixture
def plugins_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that writes plugin modules and a plugins.json, with a state directory of its own."""
    monkeypatch.setenv("CYRENE_HOST__STATE_DIR", str(tmp_path / "state"))

    def write(entries: list[dict[str, Any]] | dict[str, Any], **modules: str) -> Path:
        for name, source in modules.items():
            folder = tmp_path / "plugins" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        file = tmp_path / "plugins.json"
        file.write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")
        file.chmod(0o600)
        return file

    return write
