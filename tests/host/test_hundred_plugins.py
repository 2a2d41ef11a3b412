"""A hundred plugins, some of them broken in every way that can be seen before a call: the others work, as soon."""

from __future__ import annotations

import json
import socket
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host, PluginReport

COUNT = 100

GOOD = """
from cyrene_sdk import BasePlugin, PluginMetadata, tool


class Good(BasePlugin):
    meta = PluginMetadata(name="{name}", version="1.2.0", description="a good plugin"{more})

    @tool
    async def say_{name}(self, text: str) -> str:
        '''Say a text. Call it when asked to; not otherwise.'''
        return "{name}: " + text
"""

BROKEN = {
    "import_error": "import a_module_that_is_not_there",
    "newer_host": GOOD.format(name="newer_host", more=', min_cyrene_version="99.1"'),
    "needs_missing": GOOD.format(name="needs_missing", more=', dependencies={"nowhere": ">=1"}'),
    "needs_disabled": GOOD.format(name="needs_disabled", more=', dependencies={"switched_off": ">=1"}'),
    "switched_off": GOOD.format(name="switched_off", more=""),
    "cycle_a": GOOD.format(name="cycle_a", more=', dependencies={"cycle_b": "1"}'),
    "cycle_b": GOOD.format(name="cycle_b", more=', dependencies={"cycle_a": "1"}'),
    "two_tools": """
        from cyrene_sdk import BasePlugin, PluginMetadata, function_tool


        def twin(text: str) -> str:
            '''Say a text.'''
            return text


        class Twins(BasePlugin):
            meta = PluginMetadata(name="two_tools", version="1.0.0")

            def tools(self):
                return [function_tool(twin), function_tool(twin)]
    """,
    "bad_schema": """
        from cyrene_sdk import BasePlugin, PluginMetadata, tool


        class Bad(BasePlugin):
            meta = PluginMetadata(name="bad_schema", version="1.0.0")

            @tool(parameters={"type": "object", "properties": {"text": {"type": "strin"}}})
            async def bad(self, text: str) -> str:
                '''Say a text.'''
                return text

            @tool
            async def fine(self, text: str) -> str:
                '''Say a text.'''
                return text
    """,
    "remote_ref": """
        from cyrene_sdk import BasePlugin, PluginMetadata, tool


        class Remote(BasePlugin):
            meta = PluginMetadata(name="remote_ref", version="1.0.0")

            @tool(parameters={"type": "object", "properties": {"text": {"$ref": "http://127.0.0.1:PORT/schema.json"}}})
            async def far(self, text: str) -> str:
                '''Say a text.'''
                return text
    """,
    "unknown_key": GOOD.format(name="unknown_key", more=""),
    "no_plugin": "class NoPlugin:\n    pass\n",
}

FAULTY = """
import ctypes
import os
import time
from pathlib import Path

from cyrene_sdk import BasePlugin, PluginMetadata, tool

ONCE = Path(__file__).with_name("once")


class Faulty(BasePlugin):
    meta = PluginMetadata(name="{name}", version="1.0.0", description="a faulty plugin")

    def {stage}(self, given):
        {fault}

    @tool
    async def say_{name}(self, text: str) -> str:
        '''Say a text. Call it when asked to; not otherwise.'''
        return "{name}: " + text
"""

FAULTS = {
    "raises": "raise OSError('no good')",
    "exits_it": "raise SystemExit(4)",
    "hangs": "time.sleep(120)",
    "blocks": "ctypes.PyDLL(None).sleep(120)",
    "dies": "os._exit(3)",
}
FAULTY_PLUGINS = {
    f"{stage}_{fault}": FAULTY.format(name=f"{stage}_{fault}", stage=stage, fault=text)
    for stage in ("init", "start")
    for fault, text in FAULTS.items()
}
RECOVERS = FAULTY.format(
    name="dies_once", stage="start", fault="if not ONCE.exists():\n            ONCE.touch()\n            os._exit(3)"
)
HUNG = [name for name in FAULTY_PLUGINS if name.endswith(("_hangs", "_blocks"))]

# plugin → state, stage, a part of the cause, a part of the mend
EXPECTED = {
    "import_error": ("failed", "load", "a_module_that_is_not_there", "install what it imports"),
    "newer_host": ("incompatible", "check", "wants Cyrene 99.1 or newer", "upgrade cyrene-host"),
    "needs_missing": ("incompatible", "check", "'nowhere', which is missing", "install 'nowhere'"),
    "needs_disabled": ("incompatible", "check", "'switched_off', which is disabled", "enable it"),
    "cycle_a": ("incompatible", "check", "cycle_a → cycle_b → cycle_a", "remove one of these dependencies"),
    "cycle_b": ("incompatible", "check", "cycle_b → cycle_a → cycle_b", "remove one of these dependencies"),
    "unknown_key": ("blocked", "check", "unknown key 'runtim'", "did you mean 'runtime'?"),
    "no_plugin": ("failed", "load", "'no_plugin:NoPlugin' is no plugin", "BasePlugin"),
}

EXPECTED_FAULTY = {
    "raises": ("raised OSError: no good", "mend the plugin's code"),
    "exits_it": ("raised SystemExit: exited with status 4", "mend the plugin's code"),
    "hangs": ("did not end within its limit", "raise limits."),
    "blocks": ("did not end within its limit", "find what it blocks in"),
    "dies": ("it is not started any more after 3 restarts within 5 minutes", "cyrene plugins restart"),
}

EXPECTED_TOOLS = {
    "two_tools": ("two tools named 'twin'", "rename one of them"),
    "bad_schema": ("strin", None),
    "remote_ref": ("http://127.0.0.1:", None),
}


@dataclass
class Hundred:
    """The folder, and the server whose schema must not be fetched."""

    file: Path
    server: socket.socket
    good: list[str]


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory, slow: Callable[[float], float]) -> Iterator[Hundred]:
    base = tmp_path_factory.mktemp("hundred")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        sources = {name: text.replace("PORT", str(server.getsockname()[1])) for name, text in BROKEN.items()}
        sources |= {**FAULTY_PLUGINS, "dies_once": RECOVERS}
        good = [f"good_{number}" for number in range(COUNT - len(sources))]
        sources |= {name: GOOD.format(name=name, more="") for name in good}
        for name, text in sources.items():
            (base / "plugins" / name).mkdir(parents=True)
            (base / "plugins" / name / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        file = base / "plugins.json"
        file.write_text(json.dumps({"plugins": [entry_of(name, slow(20)) for name in sources]}), encoding="utf-8")
        file.chmod(0o600)
        yield Hundred(file, server, good)


def entry_of(name: str, limit_s: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "path": f"plugins/{name}"}
    if name in HUNG:
        entry["limits"] = {"init_s": limit_s, "start_s": limit_s, "stop_s": 0.2, "kill_grace_s": 0.2}
    if name == "switched_off":
        entry["enabled"] = False
    if name == "unknown_key":
        entry["runtim"] = "inline"
    if name == "no_plugin":
        entry["class"] = "NoPlugin"
    return entry


@pytest.mark.timeout(180)
async def test_a_hundred_plugins_with_every_fault_leave_the_good_ones_working(
    hundred: Hundred, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="cyrene.plugins")
    overrides = {"host.state_dir": str(hundred.file.parent / "state")}
    async with Host.open(hundred.file, overrides=overrides) as host:
        reports = {report.name: report for report in await host.health()}
        for name in hundred.good:
            result = await host.call(f"say_{name}", {"text": "hi"})
            assert result.output == f"{name}: hi", result.error
        fine = await host.call("bad_schema.fine", {"text": "still here"})
        recovered = await host.call("say_dies_once", {"text": "hi"})
        twin = await host.call("two_tools.twin", {"text": "the first"})
        refused = await host.call("bad_schema.bad", {"text": "x"})
        remote = await host.call("remote_ref.far", {"text": "x"})
        lost = await host.call("import_error.anything", {})

    assert len(reports) == COUNT
    assert [name for name in hundred.good if not reports[name].is_well] == []
    for name, (state, stage, cause, mend) in EXPECTED.items():
        check_report(reports[name], state, stage, cause, mend)
    for name in FAULTY_PLUGINS:
        stage, _, fault = name.partition("_")
        check_report(reports[name], "failed", stage, *EXPECTED_FAULTY[fault])
    assert recovered.output == "dies_once: hi", recovered.error
    assert_ready_before_the_hung_are_given_up(hundred, caplog)
    for name, (cause, tool_mend) in EXPECTED_TOOLS.items():
        check_tool_error(reports[name], cause, tool_mend)
    assert reports["switched_off"].state == "disabled"
    assert fine.output == "still here"
    assert twin.output == "the first"
    assert refused.error_kind == remote.error_kind == "schema_invalid"
    assert lost.error_kind == "plugin_unavailable"
    with pytest.raises(BlockingIOError):
        hundred.server.accept()  # nobody asked for the remote schema


def assert_ready_before_the_hung_are_given_up(hundred: Hundred, caplog: pytest.LogCaptureFixture) -> None:
    """The good ones wait for no limit of a bad one."""
    told = [record.getMessage() for record in caplog.records if record.name == "cyrene.plugins"]
    started = [next(n for n, text in enumerate(told) if text.startswith(f"plugin '{name}' is started"))
               for name in (*hundred.good, "dies_once")]  # fmt: skip
    failed = [next(n for n, text in enumerate(told) if text.startswith(f"plugin '{name}' is failed")) for name in HUNG]
    assert max(started) < min(failed)


def check_report(report: PluginReport, state: str, stage: str, cause: str, mend: str) -> None:
    assert not report.is_well
    assert (report.state, report.stage) == (state, stage), report
    assert report.error is not None
    assert report.error.plugin == report.name
    assert cause in report.error.what
    assert report.error.where
    assert mend in (report.error.mend or ""), report.error


def check_tool_error(report: PluginReport, cause: str, mend: str | None) -> None:
    assert not report.is_well
    assert report.state == "started"
    (error,) = report.tool_errors
    assert error.plugin == report.name
    assert cause in error.what
    assert error.where
    assert error.mend
    assert mend is None or mend in error.mend
