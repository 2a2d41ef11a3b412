"""`cyrene plugins` and `cyrene tools`: lists that import nothing and start nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]

WATCHER = """
import sys
from pathlib import Path

STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system")


def note(event, arguments):
    if event in STARTS:
        Path(__file__).with_name("started").touch()


sys.addaudithook(note)
"""


def test_plugins_are_listed_with_state_version_and_tools(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("plugins")
    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines()] == [
        ["PLUGIN", "STATE", "VERSION", "TOOLS", "DESCRIPTION"],
        ["greeter", "discovered", "1.2.0", "2", "Greets."],
    ]
    assert cyrene("plugins", "list").out == ran.out


def test_a_broken_plugin_is_listed_with_its_error_and_breaks_nothing(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("broken", "import nothing_of_that_name\n")
    greeter.list("greeter", "broken", {"name": "odd", "wat": 1})
    ran = cyrene("plugins")
    assert ran.code == 0
    states = {line.split()[0]: line.split()[1] for line in ran.out.splitlines()[1:]}
    assert states == {"greeter": "discovered", "broken": "failed", "odd": "blocked"}
    assert "plugin 'broken': module 'cyrene_broken' failed to import: ModuleNotFoundError" in ran.err
    assert "plugin 'odd': unknown key 'wat'" in ran.err
    assert "greet" in cyrene("tools").out


def test_plugins_as_json(greeter: Any, cyrene: Run) -> None:
    (plugin,) = cyrene("plugins", "--json").document
    assert plugin["name"] == "greeter"
    assert plugin["state"] == "discovered"
    assert plugin["tools"] == ["greeter.greet", "greeter.erase"]
    assert plugin["error"] is None


def test_tools_are_listed_with_danger_arguments_and_description(greeter: Any, cyrene: Run) -> None:
    lines = cyrene("tools").out.splitlines()
    assert lines[0].split() == ["TOOL", "ID", "DANGER", "ARGUMENTS", "DESCRIPTION"]
    assert lines[1].split()[:5] == ["greet", "greeter.greet", "low", "name?,", "times?"]
    assert lines[2].split()[:5] == ["erase", "greeter.erase", "high", "(confirm)", "what"]
    assert lines[2].endswith("Erase. Call it when the user wants to erase.")


def test_qualified_names_are_shown_where_asked_for(greeter: Any, cyrene: Run) -> None:
    assert [tool["offered_as"] for tool in cyrene("tools", "--qualified", "--json").document] == [
        "greeter__greet",
        "greeter__erase",
    ]


def test_tools_as_json_hold_the_definitions(greeter: Any, cyrene: Run) -> None:
    greet, erase = cyrene("tools", "--json").document
    assert (greet["id"], greet["offered_as"], greet["plugin"]) == ("greeter.greet", "greet", "greeter")
    assert (greet["danger"], greet["decision"], erase["decision"]) == ("low", "allow", "confirm")
    assert greet["definition"]["parameters"]["properties"]["times"]["type"] == "integer"


def test_tools_that_are_not_offered_are_named_apart(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("broken", "1 / 0\n")
    greeter.list({"name": "greeter", "tools": {"erase": {"enabled": False}}}, "broken")
    ran = cyrene("tools")
    assert "greeter.erase" not in ran.out
    assert "not offered: greeter.erase; `cyrene why NAME` tells the reason" in ran.err
    assert "plugins that cannot be used: broken; `cyrene plugins` tells more" in ran.err


def test_a_description_cannot_steer_the_terminal(greeter: Any, cyrene: Run) -> None:
    greeter.plugin(
        "evil",
        """
        from cyrene_sdk import BasePlugin, PluginMetadata, tool

        class EvilPlugin(BasePlugin):
            meta = PluginMetadata(name="evil", version="1.0.0")

            @tool(description="\\x1b]0;owned\\x07safe\\x1b[2J \\u202egpj\\u2066\\U000e0041.")
            async def lure(self) -> str:
                return ""
        """,
    )
    greeter.list("evil")
    listed, document = cyrene("tools"), cyrene("tools", "--json")
    assert listed.out.splitlines()[1].endswith("safe gpj.")
    assert not {"\x1b", "\u202e", "\u2066", "\U000e0041"} & set(document.out)
    assert document.document[0]["definition"]["description"].startswith("\x1b]0;owned\x07safe")


def test_with_warm_manifests_no_plugin_is_imported_and_no_process_started(greeter: Any) -> None:
    module = greeter.folder / "plugins" / "greeter" / "cyrene_greeter.py"
    mark = greeter.folder / "imported"
    module.write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\n{module.read_text()}")
    watch = greeter.folder / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(WATCHER)

    cold = greeter.process("tools", PYTHONPATH=str(watch))
    assert mark.exists()
    assert (watch / "started").exists()  # so the watcher sees what it should
    mark.unlink()
    (watch / "started").unlink()

    for command in (["tools"], ["plugins"], ["why", "greet"], ["manifest", "show", "greeter"]):
        warm = greeter.process(*command, PYTHONPATH=str(watch))
        assert warm.code == 0
        assert not mark.exists()
        assert not (watch / "started").exists()
    assert "greeter.greet" in cold.out


def test_without_plugins_json_all_installed_plugins_are_listed_and_that_is_said(workshop: Any, cyrene: Run) -> None:
    ran = cyrene("plugins")
    assert {"hello", "calculator"} <= {line.split()[0] for line in ran.out.splitlines()[1:]}
    assert "note: there is no plugins.json in" in ran.err


def test_an_empty_list_says_how_to_fill_it(workshop: Any, cyrene: Run) -> None:
    workshop.list()
    ran = cyrene("plugins")
    assert (ran.code, ran.out) == (0, "PLUGIN  STATE  VERSION  TOOLS  DESCRIPTION\n")
    assert ran.err == "no plugins are listed: `cyrene new NAME` writes one, an entry in plugins.json lists it\n"
    assert cyrene("tools").err == "there are no tools: `cyrene plugins` shows which plugins there are\n"
