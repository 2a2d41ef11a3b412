"""The calculator plugin on its own, without a host."""

import asyncio
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from cyrene_calculator import CalculatorPlugin
from cyrene_sdk import ArgumentError, DangerLevel

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.mark.parametrize(
    ("expression", "exact", "output", "data"),
    [
        ("0.1+0.2", False, "0.3", {"value": 0.3, "exact": None}),
        ("0.1+0.2", True, "3/10", {"value": 0.3, "exact": "3/10"}),
        ("1/3+1/3", True, "2/3", {"value": 0.6666666666666666, "exact": "2/3"}),
        ("12*(3+4)", False, "84", {"value": 84, "exact": "84"}),
    ],
)
def test_it_answers_people_with_digits_and_programs_with_data(
    expression: str, exact: bool, output: str, data: dict[str, object]
) -> None:
    result = asyncio.run(CalculatorPlugin().calculator(expression, exact))

    assert (result.success, result.output, result.data) == (True, output, data)


def test_what_it_cannot_work_out_is_a_fault_of_the_expression() -> None:
    with pytest.raises(ArgumentError) as refusal:
        asyncio.run(CalculatorPlugin().calculator("9**9**9"))

    assert refusal.value.path == "/expression"


def test_its_definition_says_when_to_call_it_and_when_not() -> None:
    (tool,) = CalculatorPlugin().tools()
    definition = tool.definition()

    assert definition.name == "calculator"
    assert (definition.danger_level, definition.read_only, definition.idempotent) == (DangerLevel.LOW, True, True)
    assert definition.parameters["required"] == ["expression"]
    assert definition.parameters["properties"]["expression"]["maxLength"] == 1000
    for requests in (definition.triggers, definition.not_when):
        in_english = [request for request in requests if request.isascii()]
        assert len(in_english) >= 3
        assert len(requests) - len(in_english) >= 3


def test_every_example_of_its_definition_works() -> None:
    plugin = CalculatorPlugin()
    (tool,) = plugin.tools()

    outputs = [asyncio.run(tool.execute(example)).output for example in tool.definition().examples]

    assert outputs == ["84", "2/3"]


def test_its_metadata_and_its_distribution_state_one_version() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]

    assert CalculatorPlugin().metadata().version == project["version"]


def test_its_entry_point_names_the_plugin() -> None:
    (entry_point,) = entry_points(group="cyrene.plugins", name="calculator")

    assert entry_point.load() is CalculatorPlugin
