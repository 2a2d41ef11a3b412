"""A plugin's tools are what its manifest says, with the operator's settings over it."""

from __future__ import annotations

from typing import Any

import pytest

from cyrene_host.catalog.definitions import CatalogTool, tools_of, unknown_overrides
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.manifests import Manifest
from cyrene_sdk import PluginMetadata, ToolDefinition


def manifest(*definitions: ToolDefinition, **faults: str) -> Manifest:
    return Manifest(
        sdk_contract=1,
        python="3.11",
        attribute=None,
        metadata=PluginMetadata(name="weather", version="1.0.0"),
        tools=definitions,
        tool_faults=faults,
        config_schema=None,
    )


def entry(**tools: dict[str, Any]) -> PluginEntry:
    given = {"name": "weather", "import": "cyrene_weather", "tools": tools}
    return PluginEntry.model_validate(given, context={"where": "plugins.json line 3, /0"})


FORECAST = ToolDefinition(name="forecast", timeout_ms=3000, triggers=["will it rain"])
NOW = ToolDefinition(name="now")


def tools(given: PluginEntry | None, *definitions: ToolDefinition, **faults: str) -> tuple[CatalogTool, ...]:
    return tools_of("weather", given, manifest(*definitions, **faults), where="plugins.json line 3, /0")


@pytest.mark.parametrize("given", [None, entry()])
def test_without_settings_a_tool_is_what_its_plugin_says(given: PluginEntry | None) -> None:
    (tool,) = tools(given, FORECAST)

    assert tool == CatalogTool("weather", FORECAST)
    assert tool.id == "weather.forecast"


def test_the_operators_settings_go_before_the_definition() -> None:
    given = entry(forecast={"timeout_ms": 500, "max_retries": 2, "triggers": [], "not_when": ["snow"]})
    (tool, other) = tools(given, FORECAST, NOW)

    definition = tool.definition
    assert (definition.timeout_ms, definition.max_retries) == (500, 2)
    assert (definition.triggers, definition.not_when) == ([], ["snow"])
    assert other.definition is NOW


def test_settings_for_one_tool_go_before_those_for_all() -> None:
    given = entry(**{"*": {"timeout_ms": 500, "max_retries": 1}, "forecast": {"max_retries": 3, "alias": "rain"}})
    (tool, other) = tools(given, FORECAST, NOW)

    assert (tool.definition.timeout_ms, tool.definition.max_retries) == (500, 3)
    assert tool.override is not None
    assert tool.override.alias == "rain"
    assert (other.definition.timeout_ms, other.definition.max_retries) == (500, 1)


def test_the_danger_that_the_operator_sets_stays_beside_the_definition() -> None:
    (tool,) = tools(entry(forecast={"danger_level": "high"}), FORECAST)

    assert tool.definition.danger_level is None
    assert tool.override is not None
    assert tool.override.danger_level == "high"


def test_of_tools_with_one_name_the_first_is_used_and_the_others_are_kept_with_their_fault() -> None:
    first, second, third = tools(None, NOW, NOW, NOW)

    assert [tool.id for tool in (first, second, third)] == ["weather.now", "weather.now#2", "weather.now#3"]
    assert first.fault is None
    assert str(third.fault) == str(second.fault)
    assert str(second.fault) == (
        "plugin 'weather': it has two tools named 'now'; the first is used\n"
        "  where: plugins.json line 3, /0, tool 'now'\n"
        "  mend:  rename one of them"
    )


def test_a_tool_without_a_name_or_with_a_fault_of_its_own_says_so() -> None:
    nameless, broken = tools(None, ToolDefinition(), NOW, now="complexity() says 'complex'")

    assert str(nameless.fault) == (
        "plugin 'weather': a tool has no name\n"
        "  where: plugins.json line 3, /0, tool ''\n"
        "  mend:  give its definition a name"
    )
    assert str(broken.fault) == (
        "plugin 'weather': tool 'now': complexity() says 'complex'\n"
        "  where: plugins.json line 3, /0, tool 'now'\n"
        "  mend:  let the method and the definition agree"
    )


def test_settings_for_tools_that_are_not_there_are_an_error() -> None:
    error = unknown_overrides("weather", entry(forcast={"enabled": False}, zzz={}), manifest(FORECAST, NOW))

    assert str(error) == (
        "plugin 'weather': its entry sets tools that it does not have: 'forcast', 'zzz'\n"
        "  where: plugins.json line 3, /0/tools/forcast\n"
        "  mend:  did you mean 'forecast'?"
    )


def test_an_error_without_a_near_name_tells_those_there_are() -> None:
    unknown = entry(zzz={})

    assert getattr(unknown_overrides("weather", unknown, manifest(FORECAST, NOW)), "mend", "") == (
        "it has 'forecast', 'now'"
    )
    assert getattr(unknown_overrides("weather", unknown, manifest()), "mend", "") == "it has none"


@pytest.mark.parametrize("given", [None, entry(), entry(**{"*": {"enabled": False}}), entry(forecast={})])
def test_settings_for_known_or_all_tools_are_fine(given: PluginEntry | None) -> None:
    assert unknown_overrides("weather", given, manifest(FORECAST, NOW)) is None
