"""Plugins on interpreters of their own: what these need, and which side to upgrade where it does not fit."""

from __future__ import annotations

import asyncio
import importlib.metadata
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest

import cyrene_sdk

Ground = Any

USES_FRUIT = """
import fruit

from cyrene_sdk import BasePlugin, PluginMetadata, tool


class Eats(BasePlugin):
    meta = PluginMetadata(name="NAME", version="VERSION")

    @tool
    def NAME_taste(self) -> str:
        '''Taste.'''
        return fruit.TASTE_CALL
"""

FRUIT_1 = "VERSION = 1\n\ndef taste():\n    return 'sour, version 1'\n"
FRUIT_2 = "VERSION = 2\n\ndef taste(how):\n    return f'{how}, version 2'\n"

OTHER_WORKER = """
import argparse
import json
import os
import socket
import struct

parser = argparse.ArgumentParser()
parser.add_argument("command")
parser.add_argument("--fd", type=int)
parser.add_argument("--lifeline", type=int)
told = parser.parse_args()
MANIFEST = {
    "sdk_contract": DESCRIBES,
    "metadata": {"name": "one", "version": "1.0.0"},
    "tools": [{"name": "one_do", "description": "", "parameters": {"type": "object"}}],
}
if told.command == "describe":
    with os.fdopen(told.fd, "w") as pipe:
        pipe.write(json.dumps({"manifest": MANIFEST}) + "\\n")
else:
    link = socket.socket(fileno=told.fd)
    body = json.dumps({"k": "ready", "contract": SPEAKS, "python": "3.11.0", "pid": os.getpid()}).encode()
    link.sendall(struct.pack(">I", len(body)) + body)
    link.recv(1)
    link.recv(1_000_000)
    link.recv(1_000_000)
"""


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a virtual environment with some modules in it.

    Args:
        name: the folder's name.
        has_sdk: whether cyrene-sdk, with what it needs, can be imported there.
        modules: files in its site-packages, by path.
    """

    def made(name: str, *, has_sdk: bool = True, **modules: str) -> Path:
        folder = tmp_path / name
        venv.create(folder, symlinks=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        if has_sdk:
            needed = {Path(cyrene_sdk.__file__).parents[1], Path(pydantic.__file__).parents[1]}
            (packages / "needed.pth").write_text("".join(f"{path}\n" for path in needed))
        for module, text in modules.items():
            (packages / f"{module}.py").write_text(text)
        return folder

    return made


def speaks(folder: Path, *, describes: int, answers: int) -> None:
    """Put a `cyrene_sdk` into an environment whose worker speaks another contract."""
    (packages,) = folder.glob("lib/python*/site-packages")
    worker = packages / "cyrene_sdk" / "_worker"
    worker.mkdir(parents=True, exist_ok=True)
    (worker.parent / "__init__.py").touch()
    (worker / "__init__.py").touch()
    text = OTHER_WORKER.replace("DESCRIBES", str(describes)).replace("SPEAKS", str(answers))
    (worker / "__main__.py").write_text(text)


async def test_plugins_that_need_conflicting_versions_of_one_library_run_side_by_side(
    ground: Ground, environment: Callable[..., Path]
) -> None:
    environment("with-1", fruit=FRUIT_1)
    environment("with-2", fruit=FRUIT_2)
    ground.plugin("one", source=USES_FRUIT.replace("fruit.TASTE_CALL", "fruit.taste()"))
    ground.plugin("two", source=USES_FRUIT.replace("fruit.TASTE_CALL", "fruit.taste('sweet')"))
    ground.list({"name": "one", "python": "with-1"}, {"name": "two", "python": "with-2/bin/python"})

    async with ground.open() as host:
        results = await asyncio.gather(*(host.call(tool) for tool in ["one_taste", "two_taste"] * 5))
        reports = host.plugins.list()

    assert [result.output for result in results] == ["sour, version 1", "sweet, version 2"] * 5
    assert [report.state for report in reports] == ["started", "started"]
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("fruit")


async def test_an_interpreter_without_the_sdk_is_named_with_what_to_install(
    ground: Ground, environment: Callable[..., Path]
) -> None:
    folder = environment("bare", has_sdk=False)
    ground.plugin("one")
    ground.plugin("good")
    ground.list({"name": "one", "python": "bare"}, "good")

    async with ground.open() as host:
        report = host.plugins.get("one")
        good = await host.call("good_do")

    assert (report.state, report.stage) == ("failed", "load")
    assert report.error is not None
    assert f"'{folder / 'bin' / 'python'}' has no cyrene-sdk" in report.error.what
    assert report.error.mend == f"`{folder / 'bin' / 'python'} -m pip install cyrene-sdk`"
    assert good.success


async def test_an_interpreter_that_loses_the_sdk_after_its_plugin_was_described_is_named_too(
    ground: Ground, environment: Callable[..., Path]
) -> None:
    folder = environment("own")
    ground.plugin("one")
    ground.list({"name": "one", "python": "own"})

    async with ground.open() as host:
        assert host.plugins.get("one").state == "started"
    (pth,) = folder.glob("lib/python*/site-packages/needed.pth")
    pth.unlink()
    async with ground.open() as host:
        report = host.plugins.get("one")

    assert (report.state, report.stage) == ("failed", "load")
    assert report.error is not None
    assert report.error.what.endswith("/own/bin/python' has no cyrene-sdk")
    assert report.error.mend.endswith("/own/bin/python -m pip install cyrene-sdk`")


@pytest.mark.parametrize(("contract", "mend"), [(99, "upgrade cyrene-host"), (0, "cyrene-sdk")], ids=["newer", "older"])
@pytest.mark.parametrize("when", ["described", "started"])
async def test_a_worker_of_another_contract_is_refused_with_the_side_to_upgrade(
    ground: Ground, environment: Callable[..., Path], when: str, contract: int, mend: str
) -> None:
    folder = environment("own", has_sdk=False)
    speaks(folder, describes=contract if when == "described" else 1, answers=contract)
    ground.plugin("one")
    ground.list({"name": "one", "python": "own"})

    async with ground.open() as host:
        report = host.plugins.get("one")
        refused = await host.call("one.one_do")

    assert report.state in ("failed", "incompatible")
    assert report.error is not None
    assert f"the SDK contract '{contract}', this host speaks 1" in report.error.what
    assert mend in report.error.mend
    assert refused.error_kind == "plugin_unavailable"


async def test_an_interpreter_that_is_not_there_is_named(ground: Ground) -> None:
    ground.plugin("one")
    ground.list({"name": "one", "python": "nowhere"})

    async with ground.open() as host:
        report = host.plugins.get("one")

    assert report.state in ("failed", "blocked")
    assert report.error is not None
    assert "nowhere" in report.error.what
