"""A hundred plugins, a dozen of them broken in ways of their own: each is told of, and every other tool works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

GOOD = 88
PLUGIN = """
    from cyrene_sdk import BasePlugin, PluginMetadata, ToolComplexity, ToolDefinition, ToolResult


    class PlainTool:
        def __init__(self, name, parameters=None):
            self._name, self._parameters = name, parameters or {{"type": "object", "properties": {{}}}}

        def definition(self):
            return ToolDefinition(name=self._name, description="Answer.", parameters=self._parameters)

        def execute(self, args):
            return ToolResult(success=True, output="{name} answers")

        def validate(self, args):
            return None

        def complexity(self):
            return ToolComplexity.SIMPLE


    class ThePlugin(BasePlugin):
        meta = PluginMetadata(name="{name}", version="1.0.0", {metadata})

        def tools(self):
            return [{tools}]
"""


def plain(name: str, *, metadata: str = "", tools: str = "") -> str:
    return PLUGIN.format(name=name, metadata=metadata, tools=tools or f"PlainTool('{name}_tool')")


# By name: the source, the stage (empty where a tool alone is at fault), the cause, the mend.
BROKEN = {
    "imports": (
        "import nothing_of_that_name\n",
        "load",
        "No module named 'nothing_of_that_name'",
        "install what it imports",
    ),
    "newer": (
        plain("newer", metadata='min_cyrene_version="99.0"'),
        "check",
        "it wants Cyrene 99.0 or newer",
        "upgrade cyrene-host",
    ),
    "needs_missing": (
        plain("needs_missing", metadata='dependencies={"nowhere": "1.0"}'),
        "check",
        "'nowhere'",
        "mend:",
    ),
    "needs_off": (plain("needs_off", metadata='dependencies={"off": "1.0"}'), "check", "disabled", "mend:"),
    "round_one": (plain("round_one", metadata='dependencies={"round_two": "1.0"}'), "check", "round_two", "mend:"),
    "round_two": (plain("round_two", metadata='dependencies={"round_one": "1.0"}'), "check", "round_one", "mend:"),
    "twins": (
        plain("twins", tools="PlainTool('twin'), PlainTool('twin')"),
        "",
        "two tools named 'twin'",
        "rename one of them",
    ),
    "odd_schema": (plain("odd_schema", tools="PlainTool('odd', {'type': 'object', 'required': 7})"), "", "7", "mend:"),
    "remote": (
        plain("remote", tools="PlainTool('far', {'$ref': 'https://example.org/s.json'})"),
        "",
        "example.org",
        "mend:",
    ),
    "no_plugin": ("class ThePlugin:\n    pass\n", "load", "ThePlugin", "mend:"),
    "unknown_key": (plain("unknown_key"), "check", "unknown key 'enabeld'", "did you mean 'enabled'?"),
}


def manifest_of_the_first(workshop: Any, cyrene: Run) -> str:
    module = workshop.plugin("good_00", plain("good_00"))
    assert cyrene("manifest", "build", "plugins/good_00").code == 0
    return module.with_suffix(".cyrene-plugin.json").read_text()


@pytest.mark.timeout(240)
def test_each_broken_plugin_is_told_of_and_every_other_tool_works(workshop: Any, cyrene: Run) -> None:
    entries: list[Any] = []
    shipped = manifest_of_the_first(workshop, cyrene)
    for number in range(GOOD):
        name = f"good_{number:02d}"
        module = workshop.plugin(name, plain(name))
        module.with_suffix(".cyrene-plugin.json").write_text(shipped.replace("good_00", name))
        entries.append({"name": name, "class": "ThePlugin"})
    for name, (source, *_) in BROKEN.items():
        workshop.plugin(name, source)
        entries.append({"name": name, "class": "ThePlugin"} | ({"enabeld": True} if name == "unknown_key" else {}))
    workshop.plugin("off", plain("off"))
    entries.append({"name": "off", "enabled": False})
    workshop.list(*entries)

    ran = cyrene("health", "--json")

    assert ran.code == 1
    reports = {report["name"]: report for report in ran.document}
    assert len(reports) == 100
    assert {name for name, report in reports.items() if report["error"] or report["tool_errors"]} == set(BROKEN)
    for name, (_, stage, cause, _mend) in BROKEN.items():
        report = reports[name]
        (error,) = [report["error"]] if report["error"] else report["tool_errors"]
        assert (error["plugin"], cause in error["what"]) == (name, True), error
        assert error["mend"]
        assert not stage or report["stage"] == stage, report
    told = cyrene("health")
    assert [
        name for name, parts in BROKEN.items() if parts[3] not in told.err or f"plugin '{name}'" not in told.err
    ] == []

    offered = [tool["id"] for tool in cyrene("tools", "--json").document if tool["offered"]]
    assert offered[:GOOD] == [f"good_{number:02d}.good_{number:02d}_tool" for number in range(GOOD)]
    assert "twins.twin" in offered
    assert cyrene("call", "good_42_tool").out == "good_42 answers\n"
    assert cyrene("call", "twin").out == "twins answers\n"
