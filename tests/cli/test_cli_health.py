"""`cyrene health`: everything is started, every fault told in four parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]

TIRED = '''
    from cyrene_sdk import BasePlugin, PluginMetadata, tool


    class TiredPlugin(BasePlugin):
        meta = PluginMetadata(name="tired", version="2.0.0")

        def start(self, host):
            raise RuntimeError("no coffee")

        @tool(danger_level="low")
        async def work(self) -> str:
            """Work."""
            return "done"
'''


def test_all_well_is_exit_0(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("health")
    assert ran.code == 0
    head, row = ran.out.splitlines()
    assert head.split() == ["PLUGIN", "STATE", "HEALTH", "VERSION", "TOOLS", "RUNTIME", "TIME"]
    assert row.split()[:6] == ["greeter", "started", "well", "1.2.0", "2", "process"]
    assert int(row.split()[6]) not in (0, os.getpid())
    assert [word for word in row.split()[7:] if word.isalpha() and word != "ms"] == [
        "load", "init", "start", "tools", "health",
    ]  # fmt: skip


def test_one_that_is_not_well_is_exit_1_with_plugin_stage_cause_and_mend(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("tired", TIRED)
    greeter.list("greeter", "tired")
    ran = cyrene("health")
    assert ran.code == 1
    assert [line.split()[:3] for line in ran.out.splitlines()[1:]] == [
        ["greeter", "started", "well"],
        ["tired", "failed", "not"],
    ]
    assert ran.err.count("no coffee") == 1
    assert ran.err.startswith("plugin 'tired': ")
    assert "where: stage start of 'tired' 2.0.0, plugins.json line 1" in ran.err
    assert "  mend:  " in ran.err
    assert "Traceback" not in ran.err


def test_a_tool_with_an_invalid_schema_makes_its_plugin_unwell(greeter: Any, vague: str, cyrene: Run) -> None:
    greeter.list(vague, "greeter")
    ran = cyrene("health")
    assert ran.code == 1
    assert "nubmer" in ran.err
    assert "tool 'vague.guess', its schema, /properties/n/type" in ran.err
    assert cyrene("call", "greet").code == 0


def test_health_as_json(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("tired", TIRED)
    greeter.list("greeter", "tired", {"name": "off", "enabled": False})
    ran = cyrene("health", "--json")
    assert ran.code == 1
    well, tired, off = ran.document
    assert (well["state"], well["error"], set(well["stage_ms"]) >= {"load", "start"}) == ("started", None, True)
    assert (tired["state"], tired["stage"], tired["error"]["plugin"]) == ("failed", "start", "tired")
    assert off["state"] == "disabled"


def test_a_plugin_that_must_not_fail_ends_the_host_with_exit_2(greeter: Any, cyrene: Run) -> None:
    greeter.plugin("tired", TIRED)
    greeter.list("greeter", {"name": "tired", "on_failure": "abort"})
    ran = cyrene("health")
    assert (ran.code, ran.out) == (2, "")
    assert "plugin 'tired': the host does not start without it" in ran.err


def test_a_disabled_plugin_has_no_health(greeter: Any, cyrene: Run) -> None:
    cyrene("tools")  # describes it once
    greeter.list({"name": "greeter", "enabled": False})
    ran = cyrene("health")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split() == ["greeter", "disabled", "1.2.0", "0"]
