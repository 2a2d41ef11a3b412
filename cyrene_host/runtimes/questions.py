"""What a plugin in a worker asks of its host, answered through its `HostAPI`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk._worker.wire import Message
from cyrene_sdk.context import CurrentCall, _current
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.protocols import HostAPI
from cyrene_sdk.types import Image

__all__ = ["Questions"]

MOST_AT_ONCE = 256


class Questions:
    """Answers a worker's questions, each in a task of its own.

    Args:
        send: sends an answer to the worker.
        call_of: finds, by its id, a call that runs in this very worker; what a question names is no more than a claim.

    While one is answered, `current_call()` is the call that asks; a question outside any call has none.
    `host` is set when the plugin is started; before that every question is refused.
    """

    def __init__(self, send: Callable[[Message], None], call_of: Callable[[str], CurrentCall | None]) -> None:
        self._send = send
        self._call_of = call_of
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.host: HostAPI | None = None

    def take(self, message: Message) -> None:
        """Take one question; one without a number of its own is nobody's."""
        number = message.get("id")
        if type(number) is not int or not 0 <= number < 2**63:
            return
        if number in self._tasks:
            self._refuse(number, "another question has this number")
            return
        if len(self._tasks) >= MOST_AT_ONCE:
            self._refuse(number, f"more than {MOST_AT_ONCE} questions at once")
            return
        context = Context()  # an empty one: the pipe may have been opened in the midst of another call
        asks = message.get("call")
        call = self._call_of(asks) if isinstance(asks, str) else None
        if call is not None:
            context.run(_current.set, call)
        task = asyncio.get_running_loop().create_task(self._answer(message), context=context)
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def drop(self, message: Message) -> None:
        """Cancel the answer to a question: whoever asked has left."""
        number = message.get("id")
        task = self._tasks.get(number) if type(number) is int else None
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Drop the questions that are not answered."""
        for task in self._tasks.values():
            task.cancel()

    async def _answer(self, message: Message) -> None:
        number = message.get("id")
        try:
            arguments = checked(message.get("args"))
            value = await self._asked(str(message.get("method")), arguments if isinstance(arguments, dict) else {})
            self._send({"k": "answer", "id": number, "value": checked(value)})
        except CyreneError as error:
            self._refuse(number, error.what, error.where, error.mend)
        except (GateError, TypeError, ValueError, KeyError, AttributeError) as error:
            self._refuse(number, f"the question was refused: {error}")

    async def _asked(self, method: str, args: dict[str, Any]) -> Any:
        host = self.host
        if host is None:
            raise CyreneError("the host answers from 'start' on", where=f"HostAPI.{method}", mend="ask later")
        answers: dict[str, Callable[[], Awaitable[Any]]] = {
            "call_tool": lambda: host.call_tool(args["name"], args["args"]),
            "send_message": lambda: host.send_message(args["text"], [Image(**i) for i in args["images"]], args["to"]),
            "notify": lambda: host.notify(args["user_id"], args["text"]),
            "ask": lambda: host.ask(args["question"], args["schema"]),
            "storage_get": lambda: _found(host, args["key"]),
            "storage_set": lambda: host.storage.set(args["key"], args["value"]),
            "storage_delete": lambda: host.storage.delete(args["key"]),
            "storage_keys": lambda: _keys(host),
        }
        answer = answers.get(method)
        if answer is None:
            raise CyreneError(f"there is no 'HostAPI.{method[:80]}'", mend="upgrade cyrene-host")
        value = await answer()
        return value.to_dict() if method == "call_tool" else value

    def _refuse(self, number: Any, what: str, where: str | None = None, mend: str | None = None) -> None:
        self._send({"k": "answer", "id": number, "error": {"what": what, "where": where, "mend": mend}})


async def _found(host: HostAPI, key: str) -> dict[str, Any]:
    nothing = object()
    value = await host.storage.get(key, nothing)
    return {"found": value is not nothing, "value": None if value is nothing else value}


async def _keys(host: HostAPI) -> list[str]:
    return list(await host.storage.keys())
