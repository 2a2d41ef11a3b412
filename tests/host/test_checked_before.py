"""A second start believes what the first one checked, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host
from cyrene_host.catalog.vouched import Vouched
from cyrene_host.host.inventory import Inventory
from cyrene_sdk.types import ToolDefinition

WEATHER = """
from cyrene_sdk import BasePlugin, PluginMetadata, ToolDefinition, tool


class Weather(BasePlugin):
    meta = PluginMetadata(name="weather", version="1.0.0")

    @tool(timeout_ms=3000, danger_level="low")
    async def now(self, place: str) -> str:
        '''Say how the weather is. Call it when asked for today; not for tomorrow.'''
        return f"fine in {place}"
"""
TOOL = {
    "name": "now",
    "timeout_ms": 3000,
    "danger_level": "low",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


@pytest.fixture
def weather(plugins_json: Callable[..., Path]) -> Callable[..., Path]:
    """Return a function that writes plugins.json and a plugin that ships its manifest."""

    def write(**entry: Any) -> Path:
        file = plugins_json([{"name": "weather", "path": "plugins/weather", **entry}], weather=WEATHER)
        metadata = {"name": "weather", "version": "1.0.0"}
        written = {"manifest": 1, "sdk_contract": 1, "attribute": "Weather", "metadata": metadata, "tools": [TOOL]}
        manifest_of(file).write_text(json.dumps(written))
        return file

    return write


def manifest_of(file: Path) -> Path:
    return file.parent / "plugins/weather/weather.cyrene-plugin.json"


def spoil(file: Path) -> None:
    """Change one byte, so that the tool's schema is none."""
    text = manifest_of(file).read_text()
    manifest_of(file).write_text(text.replace('"string"', '"strinG"'))


def is_vouched(file: Path) -> bool:
    manifest = Inventory.read(file, vouched=Vouched).catalog.plugins["weather"].manifest
    assert manifest is not None
    return manifest.is_vouched


async def open_once(file: Path) -> None:
    async with Host.open(file, start="called") as host:
        assert all(report.is_well for report in host.plugins.list())


async def test_the_second_start_believes_the_manifest_and_works_as_the_first(weather: Callable[..., Path]) -> None:
    file = weather()
    async with Host.open(file, start="called") as host:
        (first,) = host.tools.list()
        reports = host.plugins.list()
    assert is_vouched(file)
    async with Host.open(file, start="called") as host:
        assert host.plugins.list() == reports
        (second,) = host.tools.list()
        refused = await host.call("weather.now", {"place": 5, "more": 1})
    async with Host.open(file, start="called") as host:
        answered = await host.call("now", {"place": "Kiel"})

    assert second == first
    assert second.definition == ToolDefinition.model_validate(TOOL)
    assert refused.error_kind == "invalid_arguments"
    assert answered.output == "fine in Kiel"


async def test_one_changed_byte_is_checked_again_and_a_schema_it_spoils_is_refused(
    weather: Callable[..., Path],
) -> None:
    file = weather()
    await open_once(file)
    spoil(file)

    for _ in range(2):  # what has a fault is never believed
        async with Host.open(file, start="called") as host:
            (error,) = host.plugins.get("weather").tool_errors
            refused = await host.call("weather.now", {"place": "Kiel"})
        assert "strinG" in error.what
        assert refused.error_kind == "schema_invalid"
        assert not is_vouched(file)


async def test_a_list_that_another_version_made_is_not_believed(weather: Callable[..., Path], tmp_path: Path) -> None:
    file = weather()
    await open_once(file)
    kept = json.loads((tmp_path / "state/checked.json").read_text())
    kept["checked_by"][0] = "cyrene-host 0.0.9"
    (tmp_path / "state/checked.json").write_text(json.dumps(kept))
    assert not is_vouched(file)
    await open_once(file)

    assert is_vouched(file)


async def test_a_host_whose_state_cannot_be_written_checks_every_time(
    weather: Callable[..., Path], tmp_path: Path
) -> None:
    file = weather()
    (tmp_path / "state").write_text("a file in the way")

    for _ in range(2):
        async with Host.open(file, start="called") as host:
            refused = await host.call("now", {"place": "Kiel"})
            notes = host.notes
        assert "the state directory cannot be used" in refused.error
        assert not [note for note in notes if "checked.json" in note]
        assert not is_vouched(file)


async def test_the_operators_settings_go_before_a_definition_that_is_believed(weather: Callable[..., Path]) -> None:
    await open_once(weather())
    file = weather(tools={"now": {"timeout_ms": 500}})
    assert is_vouched(file)
    async with Host.open(file, start="called") as host:
        (tool,) = host.tools.list()
    file = weather(tools={"nwo": {"timeout_ms": 500}})
    async with Host.open(file, start="called") as host:
        report = host.plugins.get("weather")

    assert tool.definition == ToolDefinition.model_validate({**TOOL, "timeout_ms": 500})
    assert report.state == "blocked"
    assert report.error is not None
    assert report.error.mend == "did you mean 'now'?"
