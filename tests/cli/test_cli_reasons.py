"""`cyrene why`: a reason from a closed list, a sentence, a mend, and a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]

UNITS = """
from cyrene_sdk import BasePlugin, PluginMetadata, tool

class Units(BasePlugin):
    meta = PluginMetadata(name="units", version="1.0.0")

    @tool(danger_level="low")
    def convert(self, value: float, unit: str, to: str = "m") -> str:
        "Convert a length."
        return ""
"""


def test_a_tool_that_can_be_called_is_exit_0(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("why", "greet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "greeter.greet: available\n"
        "  'greeter.greet' can be called, as 'greet' too\n"
        "  type:  cyrene call greeter.greet\n"
    )  # fmt: skip


def test_what_to_type_names_the_arguments_that_a_call_needs(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("units", UNITS)
    greeter.list("units")
    assert "  type:  cyrene call units.convert value=… unit=…\n" in cyrene("why", "convert").out


def test_a_name_that_means_nothing_is_exit_1_with_a_near_one(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("why", "gret")
    assert ran.code == 1
    assert ran.out.startswith("gret: unknown_name\n  there is no tool and no plugin 'gret'")
    assert "  mend:  did you mean 'greeter.greet'?" in ran.out


def test_several_names_are_answered_and_one_that_is_not_available_counts(greeter: Any, cyrene: Run) -> None:
    greeter.list({"name": "greeter", "tools": {"erase": {"enabled": False}}}, {"name": "off", "enabled": False})
    ran = cyrene("why", "greet", "erase", "off", "--json")
    assert ran.code == 1
    assert [(answer["name"], answer["reason"], answer["available"]) for answer in ran.document] == [
        ("greeter.greet", "available", True),
        ("greeter.erase", "tool_switched_off", False),
        ("off", "plugin_disabled", False),
    ]
    assert set(ran.document[0]) == {
        "name", "available", "reason", "sentence", "mend", "command", "waiting_helps",
    }  # fmt: skip


def test_a_dangerous_tool_says_that_a_person_is_asked(greeter: Any, cyrene: Run) -> None:
    (answer,) = cyrene("why", "erase", "--json").document
    assert (answer["reason"], answer["available"]) == ("needs_approval", True)


def test_the_schema_of_the_tool_in_question_is_compiled(workshop: Any, vague: str, cyrene: Run) -> None:
    workshop.list(vague)
    ran = cyrene("why", "guess")
    assert ran.code == 1
    assert ran.out.startswith("vague.guess: schema_invalid\n")
    assert "  type:  cyrene check vague" in ran.out


def test_a_tool_of_a_plugin_that_cannot_be_described_has_the_plugins_reason(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("broken", "1 / 0\n")
    greeter.list("broken")
    ran = cyrene("why", "broken.something")
    assert ran.code == 1
    assert "division by zero" in ran.out
