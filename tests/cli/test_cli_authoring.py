"""`cyrene new`, `cyrene check` and `cyrene manifest`: what an author types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.cli.template import files_of

Run = Callable[..., Any]

MESSY = """
    import logging
    import re

    from cyrene_sdk import BasePlugin, PluginMetadata, ToolComplexity, ToolDefinition, ToolResult

    logging.basicConfig(level=0)


    class MessyTool:
        def __init__(self, **fields):
            self._fields = fields

        def definition(self):
            return ToolDefinition(**self._fields)

        def execute(self, args):
            return ToolResult(success=True)

        def validate(self, args):
            return None

        def complexity(self):
            return ToolComplexity.SIMPLE


    def parameters(**properties):
        return {"type": "object", "properties": properties}


    class MessyPlugin(BasePlugin):
        meta = PluginMetadata(name="mess", version="one", min_cyrene_version="99.0", dependencies={"other": "~~1"})

        def config_schema(self):
            return {"type": "nubmer"}

        def tools(self):
            return [
                MessyTool(name="twice", description="Do it.", danger_level="low", parameters=parameters()),
                MessyTool(name="twice", description="Do it.", danger_level="low", parameters=parameters()),
                MessyTool(name="remote", description="Call it.", parameters={"$ref": "https://example.org/s.json"}),
                MessyTool(name="odd name", description="", triggers=["/(/"], secret_arguments=["key"],
                          parameters=parameters(n={"type": "integer"}), examples=[{"n": "many"}]),
                MessyTool(name="seen", description="Call it.", parameters=parameters(
                    n={"type": "string", "pattern": "^\\\\p{L}+$", "description": "n"})),
            ]
"""


BARE = """
from cyrene_sdk import BasePlugin, PluginMetadata, tool

class Bare(BasePlugin):
    meta = PluginMetadata(name="bare", version="1.0.0", description="Does two things.")

    @tool(danger_level="low", read_only=True)
    def one(self) -> str:
        "Do one thing. Call it when asked."
        return "1"

    @tool(danger_level="low", read_only=True)
    def two(self) -> str:
        "Do another thing. Call it when asked."
        return "2"
"""


@pytest.mark.parametrize("name", ["weather", "my-weather", "7up", "a_b-c"])
def test_a_new_plugin_works_at_once(name: str, workshop: Any, cyrene: Run) -> None:
    made = cyrene("new", name)
    assert (made.code, made.err) == (0, "")
    assert f'{{"name": "{name}"}}' in made.out
    assert f"plugins/{name}/pyproject.toml" in made.out.splitlines()

    checked = cyrene("check", f"plugins/{name}")
    assert (checked.code, checked.out.splitlines()[-1]) == (0, "1 plugin: no errors, no warnings")

    workshop.list(name)
    (tool,) = cyrene("tools", "--json").document
    assert cyrene("call", tool["id"], "text=one two three").out == "3 words\n"


def test_a_first_plugin_is_told_of_as_a_whole_plugins_json(workshop: Any, cyrene: Run) -> None:
    assert '  write a plugins.json:  [{"name": "weather"}]\n' in cyrene("new", "weather").out
    workshop.list("weather")
    assert '  add to the list of plugins.json:  {"name": "tides"}\n' in cyrene("new", "tides").out


def test_the_tests_of_a_new_plugin_pass(workshop: Any, cyrene: Run) -> None:
    cyrene("new", "weather", "--dir", "elsewhere")
    folder = workshop.folder / "elsewhere" / "weather"
    environment = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "."],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout.splitlines()[-1][:8]) == (0, "2 passed"), ended.stdout


def test_a_new_plugin_as_json(workshop: Any, cyrene: Run) -> None:
    document = cyrene("new", "weather", "--dir", "elsewhere", "--json").document
    assert document["entry"] == {"name": "weather", "path": "elsewhere/weather"}
    assert {Path(file).relative_to(document["folder"]).as_posix() for file in document["files"]} == set(
        files_of("weather")
    )


@pytest.mark.parametrize("name", ["Weather", "9 lives", "", "../x"])
def test_a_name_that_no_entry_can_have_is_refused(name: str, workshop: Any, cyrene: Run) -> None:
    ran = cyrene("new", name)
    assert (ran.code, ran.out) == (2, "")
    assert f"'{name}' is no plugin name" in ran.err
    assert list(workshop.folder.iterdir()) == []


def test_a_folder_that_is_there_already_is_left_alone(workshop: Any, cyrene: Run) -> None:
    cyrene("new", "weather")
    file = workshop.folder / "plugins" / "weather" / "README.md"
    file.write_text("mine")
    ran = cyrene("new", "weather")
    assert ran.code == 2
    assert "'plugins/weather' is there already" in ran.err
    assert file.read_text() == "mine"


def test_a_plugin_without_fault_is_fine(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("check", "greeter", "--json")
    assert ran.code == 0
    (verdict,) = ran.document
    assert (verdict["plugin"], verdict["version"], verdict["tools"]) == ("greeter", "1.2.0", ["greet", "erase"])
    assert verdict["errors"] == []
    assert [warning["what"] for warning in verdict["warnings"]] == ["it has no triggers"]


def test_every_fault_of_a_plugin_is_found_at_once(workshop: Any, cyrene: Run) -> None:
    workshop.plugin("messy", MESSY)
    ran = cyrene("check", "plugins/messy", "--json")
    assert ran.code == 1
    (verdict,) = ran.document
    errors = "\n".join(error["what"] for error in verdict["errors"])
    warnings = "\n".join(warning["what"] for warning in verdict["warnings"])
    for expected in (
        "'one' is no version",
        "it wants Cyrene 99.0 or newer",
        "'~~1' is no range of versions",
        "it has two tools named 'twice'",
        "example.org",
        "it has no description",
        "the trigger '/(/' is no regular expression",
        "its example 1 does not fit: /n",
        "secret_arguments names what is no argument: 'key'",
        "nubmer",
    ):
        assert expected in errors
    for expected in (
        "its entry is called 'messy' and the plugin 'mess'",
        "the plugin has no description",
        "its description does not say when to call it",
        "not every model takes the name 'odd name'",
        "it does not say how dangerous it is",
        "these arguments have no description: 'n'",
        "a second validator refuses the schema",
        "logging.basicConfig at import",
    ):
        assert expected in warnings
    assert "cyrene_messy.py line 7" in {Path(w["where"]).name for w in verdict["warnings"]}


def test_what_was_found_is_written_for_people_with_place_and_mend(workshop: Any, cyrene: Run) -> None:
    workshop.plugin("messy", MESSY)
    ran = cyrene("check", "plugins/messy")
    assert ran.code == 1
    assert "  error: 'one' is no version\n    where: metadata, version\n    mend:  write it like" in ran.out
    assert ran.out.splitlines()[-1].startswith("1 plugin: ")


def test_what_several_tools_lack_is_written_once_with_all_places(workshop: Any, cyrene: Run) -> None:
    workshop.plugin("bare", BARE)
    workshop.list("bare")
    out = cyrene("check", "bare").out
    assert out.count("it has no triggers") == 1
    assert "  warning: it has no triggers\n    where: tool 'one'; tool 'two'\n    mend: " in out


def test_code_that_cannot_be_imported_is_an_error_with_its_line(workshop: Any, cyrene: Run) -> None:
    file = workshop.plugin("broken", "x = (\n")
    ran = cyrene("check", "plugins/broken")
    assert ran.code == 1
    assert f"where: {file} line 1" in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_without_names_every_entry_is_checked_and_faulty_ones_too(greeter: Any, cyrene: Run) -> None:
    greeter.list("greeter", {"name": "odd", "wat": 1}, "gone")
    ran = cyrene("check", "--json")
    assert ran.code == 1
    assert {verdict["plugin"]: bool(verdict["errors"]) for verdict in ran.document} == {
        "greeter": False, "odd": True, "gone": True,
    }  # fmt: skip


def test_the_config_of_the_entry_is_held_against_the_plugins_schema(workshop: Any, cyrene: Run) -> None:
    workshop.plugin(
        "rates",
        """
        from pydantic import BaseModel
        from cyrene_sdk import BasePlugin, PluginMetadata

        class Rates(BaseModel):
            yuan: float

        class RatesPlugin(BasePlugin):
            meta = PluginMetadata(name="rates", version="1.0.0", description="Rates.")
            config = Rates
        """,
    )
    workshop.list({"name": "rates", "config": {"yuan": "much"}})
    (verdict,) = cyrene("check", "rates", "--json").document
    assert [error["where"] for error in verdict["errors"]] == ["the entry's config/yuan"]
    workshop.list({"name": "rates", "config": {"yuan": {"$env": "NO_SUCH_VARIABLE"}}})
    (verdict,) = cyrene("check", "rates", "--json").document
    assert "NO_SUCH_VARIABLE" in verdict["errors"][0]["what"]


def test_a_name_that_two_tools_share_is_told_of(workshop: Any, cyrene: Run) -> None:
    for name in ("one", "two"):
        workshop.plugin(
            name,
            f'''
            from cyrene_sdk import BasePlugin, PluginMetadata, tool

            class P(BasePlugin):
                meta = PluginMetadata(name="{name}", version="1.0.0", description="D.")

                @tool(danger_level="low", triggers=["a", "b", "c"])
                async def search(self) -> str:
                    """Search. Call it to search."""
                    return ""
            ''',
        )
    workshop.list("one", "two")
    first, second = cyrene("check", "--json").document
    assert first["warnings"][0]["what"] == "'search' means 'two.search' too, so models see 'one__search'"
    assert second["warnings"][0]["what"] == "'search' means 'one.search' too, so models see 'two__search'"


def test_a_name_or_folder_that_is_not_there_is_wrong_use(greeter: Any, cyrene: Run) -> None:
    assert cyrene("check", "greter").err == (
        "there is no plugin 'greter'\n  where: plugins.json\n  mend:  did you mean 'greeter'?\n"
    )
    ran = cyrene("check", "plugins/nothing")
    assert (ran.code, ran.out) == (2, "")
    assert "'plugins/nothing' does not exist" in ran.err


def test_a_manifest_is_written_once_and_told_of_when_it_differs(greeter: Any, cyrene: Run) -> None:
    file = greeter.folder / "plugins" / "greeter" / "cyrene_greeter.cyrene-plugin.json"
    assert cyrene("manifest", "build", "--check").code == 1
    assert not file.exists()

    built = cyrene("manifest", "build", "plugins/greeter")
    assert (built.code, built.out) == (0, f"{file} was written:\n  there is no cyrene-plugin.json\n")
    assert [tool["name"] for tool in json.loads(file.read_text())["tools"]] == ["greet", "erase"]
    assert cyrene("manifest", "build").out == f"{file} is up to date\n"
    assert cyrene("manifest", "build", "--check").code == 0

    module = greeter.folder / "plugins" / "greeter" / "cyrene_greeter.py"
    module.write_text(module.read_text().replace("Greet. Call", "Welcome. Call"))
    drifted = cyrene("manifest", "build", "--check", "--json")
    assert (drifted.code, drifted.document) == (
        1,
        [{"plugin": "greeter", "file": str(file), "changes": ["tool 'greet': description changed"], "error": None}],
    )
    checked = cyrene("check", "greeter")
    assert checked.code == 1
    assert "its cyrene-plugin.json says otherwise: tool 'greet': description changed" in checked.out
    assert "mend:  `cyrene manifest build greeter`" in checked.out


def test_a_plugin_that_cannot_be_described_gets_no_manifest(workshop: Any, cyrene: Run) -> None:
    workshop.plugin("broken", "1 / 0\n")
    ran = cyrene("manifest", "build", "plugins/broken")
    assert ran.code == 1
    assert "division by zero" in ran.out
    assert not list((workshop.folder / "plugins" / "broken").glob("*.json"))


def test_the_manifest_that_the_host_goes_by_is_shown(greeter: Any, cyrene: Run) -> None:
    document = cyrene("manifest", "show", "greeter").document
    assert (document["metadata"]["version"], len(document["tools"])) == ("1.2.0", 2)
    greeter.plugin("broken", "1 / 0\n")
    greeter.list("broken")
    ran = cyrene("manifest", "show", "broken")
    assert (ran.code, ran.out) == (1, "")
    assert "division by zero" in ran.err


def test_manifest_alone_shows_its_help(cyrene: Run) -> None:
    ran = cyrene("manifest")
    assert ran.code == 0
    assert ran.out.startswith("Usage: cyrene manifest")


TWO = """
    from cyrene_sdk import BasePlugin, PluginMetadata

    class OnePlugin(BasePlugin):
        meta = PluginMetadata(name="one", version="1.0.0", description="One.")

    class TwoPlugin(BasePlugin):
        meta = PluginMetadata(name="two", version="1.0.0", description="Two.")
"""


def test_a_folder_that_declares_several_plugins_is_checked_for_each(workshop: Any, cyrene: Run) -> None:
    module = workshop.plugin("both", TWO)
    (module.parent / "pyproject.toml").write_text(
        '[project]\nname = "both"\nversion = "1.0.0"\n[project.entry-points."cyrene.plugins"]\n'
        'one = "cyrene_both:OnePlugin"\ntwo = "cyrene_both:TwoPlugin"\n'
    )
    ran = cyrene("check", "plugins/both", "--json")
    assert [(verdict["plugin"], verdict["errors"]) for verdict in ran.document] == [("one", []), ("two", [])]
    assert {verdict["warnings"][0]["what"] for verdict in ran.document} == {"the plugin has no tools"}


def test_a_folder_with_several_classes_and_no_declaration_says_so(workshop: Any, cyrene: Run) -> None:
    workshop.plugin("both", TWO)
    ran = cyrene("check", "plugins/both")
    assert ran.code == 1
    assert "has several plugin classes: 'OnePlugin', 'TwoPlugin'" in ran.out


def test_a_single_file_can_be_checked(greeter: Any, cyrene: Run) -> None:
    (verdict,) = cyrene("check", "plugins/greeter/cyrene_greeter.py", "--json").document
    assert (verdict["plugin"], verdict["errors"]) == ("greeter", [])


def test_a_folder_without_code_is_an_error_and_no_crash(workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "plugins" / "Em Pty").mkdir(parents=True)
    ran = cyrene("check", "plugins/Em Pty")
    assert ran.code == 1
    assert ran.out.startswith("em-pty\n  error: ")
    assert "holds no Python module" in ran.out
    assert cyrene("manifest", "build", "plugins/Em Pty").code == 1


def test_a_folder_that_cannot_be_written_is_told_in_words(workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "plugins").write_text("a file")
    ran = cyrene("new", "weather")
    assert ran.code == 2
    assert ran.err.startswith("'plugins/weather' cannot be written: ")


def test_manifests_of_installed_wheels_are_left_alone_unless_named(
    workshop: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(workshop.folder / "plugins"))
    workshop.plugin("one", TWO)
    workshop.list({"name": "one", "class": "OnePlugin"}, "missing")
    answers = cyrene("manifest", "build", "--json").document
    assert [answer["plugin"] for answer in answers] == ["missing"]
    assert cyrene("manifest", "build", "one").code == 0


def test_an_alias_that_another_tool_hides_is_an_error(greeter: Any, cyrene: Run) -> None:
    greeter.list({"name": "greeter", "tools": {"greet": {"alias": "say"}, "erase": {"alias": "say"}}})
    (verdict,) = cyrene("check", "--json").document
    assert [(error["what"], error["where"]) for error in verdict["errors"]] == [
        ("its alias 'say' is hidden by 'greeter.erase', so models see 'greet'", "tool 'greeter.greet'"),
        ("its alias 'say' is hidden by 'greeter.greet', so models see 'erase'", "tool 'greeter.erase'"),
    ]


def test_every_fault_of_an_entry_is_told(greeter: Any, cyrene: Run) -> None:
    greeter.list({"name": "greeter", "enabeld": True, "confg": {}})
    (verdict,) = cyrene("check", "--json").document
    assert [error["what"] for error in verdict["errors"]] == ["unknown key 'enabeld'", "unknown key 'confg'"]
