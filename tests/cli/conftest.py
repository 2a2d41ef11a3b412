"""A folder to run `cyrene` in, and two ways to run it: in this process, and as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.cli.program import run

COMMAND = [sys.executable, "-m", "cyrene_host.cli"]


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


class Workshop:
    """A folder with plugins.json and plugins, and the environment of a reader of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CYRENE_")},
            "CYRENE_HOST__STATE_DIR": str(folder / "state"),
            "COLUMNS": "100",
            "PYTHONPATH": "",
        }

    def plugin(self, name: str, source: str) -> Path:
        """Write the plugin `plugins/<name>/cyrene_<name>.py` and return that file."""
        file = self.folder / "plugins" / name / f"cyrene_{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        return file

    def list(self, *entries: str | Mapping[str, Any]) -> Path:
        """Write plugins.json; a text is the entry of that name."""
        file = self.folder / "plugins.json"
        file.write_text(json.dumps([{"name": e} if isinstance(e, str) else e for e in entries], ensure_ascii=False))
        file.chmod(0o600)
        return file

    def process(self, *arguments: str, limit_s: float = 30, **environment: str) -> Ran:
        """Run `cyrene` as a process of its own."""
        ended = subprocess.run(
            [*COMMAND, *arguments], cwd=self.folder, env={**self.environment, **environment},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False,
        )  # fmt: skip
        return Ran(ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8"))


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """An empty folder to work in; what is imported from it is forgotten at the end."""
    made = Workshop(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CYRENE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CYRENE_HOST__STATE_DIR", made.environment["CYRENE_HOST__STATE_DIR"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield made
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def cyrene(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs a command in this process, in the workshop."""

    def ran(*arguments: str) -> Ran:
        code = run(arguments)
        written = capsys.readouterr()
        return Ran(code, written.out, written.err)

    return ran


GREETER = '''
    from typing import Annotated

    from cyrene_sdk import ArgumentError, BasePlugin, PluginMetadata, tool


    class GreeterPlugin(BasePlugin):
        meta = PluginMetadata(name="greeter", version="1.2.0", description="Greets.")

        @tool(danger_level="low", triggers=["a", "b", "c"])
        async def greet(self, name: Annotated[str, "who"] = "", times: Annotated[int, "how often"] = 1) -> str:
            """Greet. Call it when the user says hello."""
            print("greeting")
            if times < 1:
                raise ArgumentError("at least once", path="/times")
            return f"你好 {name}" * times

        @tool(danger_level="high")
        async def erase(self, what: Annotated[str, "what to erase"]) -> str:
            """Erase. Call it when the user wants to erase."""
            return f"erased {what}"
'''


@pytest.fixture
def greeter(workshop: Workshop) -> Workshop:
    """A workshop with one plugin that greets, and erases."""
    workshop.plugin("greeter", GREETER)
    workshop.list("greeter")
    return workshop


VAGUE = """
    from cyrene_sdk import BasePlugin, PluginMetadata, ToolComplexity, ToolDefinition, ToolResult


    class VagueTool:
        def definition(self):
            parameters = {"type": "object", "properties": {"n": {"type": "nubmer"}}}
            return ToolDefinition(name="guess", description="Guess.", parameters=parameters)

        def execute(self, args):
            return ToolResult(success=True)

        def validate(self, args):
            return None

        def complexity(self):
            return ToolComplexity.SIMPLE


    class VaguePlugin(BasePlugin):
        meta = PluginMetadata(name="vague", version="1.0.0")

        def tools(self):
            return [VagueTool()]
"""


@pytest.fixture
def vague(workshop: Workshop) -> str:
    """The name of a plugin with one tool, whose schema is invalid; it is not listed yet."""
    workshop.plugin("vague", VAGUE)
    return "vague"
