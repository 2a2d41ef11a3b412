"""A plugin is described in an interpreter of its own, whatever it does there."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cyrene_sdk._worker import __main__ as worker
from cyrene_sdk._worker.describe import answer

Request = Callable[..., dict[str, Any]]

_numbers = itertools.count(1)

PLUGIN = """
from cyrene_sdk import BasePlugin, PluginMetadata, tool

class Weather(BasePlugin):
    meta = PluginMetadata(name="weather", version="1.0.0")

    @tool
    def forecast(self, city: str) -> str:
        "Tell the weather."
        return city
"""


@pytest.fixture
def request_for(tmp_path: Path) -> Iterator[Request]:
    """Return a function that writes a module and gives the request to describe it."""
    modules, path = set(sys.modules), list(sys.path)

    def made(source: str, **more: Any) -> dict[str, Any]:
        module = f"described_{next(_numbers)}"
        (tmp_path / f"{module}.py").write_text(source)
        return {"module": module, "attribute": None, "folder": str(tmp_path), "limit_s": 10.0, **more}

    yield made
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_the_answer_is_the_manifest(request_for: Request) -> None:
    manifest = answer(request_for(PLUGIN))["manifest"]

    assert manifest["metadata"]["version"] == "1.0.0"
    assert [tool["name"] for tool in manifest["tools"]] == ["forecast"]
    assert manifest["sdk_contract"] == 2


def test_a_stage_that_fails_is_answered_in_four_parts(request_for: Request) -> None:
    error = answer(request_for("raise ImportError('no libweather')"))["error"]

    assert error.pop("trace").rstrip().endswith("ImportError: no libweather")
    assert error["where"].endswith(".py line 1")
    assert error["what"].endswith("failed to import: ImportError: no libweather")
    assert (error["stage"], error["mend"][:4]) == ("load", "mend")


def test_a_manifest_that_is_no_unicode_text_is_an_error_with_its_place(request_for: Request) -> None:
    source = PLUGIN.replace('version="1.0.0"', 'version="1.0.0", keywords=["\\ud800"]')

    assert answer(request_for(source))["error"]["what"] == (
        "the manifest is refused: the text at '/metadata/keywords/0' holds a lone surrogate, which is no Unicode text"
    )


def test_a_config_schema_that_is_no_json_is_an_error_with_its_place(request_for: Request) -> None:
    source = PLUGIN + "\n    def config_schema(self): return {'default': {1}}\n"

    assert answer(request_for(source))["error"] == {
        "stage": "tools",
        "what": "the manifest is refused: the value at '/config_schema/default' is of type 'set', which is no JSON",
        "where": None,
        "mend": "let metadata, definitions and config_schema hold JSON values only",
        "trace": "",
    }


def test_the_callers_path_comes_behind_the_own(request_for: Request, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "described_library.py").write_text("VERSION = '2.0.0'")
    source = "import described_library\n" + PLUGIN.replace('"1.0.0"', "described_library.VERSION")
    own, count = sys.path[0], sys.path.count(sys.path[0])

    manifest = answer(request_for(source, sys_path=[own, str(tmp_path / "elsewhere")]))["manifest"]

    assert manifest["metadata"]["version"] == "2.0.0"
    assert sys.path.count(own) == count


def test_the_command_answers_on_its_descriptor_and_ends_the_process_at_once(
    request_for: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    ended: list[int] = []
    monkeypatch.setattr(sys, "argv", ["cyrene_sdk._worker", "describe", "--fd", str(writing)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request_for(PLUGIN))))
    monkeypatch.setattr(os, "_exit", ended.append)

    worker.main()

    with os.fdopen(reading) as pipe:
        assert json.load(pipe)["manifest"]["metadata"]["name"] == "weather"
    assert ended == [0]


def test_what_a_plugin_prints_and_leaves_running_disturbs_no_answer(
    request_for: Request, slow: Callable[[float], float]
) -> None:
    source = """
import atexit, threading
print("hello from the plugin")
atexit.register(threading.Event().wait)
threading.Thread(target=threading.Event().wait).start()
"""
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-I", "-m", "cyrene_sdk._worker", "describe", "--fd", str(writing)],
        input=json.dumps(request_for(source + PLUGIN)).encode(),
        capture_output=True,
        pass_fds=(writing,),
        timeout=slow(20),
        check=True,
    )
    os.close(writing)

    with os.fdopen(reading) as pipe:
        assert json.load(pipe)["manifest"]["metadata"]["name"] == "weather"
    assert done.stdout == b"hello from the plugin\n"
