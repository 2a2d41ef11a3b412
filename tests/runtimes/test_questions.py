"""What a plugin in a worker asks of its host: answered where this host can, refused with its sentence where not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host import CallContext, __version__
from cyrene_host.host.outlets import OutgoingMessage, Question
from cyrene_host.runtimes.questions import MOST_AT_ONCE, Questions

Ground = Any
Until = Callable[..., Any]

ASKS = """
import asyncio

from typing import Any

from cyrene_sdk import BasePlugin, Image, PluginMetadata, tool


class Asks(BasePlugin):
    meta = PluginMetadata(name="NAME", version="VERSION")

    async def start(self, host):
        self.host = host
        (host.data_dir / "mine").write_text(host.version)

    @tool
    async def NAME_knows(self) -> dict:
        '''Tell what it knows of its host.'''
        return {"version": self.host.version, "log": self.host.logger.name, "folder": self.host.data_dir.name,
                "answer": await self.host.ask("sure?")}

    @tool(danger_level="low")
    async def NAME_keeps(self, key: str) -> list[Any]:
        '''Use the storage.'''
        storage, nothing = self.host.storage, object()
        before = await storage.get(key, "nothing")
        await storage.set(key, {"kept": [1, None]})
        after, keys = await storage.get(key), list(await storage.keys())
        await storage.delete(key)
        return [before, after, keys, list(await storage.keys())]

    @tool(danger_level="low")
    async def NAME_sends(self) -> str:
        '''Send to the conversation, and leave a message.'''
        await self.host.send_message("hi", [Image(mime="image/png", url="https://example.org/a.png")])
        await self.host.notify("ada", "left")
        return str(await self.host.ask("sure?", {"type": "boolean"}))

    @tool(danger_level="low")
    async def NAME_asks(self) -> list[str]:
        '''Ask for what cannot be had.'''
        host, told = self.host, []
        for ask in (
            lambda: host.send_message("hi"),
            lambda: host.send_message("hi", to="room"),
            lambda: host.notify("ada", 7),
            lambda: host.storage.get(""),
            lambda: host.storage.set("key", {1, 2}),
            lambda: host.ask_host("no_such_method"),
        ):
            try:
                await ask()
            except Exception as error:
                told.append(getattr(error, "what", None) or type(error).__name__)
        return told

    @tool
    async def NAME_asks_a_lot(self, times: int) -> int:
        '''Ask many things at once.'''
        answers = await asyncio.gather(*(self.host.ask("sure?") for _ in range(times)), return_exceptions=True)
        return sum(answer is None for answer in answers)
"""


async def test_a_plugin_knows_its_hosts_version_its_log_and_its_folder(ground: Ground) -> None:
    ground.plugin("one", source=ASKS)
    ground.list("one")

    async with ground.open() as host:
        result = await host.call("one_knows")

    assert result.data == {"version": __version__, "log": "cyrene.plugin.one", "folder": "one", "answer": None}
    assert (ground.folder / "state" / "data" / "one" / "mine").read_text() == __version__


@pytest.mark.parametrize("runtime", ["process", "inline"])
async def test_a_plugin_keeps_and_finds_values_of_its_own(ground: Ground, runtime: str) -> None:
    for name in ("one", "two"):
        ground.plugin(name, source=ASKS)
    ground.list({"name": "one", "runtime": runtime}, {"name": "two", "runtime": runtime})

    async with ground.open() as host:
        results = [await host.call(f"{name}.{name}_keeps", {"key": "k"}) for name in ("one", "two", "one")]

    assert [result.data for result in results] == [["nothing", {"kept": [1, None]}, ["k"], []]] * 3


@pytest.mark.parametrize("runtime", ["process", "inline"])
async def test_messages_reach_the_conversation_of_the_call_and_users_find_what_was_left(
    ground: Ground, runtime: str
) -> None:
    ground.plugin("one", source=ASKS)
    ground.list({"name": "one", "runtime": runtime})
    sent: list[OutgoingMessage] = []
    asked: list[Question] = []

    async def messenger(message: OutgoingMessage) -> None:
        sent.append(message)

    async def asker(question: Question) -> bool:
        asked.append(question)
        return True

    context = CallContext(conversation_id="room", user_id="ada")
    async with ground.open(messenger=messenger, asker=asker) as host:
        result = await host.call("one_sends", context=context)
        (left,) = await host.notifications.pending("ada")

    assert result.output == "True"
    (message,) = sent
    assert (message.plugin, message.conversation_id, message.text, message.user_id) == ("one", "room", "hi", "ada")
    assert [image.url for image in message.images] == ["https://example.org/a.png"]
    assert message.call_id == result.call_id
    assert (left.plugin, left.text) == ("one", "left")
    assert [(question.text, question.schema, question.conversation_id) for question in asked] == [
        ("sure?", {"type": "boolean"}, "room")
    ]


@pytest.mark.parametrize("runtime", ["process", "inline"])
async def test_what_cannot_be_had_is_refused_with_its_sentence(ground: Ground, runtime: str) -> None:
    ground.plugin("one", source=ASKS)
    ground.list({"name": "one", "runtime": runtime})

    async with ground.open() as host:
        result = await host.call("one_asks")

    assert result.data[:2] == ["this call belongs to no conversation", "nobody here delivers messages"]
    assert len(result.data) == 6
    if runtime == "process":
        assert result.data[5] == "there is no 'HostAPI.no_such_method'"


async def test_many_questions_at_once_are_answered_or_refused(ground: Ground) -> None:
    ground.plugin("one", source=ASKS)
    ground.list("one")

    async with ground.open() as host:
        few = await host.call("one_asks_a_lot", {"times": 100})
        many = await host.call("one_asks_a_lot", {"times": 5_000})
        after = await host.call("one_asks_a_lot", {"times": 1})

    assert few.data == 100
    assert MOST_AT_ONCE <= many.data <= 5_000
    assert after.data == 1


@pytest.mark.parametrize(
    "question",
    [
        {"id": 1},
        {"id": 1, "method": 5, "args": 7},
        {"id": 1, "method": "call_tool", "args": {}},
        {"id": 1, "method": "send_message", "args": {"text": 1, "images": [1], "to": []}},
        {"id": 1, "method": "send_message", "args": {"text": 1, "images": 5, "to": []}},
        {"id": 1, "method": "storage_set", "args": {"key": "k"}},
        {"id": 1, "method": "__class__", "args": {}},
        {"id": 1, "method": "ask", "args": {"question": "q" * 2_000_000}},
    ],
)
async def test_a_question_that_is_none_is_refused(until: Until, question: dict[str, Any]) -> None:
    answers: list[dict[str, Any]] = []
    questions = Questions(answers.append, {}.get)
    questions.host = Deaf()  # type: ignore[assignment]

    questions.take({"k": "ask", **question})
    await until(lambda: answers)

    assert answers[0]["k"] == "answer"
    assert answers[0]["id"] == question["id"]
    assert answers[0]["error"]["what"]


async def test_a_question_before_start_is_refused_with_when_it_is_answered(until: Until) -> None:
    answers: list[dict[str, Any]] = []
    Questions(answers.append, {}.get).take({"k": "ask", "id": 1, "method": "ask", "args": {}})
    await until(lambda: answers)

    error = {"what": "the host answers from 'start' on", "where": "HostAPI.ask", "mend": "ask later"}
    assert answers == [{"k": "answer", "id": 1, "error": error}]


async def test_questions_that_nobody_waits_for_any_more_are_dropped() -> None:
    answers: list[dict[str, Any]] = []
    questions = Questions(answers.append, {}.get)
    questions.host = Deaf()  # type: ignore[assignment]
    before = len(asyncio.all_tasks())
    for number in range(10):
        questions.take({"k": "ask", "id": number, "method": "ask", "args": {"question": "", "schema": None}})
    await asyncio.sleep(0)
    questions.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert answers == []
    assert len(asyncio.all_tasks()) == before


class Deaf:
    """A host that never answers a person's question, and sends to nobody."""

    async def ask(self, question: str, schema: Any = None) -> Any:
        await asyncio.Event().wait()


@pytest.mark.parametrize("number", [None, "x" * 1000, -1, 2**63, 1.5, True, [1]])
async def test_a_question_without_a_number_of_its_own_is_dropped(number: object) -> None:
    answers: list[dict[str, Any]] = []
    questions = Questions(answers.append, {}.get)

    questions.take({"k": "ask", "id": number, "method": "ask", "args": {}})
    await asyncio.sleep(0.01)

    assert answers == []


FLOODS = """
import json, os, socket, threading

from cyrene_sdk import BasePlugin, PluginMetadata, tool


def flood(fd):
    body = json.dumps({"k": "ask", "id": 1, "method": "nothing", "args": {}}).encode()
    frames = (len(body).to_bytes(4, "big") + body) * 1000
    os.set_blocking(fd, True)
    while True:
        os.write(fd, frames)


def pipe():
    for name in os.listdir("/proc/self/fd"):
        try:
            found = socket.socket(fileno=os.dup(int(name)))
            if found.family == socket.AF_UNIX and found.type == socket.SOCK_STREAM and found.getpeername() is not None:
                yield found.detach()
        except OSError:
            pass


class Floods(BasePlugin):
    meta = PluginMetadata(name="NAME", version="VERSION")

    @tool
    async def NAME_floods(self) -> str:
        '''Ask for ever, and read no answer.'''
        for fd in pipe():
            flood(fd)
        return "no pipe"
"""


async def test_a_worker_that_asks_and_never_reads_is_ended_and_the_others_work(ground: Ground) -> None:
    ground.plugin("one", source=FLOODS)
    ground.plugin("two")
    ground.list("one", "two")

    async with ground.open() as host:
        result = await host.call("one_floods")
        other = await host.call("two_do")

    assert result.error_kind == "worker_crashed", result.error
    assert "does not read" in result.error
    assert other.success, other.error
