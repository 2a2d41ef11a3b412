"""The knowledge plugin on its own: what it says of itself, and its runs side by side."""

from __future__ import annotations

import asyncio
import threading
import tomllib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from pydantic import ValidationError

from cyrene_knowledge import KnowledgePlugin, KnowledgeSettings
from cyrene_sdk import DangerLevel, ToolComplexity, ToolFailure

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def silent(progress: float, message: str = "") -> None:
    """Take a report and do nothing with it."""


def test_its_definitions_say_when_to_call_each_tool_and_when_not() -> None:
    definitions = {tool.definition().name: tool.definition() for tool in KnowledgePlugin().tools()}

    assert {
        name: (tool.complexity, tool.danger_level, tool.read_only, tool.idempotent)
        for name, tool in definitions.items()
    } == {
        "index": (ToolComplexity.COMPLEX, DangerLevel.LOW, False, True),
        "search": (ToolComplexity.SIMPLE, DangerLevel.LOW, True, True),
        "indexed": (ToolComplexity.SIMPLE, DangerLevel.LOW, True, True),
        "forget": (ToolComplexity.SIMPLE, DangerLevel.MEDIUM, False, True),
    }  # fmt: skip
    for definition in definitions.values():
        assert definition.category == "knowledge"
        assert definition.returns["required"]
        for requests in (definition.triggers, definition.not_when):
            in_english = [request for request in requests if request.isascii()]
            assert len(in_english) >= 3
            assert len(requests) - len(in_english) >= 3


def test_a_request_that_reaches_one_tool_is_kept_from_no_other_by_mistake() -> None:
    definitions = [tool.definition() for tool in KnowledgePlugin().tools()]

    for definition in definitions:
        assert not {*definition.triggers} & {*definition.not_when}
        for other in definitions:
            assert definition is other or not {*definition.triggers} & {*other.triggers}


def test_its_metadata_and_its_distribution_state_one_version() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]

    assert KnowledgePlugin().metadata().version == project["version"]


def test_its_entry_point_names_the_plugin() -> None:
    (entry_point,) = entry_points(group="cyrene.plugins", name="knowledge")

    assert entry_point.load() is KnowledgePlugin


@pytest.mark.parametrize("config", [{"folders": [""]}, {"folders": "docs"}, {"folder": ["docs"]}])
def test_a_configuration_that_does_not_fit_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        KnowledgeSettings.model_validate(config)


class Gate:
    """A report that holds its run at the third of four files until it is opened."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self._open = threading.Event()

    def __call__(self, progress: float, message: str = "") -> None:
        if "(3/4)" in message:
            self._loop.call_soon_threadsafe(self.reached.set)
            self._open.wait(20)

    def open(self) -> None:
        self._open.set()


async def test_a_folder_that_is_being_indexed_is_busy(plugin: KnowledgePlugin, slow: Callable[[float], float]) -> None:
    gate = Gate()
    first = asyncio.create_task(plugin.index(gate, Path("docs")))
    async with asyncio.timeout(slow(20)):
        await gate.reached.wait()

        for folder in (None, Path("docs"), Path("docs/deep")):
            with pytest.raises(ToolFailure, match="the folder 'docs' is being indexed right now; wait until that ends"):
                await plugin.index(silent, folder)
        with pytest.raises(ToolFailure, match="being indexed"):
            await plugin.forget(Path("docs/deep"))

        gate.open()
        assert (await first).data["read"] == 4
        assert (await plugin.index(silent)).data["unchanged"] == 4


async def test_a_cancelled_run_stops_between_files_and_goes_on_when_it_is_run_again(
    plugin: KnowledgePlugin, slow: Callable[[float], float]
) -> None:
    gate = Gate()
    work = asyncio.create_task(plugin.index(gate))
    async with asyncio.timeout(slow(20)):
        await gate.reached.wait()

        work.cancel()
        for _ in range(5):  # until the run is told
            await asyncio.sleep(0)
        gate.open()
        with pytest.raises(asyncio.CancelledError):
            await work

        assert plugin.indexed().data["folders"][0]["files"] == 2
        again = await plugin.index(silent)
        assert (again.data["read"], again.data["unchanged"]) == (2, 2)


async def test_stopping_the_plugin_ends_its_runs(plugin: KnowledgePlugin, slow: Callable[[float], float]) -> None:
    gate = Gate()
    work = asyncio.create_task(plugin.index(gate))
    async with asyncio.timeout(slow(20)):
        await gate.reached.wait()

        stopping = asyncio.create_task(plugin.stop())
        for _ in range(5):
            await asyncio.sleep(0)
        gate.open()
        await stopping
        with pytest.raises(Exception, match=r"^$") as ended:
            await work

    assert type(ended.value).__name__ == "StoppedError"
    assert plugin.indexed().data["folders"][0]["files"] == 2
