"""The hello plugin on its own, without a host."""

import asyncio
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from cyrene_hello import HelloPlugin
from cyrene_sdk import DangerLevel

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.mark.parametrize(
    ("arguments", "greeting"),
    [
        ({}, "开拓者，昔涟向你问好♪"),
        ({"name": ""}, "开拓者，昔涟向你问好♪"),
        ({"name": "开拓者"}, "开拓者，昔涟向你问好♪"),
        ({"name": "Ada"}, "Ada，昔涟向你问好♪"),
    ],
)
def test_it_greets_by_name_and_a_trailblazer_where_there_is_none(arguments: dict[str, str], greeting: str) -> None:
    assert asyncio.run(HelloPlugin().hello(**arguments)) == greeting


def test_its_definition_says_when_to_call_it_and_when_not() -> None:
    (tool,) = HelloPlugin().tools()
    definition = tool.definition()

    assert (definition.name, definition.display_name) == ("hello", "打招呼")
    assert definition.description.startswith("向用户打招呼。当用户说你好/嗨/哈喽")
    assert definition.parameters == {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "用户名字（可选）", "default": ""}},
        "additionalProperties": False,
    }
    assert (definition.danger_level, definition.read_only, definition.idempotent) == (DangerLevel.LOW, True, True)
    for requests in (definition.triggers, definition.not_when):
        in_english = [request for request in requests if request.isascii()]
        assert len(in_english) >= 3
        assert len(requests) - len(in_english) >= 3


def test_its_metadata_and_its_distribution_state_one_version() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]

    assert HelloPlugin().metadata().version == project["version"]


def test_its_entry_point_names_the_plugin() -> None:
    (entry_point,) = entry_points(group="cyrene.plugins", name="hello")

    assert entry_point.load() is HelloPlugin
