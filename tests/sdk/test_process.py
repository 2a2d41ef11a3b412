"""The worker as its host speaks to it: over a socket, in an interpreter that has nothing but the SDK."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.wire import Link, Message

Until = Callable[..., Any]

PLUGIN = """
import asyncio
import logging
import os
import sys

from cyrene_sdk import BasePlugin, PluginMetadata, current_call, tool


class Speaks(BasePlugin):
    meta = PluginMetadata(name="speaks", version="1.0.0")

    def init(self, config):
        if "bad" in config:
            raise ValueError("bad config \\ud800")

    def start(self, host):
        self.host = host
        host.logger.warning("started with %s in %s", host.version, host.data_dir.name)

    @tool
    async def echo(self, text: str) -> str:
        '''Answer the text.'''
        return f"{text} {current_call().user_id}"

    @tool
    async def waits(self, seconds: float) -> str:
        '''Wait.'''
        await asyncio.sleep(seconds)
        return "waited"

    @tool
    async def raises(self) -> str:
        '''Raise what no UTF-8 can hold.'''
        raise RuntimeError("\\ud800 " + "x" * 100_000)

    @tool
    async def keeps(self, key: str) -> str:
        '''Ask the host.'''
        await self.host.storage.set(key, {"n": 1})
        found = await self.host.storage.get(key)
        await self.host.notify("ada", "hi")
        return f"{found} {await self.host.ask('sure?')}"

    @tool
    async def modules(self) -> list[str]:
        '''Tell what is imported.'''
        return sorted({name.partition(".")[0] for name in sys.modules})
"""


class Worker:
    """A worker process and the host's end of its link."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.came: list[Message] = []
        self.link = Link(self._take, lambda _: None)
        self._more = asyncio.Event()
        self.process: asyncio.subprocess.Process
        self.lifeline = -1
        self._number = 0

    async def start(self) -> None:
        own, other = socket.socketpair()
        reading, self.lifeline = os.pipe()
        argv = [sys.executable, "-I", "-m", "cyrene_sdk._worker", "serve"]
        self.process = await asyncio.create_subprocess_exec(
            *argv, "--fd", str(other.fileno()), "--lifeline", str(reading), pass_fds=(other.fileno(), reading)
        )
        other.close()
        os.close(reading)
        await asyncio.get_running_loop().create_unix_connection(lambda: self.link, sock=own)
        code = {"module": "speaks", "attribute": None, "folder": str(self.folder)}
        self.link.send({"k": "hello", "code": code, "sys_path": [], "grace_s": 0.2, "threads": 4, "log_level": 30})

    def _take(self, message: Message) -> None:
        self.came.append(message)
        self._more.set()

    async def asked(self, message: Message) -> Message:
        """Send an order and return its answer."""
        self._number += 1
        self.link.send({**message, "id": self._number})
        return await self.next(lambda told: told["k"] == "end" and told["id"] == self._number)

    async def next(self, fits: Callable[[Message], bool]) -> Message:
        async with asyncio.timeout(20):
            while not (found := [told for told in self.came if fits(told)]):
                self._more = asyncio.Event()
                await self._more.wait()
        self.came.remove(found[0])
        return found[0]

    async def up(self) -> list[str]:
        """Go through all stages; return the names of the tools."""
        await self.asked({"k": "stage", "stage": "load", "limit": 20})
        await self.asked(stage("init", config={}, name="speaks", version="1.0.0"))
        await self.asked(stage("start", version="9.9", name="speaks", data_dir=str(self.folder / "data")))
        told = await self.asked({"k": "stage", "stage": "tools", "limit": 5})
        return [definition["name"] for definition in told["value"]["tools"]]


def stage(name: str, /, **more: Any) -> Message:
    return {"k": "stage", "stage": name, "limit": 5, **more}


def call(tool: str, limit: float = 5, **args: Any) -> Message:
    context = ["call_1", "python", None, "ada", None, None, 1.0]
    return {"k": "call", "tool": tool, "args": args, "call": context, "limit": limit, "validate": True}


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Worker]:
    (tmp_path / "speaks.py").write_text(PLUGIN)
    made = Worker(tmp_path)
    await made.start()
    yield made
    made.link.close()
    if made.lifeline != -1:
        os.close(made.lifeline)
    async with asyncio.timeout(10):
        await made.process.wait()


async def test_it_greets_with_its_contract_and_goes_through_its_stages(worker: Worker) -> None:
    greeting = await worker.next(lambda told: told["k"] == "ready")
    loaded = await worker.asked({"k": "stage", "stage": "load", "limit": 20})
    tools = await worker.up()
    log = await worker.next(lambda told: told["k"] == "log")
    health = await worker.asked(stage("health"))
    stopped = await worker.asked(stage("stop"))

    assert (greeting["contract"], greeting["pid"]) == (CONTRACT, worker.process.pid)
    assert loaded["value"]["metadata"]["name"] == "speaks"
    assert loaded["value"]["checks_config"] is False
    assert set(tools) == {"echo", "waits", "raises", "keeps", "modules"}
    assert log == {"k": "log", "level": 30, "logger": "cyrene.plugin.speaks", "text": "started with 9.9 in data"}
    assert (health["value"], stopped["value"]) == (None, None)


async def test_many_calls_are_under_way_and_each_answer_has_its_number(worker: Worker) -> None:
    await worker.up()
    waits = [0.3, 0.2, 0.1, 0.0]
    for number, seconds in enumerate(waits, 100):
        worker.link.send({**call("waits", seconds=seconds), "id": number})
    order = [(await worker.next(lambda told: told["k"] == "end"))["id"] for _ in waits]
    answer = await worker.asked(call("echo", text="hi"))

    assert order == [103, 102, 101, 100]
    assert answer["fields"]["output"] == "hi ada"


async def test_a_cancelled_call_ends_as_cancelled_and_late_ones_as_a_timeout(worker: Worker) -> None:
    await worker.up()
    worker.link.send({**call("waits", seconds=30), "id": 100})
    worker.link.send({"k": "cancel", "id": 100})
    worker.link.send({"k": "cancel", "id": 99})
    cancelled = await worker.next(lambda told: told["k"] == "end" and told["id"] == 100)
    late = await worker.asked(call("waits", 0.05, seconds=30))

    assert cancelled["fault"]["kind"] == "cancelled"
    assert (late["fault"]["kind"], late["abandoned"]) == ("timeout", 0)


async def test_an_error_that_no_utf8_can_hold_still_answers(worker: Worker) -> None:
    await worker.asked({"k": "stage", "stage": "load", "limit": 20})
    failed = await worker.asked(stage("init", config={"bad": 1}, name="speaks", version="1.0.0"))
    await worker.up()
    raised = await worker.asked(call("raises"))

    assert failed["error"]["what"] == "'init' raised ValueError: bad config ?"
    assert failed["error"]["stage"] == "init"
    assert "ValueError" in failed["error"]["trace"]
    assert raised["fault"]["message"].startswith("RuntimeError: ? xxx")
    assert len(raised["fault"]["message"]) < 2_100


async def test_what_a_plugin_asks_of_its_host_travels_and_a_refusal_is_raised_there(worker: Worker) -> None:
    await worker.up()
    worker.link.send({**call("keeps", key="k"), "id": 100})
    asked = await worker.next(lambda told: told["k"] == "ask")
    worker.link.send({"k": "answer", "id": asked["id"], "value": None})
    second = await worker.next(lambda told: told["k"] == "ask")
    worker.link.send({"k": "answer", "id": second["id"], "value": {"found": True, "value": {"n": 1}}})
    third = await worker.next(lambda told: told["k"] == "ask")
    worker.link.send({"k": "answer", "id": 10_000, "value": "of nothing"})
    error = {"what": "nobody is there", "where": "HostAPI.notify", "mend": "do without"}
    worker.link.send({"k": "answer", "id": third["id"], "error": error})
    ended = await worker.next(lambda told: told["k"] == "end" and told["id"] == 100)

    assert (asked["method"], asked["args"]) == ("storage_set", {"key": "k", "value": {"n": 1}})
    assert asked["call"] == "call_1"
    assert (second["method"], third["method"]) == ("storage_get", "notify")
    assert "nobody is there" in ended["fault"]["message"]
    assert "do without" in ended["fault"]["message"]


async def test_it_imports_nothing_of_the_host(worker: Worker) -> None:
    await worker.up()
    answer = await worker.asked(call("modules"))

    assert "cyrene_sdk" in answer["fields"]["data"]
    assert "cyrene_host" not in answer["fields"]["data"]
    assert "anyio" not in answer["fields"]["data"]


@pytest.mark.parametrize("how", ["bye", "the link closes", "the lifeline ends", "a frame is no message"])
async def test_it_ends_when_its_host_is_gone_or_says_so(worker: Worker, how: str) -> None:
    await worker.up()
    worker.link.send({**call("waits", seconds=30), "id": 100})
    if how == "bye":
        worker.link.send({"k": "bye"})
    elif how == "the link closes":
        worker.link.close()
    elif how == "the lifeline ends":
        os.close(worker.lifeline)
        worker.lifeline = -1
    else:
        assert worker.link._transport is not None
        worker.link._transport.write(b"\xff\xff\xff\xff")

    async with asyncio.timeout(10):
        assert await worker.process.wait() == 0
