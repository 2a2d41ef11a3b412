"""`cyrene plugins enable`, `disable` and `restart`: a person's word is kept for the next start."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host.host.inventory import Inventory
from cyrene_host.supervise.marks import FailureMarks

Run = Callable[..., Any]

NEEDY = """
    from cyrene_sdk import BasePlugin, PluginMetadata


    class NeedyPlugin(BasePlugin):
        meta = PluginMetadata(name="needy", version="1.0.0", dependencies={"greeter": ">=1"})
"""

FALLING = '''
    import os
    from pathlib import Path

    from cyrene_sdk import BasePlugin, PluginMetadata, tool


    class FallingPlugin(BasePlugin):
        meta = PluginMetadata(name="falling", version="1.0.0")

        def start(self, host):
            os._exit(3)

        @tool(danger_level="low")
        async def fall(self) -> str:
            """Fall."""
            return "never"
'''


def give_up(name: str) -> None:
    inventory = Inventory.read()
    FailureMarks(inventory.state_dir).mark(inventory.catalog.plugins[name], "its worker ended: exit status 3")


def test_a_plugin_that_is_switched_off_is_not_started_and_says_who_decided(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("plugins", "disable", "greeter")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "'greeter' is switched off, until `cyrene plugins enable greeter`: no start takes it,"
        " and a host that runs stops it at its next reload\n"
    )
    listed = cyrene("plugins").out.splitlines()[1]
    assert listed.split()[:3] == ["greeter", "disabled", "(switch)"]
    assert cyrene("tools", "--json").document[0]["offered"] is False
    assert cyrene("health").out.splitlines()[1].split()[:3] == ["greeter", "disabled", "1.2.0"]

    called = cyrene("call", "greet")
    assert (called.code, called.out) == (1, "")
    assert called.err == "plugin 'greeter': it is disabled\n  mend:  `cyrene plugins enable greeter`\n"
    why = cyrene("why", "greet")
    assert why.code == 1
    assert why.out == (
        "greeter.greet: plugin_switched_off\n"
        "  a person has switched the plugin 'greeter' off\n"
        "  type:  cyrene plugins enable greeter\n"
    )


def test_a_plugin_that_is_switched_on_again_works(greeter: Any, cyrene: Run) -> None:
    cyrene("plugins", "disable", "greeter")
    ran = cyrene("plugins", "enable", "greeter")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "'greeter' is switched on: the next start takes it, and a host that runs, its next reload\n"
    )  # fmt: skip
    assert cyrene("call", "greet", "name=Ada").out == "你好 Ada\n"


def test_a_switch_counts_more_than_the_entry(greeter: Any, cyrene: Run) -> None:
    greeter.list({"name": "greeter", "enabled": False})
    assert cyrene("plugins").out.splitlines()[1].split()[:3] == ["greeter", "disabled", "(entry)"]
    (answer,) = cyrene("why", "greeter", "--json").document
    assert (answer["reason"], answer["command"]) == ("plugin_disabled", "cyrene plugins enable greeter")
    assert "'enabled'" in answer["mend"]

    cyrene("plugins", "enable", "greeter")
    assert cyrene("plugins").out.splitlines()[1].split()[:3] == ["greeter", "discovered", "(switch)"]
    assert cyrene("call", "greet").code == 0


def test_switching_twice_says_so_and_leaves_plugins_json_alone(greeter: Any, cyrene: Run) -> None:
    before = (greeter.folder / "plugins.json").read_bytes()
    cyrene("plugins", "disable", "greeter")
    assert cyrene("plugins", "disable", "greeter").out.startswith("'greeter' is switched off already, until ")
    cyrene("plugins", "enable", "greeter")
    assert cyrene("plugins", "enable", "greeter").out.startswith("'greeter' is switched on already: ")
    assert (greeter.folder / "plugins.json").read_bytes() == before
    assert json.loads((greeter.folder / "state" / "switches.json").read_text()) == {"greeter": True}


def test_plugins_that_need_the_one_that_is_switched_are_named(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("needy", NEEDY)
    greeter.list("greeter", "needy")
    cyrene("tools")
    off = cyrene("plugins", "disable", "greeter")
    assert off.out.splitlines()[1:] == ["'needy', which needs it, is incompatible now"]
    on = cyrene("plugins", "enable", "greeter")
    assert on.out.splitlines()[1:] == ["'needy', which needs it, is discovered now"]


def test_a_plugin_that_is_switched_on_and_cannot_be_used_is_told_with_its_error(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("broken", "1 / 0\n")
    greeter.list({"name": "broken", "enabled": False})
    ran = cyrene("plugins", "enable", "broken")
    assert ran.code == 0
    assert ran.out.startswith("'broken' is switched on: ")
    assert "division by zero" in ran.err


@pytest.mark.parametrize("command", ["enable", "disable", "restart"])
def test_a_name_that_no_plugin_has_is_wrong_use_with_a_near_one(command: str, greeter: Any, cyrene: Run) -> None:
    ran = cyrene("plugins", command, "greter")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "there is no plugin 'greter'\n  where: plugins.json\n  mend:  did you mean 'greeter'?\n"
    assert "  mend:  there are: greeter" in cyrene("plugins", command, "xyz").err
    assert not (greeter.folder / "state" / "switches.json").exists()


@pytest.mark.parametrize(
    ("command", "state", "switched"),
    [("enable", "discovered", True), ("disable", "disabled", False), ("restart", "discovered", None)],
)
def test_as_json_the_plugin_is_reported(
    command: str, state: str, switched: bool | None, greeter: Any, cyrene: Run
) -> None:
    report = cyrene("plugins", command, "greeter", "--json").document
    assert (report["name"], report["state"], report["switched"]) == ("greeter", state, switched)


def test_a_state_directory_that_cannot_be_written_keeps_no_switch_and_says_so(greeter: Any, cyrene: Run) -> None:
    cyrene("tools")
    (greeter.folder / "state" / "switches.tmp").mkdir()
    ran = cyrene("plugins", "disable", "greeter")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("'greeter' could not be switched: ")
    assert cyrene("call", "greet").code == 0


def test_a_plugin_that_is_lost_at_every_start_is_given_up_until_a_person_says_otherwise(
    workshop: Any, cyrene: Run
) -> None:
    file = workshop.plugin("falling", FALLING)
    workshop.list("falling")
    ran = cyrene("health")
    assert ran.code == 1
    assert ran.out.splitlines()[1].split()[:4] == ["falling", "failed", "not", "well"]
    assert "note: plugin 'falling': started again 3 times within the last 5 minutes\n" in ran.err
    assert "it is not started any more after 3 restarts within 5 minutes; last: " in ran.err
    assert "exit status 3" in ran.err

    file.write_text(file.read_text().replace("os._exit(3)", "pass"))
    assert cyrene("plugins").out.splitlines()[1].split()[:2] == ["falling", "failed"]
    (answer,) = cyrene("why", "falling.fall", "--json").document
    assert (answer["reason"], answer["command"]) == ("plugin_given_up", "cyrene plugins restart falling")
    called = cyrene("call", "falling.fall")
    assert called.code == 1
    assert "it has failed: it is not started any more" in called.err
    assert "`cyrene plugins restart falling`" in called.err

    restarted = cyrene("plugins", "restart", "falling")
    assert restarted.code == 0
    assert restarted.out.startswith(
        "'falling' is started again by the next command or host that needs it; it was lost: "
    )
    assert cyrene("call", "falling.fall").out == "never\n"
    assert cyrene("plugins").out.splitlines()[1].split()[:2] == ["falling", "discovered"]


def test_a_given_up_plugin_with_another_config_is_tried_again(greeter: Any, cyrene: Run) -> None:
    give_up("greeter")
    assert cyrene("why", "greet").out.startswith("greeter.greet: plugin_given_up\n")
    greeter.list({"name": "greeter", "config": {"loud": True}})
    assert cyrene("why", "greet").out.startswith("greeter.greet: available\n")


def test_restart_of_a_plugin_that_was_not_given_up_says_what_it_is(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("broken", "1 / 0\n")
    greeter.list("greeter", "broken")
    assert cyrene("plugins", "restart", "greeter").out == (
        "'greeter' was not given up: it is discovered, and every start begins afresh\n"
    )
    assert cyrene("plugins", "restart", "broken").out == (
        "'broken' was not given up: it is failed, and `cyrene why broken` tells more\n"
    )


def test_a_mark_that_cannot_be_taken_away_is_told(greeter: Any, cyrene: Run) -> None:
    give_up("greeter")
    (greeter.folder / "state" / "given-up.tmp").mkdir()
    ran = cyrene("plugins", "restart", "greeter")
    assert (ran.code, ran.out) == (2, "")
    assert "'greeter' could not be taken off the list of those that were given up" in ran.err
    assert cyrene("why", "greet").code == 1
