"""Every tool is offered under a name of its own, and every spelling that was offered reads back."""

from __future__ import annotations

import dataclasses
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cyrene_host.catalog.names import NamedTool, NameMode, ToolNames

MODES: list[NameMode] = ["short", "qualified"]
OFFERABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def names(*tools: str | NamedTool) -> ToolNames:
    """Names of tools that are given by their ids."""
    return ToolNames([tool if isinstance(tool, NamedTool) else NamedTool(*tool.split(".", 1)) for tool in tools])


def test_a_unique_tool_is_offered_by_its_short_name() -> None:
    offered = names("weather.forecast", "clock.now")

    assert offered.offered("weather.forecast") == "forecast"
    assert offered.offered("weather.forecast", "qualified") == "weather__forecast"


@pytest.mark.parametrize(
    "spelling", ["weather.forecast", "weather__forecast", "forecast", "weather_now", "operators_word"]
)
def test_every_spelling_of_a_tool_reads_back(spelling: str) -> None:
    tool = NamedTool("weather", "forecast", definition_id="weather_now", alias="operators_word")

    assert names(tool, "clock.now").resolve(spelling) == "weather.forecast"


def test_two_tools_of_one_name_are_offered_with_their_plugins() -> None:
    offered = names("weather.now", "clock.now")

    assert offered.offered("weather.now") == "weather__now"
    assert offered.offered("clock.now") == "clock__now"
    assert offered.resolve("now") is None
    assert offered.meanings("now") == ["clock.now", "weather.now"]


def test_an_unknown_spelling_means_nothing() -> None:
    assert names("weather.now").resolve("later") is None
    assert names("weather.now").meanings("later") == []


def test_the_operators_alias_goes_before_every_other_name() -> None:
    aliased = NamedTool("weather", "forecast", alias="now")
    offered = names(aliased, "clock.now")

    assert offered.offered("weather.forecast") == "now"
    assert offered.offered("weather.forecast", "qualified") == "now"
    assert offered.offered("clock.now") == "clock__now"
    assert offered.resolve("now") == "weather.forecast"


def test_an_alias_of_two_tools_is_no_alias() -> None:
    offered = names(NamedTool("a", "one", alias="same"), NamedTool("b", "two", alias="same"))

    assert [offered.offered("a.one"), offered.offered("b.two")] == ["one", "two"]
    assert offered.resolve("same") is None


def test_a_definitions_id_takes_no_name_from_another_tool() -> None:
    offered = names(NamedTool("mine", "thing", definition_id="now"), "clock.now")

    assert offered.offered("clock.now") == "now"
    assert offered.resolve("now") == "clock.now"


@pytest.mark.parametrize("name", ["clock__now", "clock.now"])
def test_a_tool_named_like_anothers_qualified_name_or_id_takes_nothing(name: str) -> None:
    offered = names(NamedTool("mine", name), "clock.now", "weather.now")

    assert offered.offered("clock.now") == "clock__now"
    assert offered.resolve(name) == "clock.now"
    assert offered.resolve(offered.offered(f"mine.{name}")) == f"mine.{name}"


def test_two_equal_qualified_names_stay_two() -> None:
    offered = names("a__b.c", "a.b__c", "x.c", "x.b__c")
    shown = [offered.offered(tool) for tool in ("a__b.c", "a.b__c")]

    assert re.fullmatch("a__b__c_[0-9a-f]{6}", shown[0])
    assert shown[1] == "a__b__c"
    assert [offered.resolve(name) for name in shown] == ["a__b.c", "a.b__c"]


def test_a_name_that_no_provider_takes_is_made_one_with_a_digest() -> None:
    offered = names("weather.天气", "weather.天候", "weather.a b")

    assert re.fullmatch(r"___[0-9a-f]{6}", offered.offered("weather.天气"))
    assert offered.offered("weather.天气") != offered.offered("weather.天候")
    assert re.fullmatch(r"a_b_[0-9a-f]{6}", offered.offered("weather.a b"))
    assert offered.resolve("天气") == "weather.天气"


def test_a_long_name_is_cut_and_keeps_a_digest() -> None:
    one, other = "x" * 80 + "1", "x" * 80 + "2"
    offered = names(f"p.{one}", f"p.{other}")

    assert re.fullmatch(r"x{57}_[0-9a-f]{6}", offered.offered(f"p.{one}"))
    assert offered.offered(f"p.{one}") != offered.offered(f"p.{other}")
    assert len(offered.offered(f"p.{one}", "qualified")) == 64


def test_near_spellings_are_told_as_ids_of_up_to_three_tools() -> None:
    offered = names("weather.forecast", "clock.now", "a.forecasts", "b.forecaster", "c.forecasted")

    assert offered.near("weather.forecats")[0] == "weather.forecast"
    assert len(offered.near("forecast_")) == 3
    assert offered.near("zzz") == []


def test_a_tool_without_a_name_breaks_nothing() -> None:
    offered = names("weather.", "weather.now")

    assert OFFERABLE.fullmatch(offered.offered("weather."))
    assert offered.resolve("") is None
    assert offered.resolve(offered.offered("weather.")) == "weather."


# Few letters, so that names of one tool are often names of another; among them the parts that names are made of.
PARTS = st.lists(st.sampled_from(["a", "b", "__", "_", "-", "1"]), min_size=1, max_size=4).map("".join)
NAMES = st.one_of(PARTS, st.sampled_from(["a__a", "a__b", "b__a", "天", "a.b", "a b", "", "x" * 70, "\ud800"]))
TOOLS = st.lists(
    st.builds(
        NamedTool,
        plugin=PARTS,
        name=NAMES,
        definition_id=st.one_of(st.just(""), NAMES),
        alias=st.one_of(st.just(""), PARTS),
    ),
    max_size=8,
    unique_by=lambda tool: tool.id,
)


@settings(max_examples=400, deadline=None)
@given(TOOLS, st.integers())
def test_offered_names_are_unique_fit_every_provider_and_read_back_in_any_order(
    tools: list[NamedTool], seed: int
) -> None:
    shuffled = list(tools)
    random.Random(seed).shuffle(shuffled)
    offered, again = ToolNames(tools), ToolNames(shuffled)

    for mode in MODES:
        shown = {tool.id: offered.offered(tool.id, mode) for tool in tools}
        assert len(set(shown.values())) == len(tools)
        for tool_id, name in shown.items():
            assert OFFERABLE.fullmatch(name)
            assert offered.resolve(name) == tool_id
            assert again.offered(tool_id, mode) == name
            assert again.resolve(name) == tool_id
    for tool in tools:
        assert offered.resolve(tool.id) == tool.id


@settings(max_examples=400, deadline=None)
@given(TOOLS, st.integers(0, 7))
@example([NamedTool("a", "b__c"), NamedTool("a__b", "c")], 1)
@example([NamedTool("a__b", "c"), NamedTool("a", "b__c")], 1)
@example([NamedTool("a_", "b"), NamedTool("a", "_b")], 1)
def test_no_plugin_that_comes_renames_another_s_tool_for_programs(tools: list[NamedTool], last: int) -> None:
    unaliased = [dataclasses.replace(tool, alias="") for tool in tools]
    comes = {tool.plugin for tool in unaliased[last:]}
    here = [tool for tool in unaliased if tool.plugin not in comes]
    before, after = ToolNames(here), ToolNames(unaliased)

    for tool in here:
        name = before.offered(tool.id, "qualified")
        assert after.offered(tool.id, "qualified") == name
        assert after.resolve(name) == tool.id


@settings(max_examples=200, deadline=None)
@given(TOOLS)
@example([NamedTool("a", "a____"), NamedTool("a__", "")])
def test_a_tool_is_offered_by_the_first_of_alias_short_and_qualified_name_that_means_it(
    tools: list[NamedTool],
) -> None:
    offered = ToolNames(tools)
    aliases = [tool.alias for tool in tools]
    shorts = [tool.name for tool in tools]

    for tool in tools:
        others = [(other.plugin, f"{other.plugin}__{other.name}") for other in tools if other is not tool]
        qualified = {name for plugin, name in others if name.index("__") == len(plugin)}  # the rest have a digest
        name = offered.offered(tool.id)
        if tool.alias and aliases.count(tool.alias) == 1:
            assert name == tool.alias
        elif (
            OFFERABLE.fullmatch(tool.name) and shorts.count(tool.name) == 1 and tool.name not in {*aliases, *qualified}
        ):
            assert name == tool.name
        elif OFFERABLE.fullmatch(tool.name):
            assert name.startswith(f"{tool.plugin}__{tool.name}"[:57])
