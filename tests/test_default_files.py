"""The plugins.json and cyrene.toml that come with the host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cyrene_host.catalog.settings import Settings, read_settings

ROOT = Path(__file__).parent.parent


def test_the_default_plugin_list_names_every_bundled_plugin() -> None:
    listed = json.loads((ROOT / "plugins.json").read_text(encoding="utf-8"))

    bundled = {project.parent.name for project in ROOT.glob("plugins/*/pyproject.toml")}
    assert {entry["name"] for entry in listed["plugins"]} == bundled


def test_the_default_settings_change_nothing() -> None:
    assert read_settings(ROOT / "cyrene.toml", {}).model_dump() == Settings().model_dump()


def test_each_setting_shown_in_the_default_settings_is_the_default() -> None:
    text = (ROOT / "cyrene.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE))
    assert shown["host"].pop("state_dir") == "state"  # the default is of the platform

    defaults = Settings().model_dump(mode="json")
    different = {
        f"{table}.{name}": value
        for table, settings in shown.items()
        for name, value in settings.items()
        if defaults[table][name] != value
    }
    assert (different, len(shown["limits"])) == ({}, 8)


@pytest.mark.parametrize("plugin", sorted(project.parent.name for project in ROOT.glob("plugins/*/pyproject.toml")))
def test_the_manifest_of_a_bundled_plugin_is_up_to_date(plugin: str) -> None:
    command = [sys.executable, "-m", "cyrene_host.cli", "manifest", "build", "--check", f"plugins/{plugin}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)

    assert (ended.returncode, ended.stderr) == (0, "")
