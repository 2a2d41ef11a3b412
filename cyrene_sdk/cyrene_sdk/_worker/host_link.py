"""What a plugin in a worker has of its host: its access and its log, over the pipe."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cyrene_sdk._worker.gate import checked
from cyrene_sdk._worker.wire import Link, Message
from cyrene_sdk.context import current_call
from cyrene_sdk.errors import CyreneError, NoCurrentCallError
from cyrene_sdk.protocols import Storage
from cyrene_sdk.types import Image, ToolResult

__all__ = ["HostLink", "LinkLog"]

LOG_CHARS = 8_000


class HostLink:
    """The `HostAPI` inside a worker: each method is asked of the host."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._version = ""
        self._name = ""
        self._data_dir = Path()

    def describe(self, order: Message) -> None:
        """Take what the host says of itself when the plugin starts."""
        self._version, self._name, self._data_dir = order["version"], order["name"], Path(order["data_dir"])

    def take_answer(self, message: Message) -> None:
        """Take the host's answer to one question."""
        asked = self._asked.pop(message["id"], None)
        if asked is None or asked.done():
            return
        error = message.get("error")
        if error:
            asked.set_exception(CyreneError(error["what"], where=error.get("where"), mend=error.get("mend")))
        else:
            asked.set_result(message.get("value"))

    @property
    def version(self) -> str:
        """The host's version."""
        return self._version

    @property
    def logger(self) -> logging.Logger:
        """The plugin's own log."""
        return logging.getLogger(f"cyrene.plugin.{self._name}")

    @property
    def data_dir(self) -> Path:
        """The plugin's folder in the host's state directory."""
        self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._data_dir

    @property
    def storage(self) -> Storage:
        """The plugin's durable key-value pairs."""
        return _LinkStorage(self)

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Call a tool through the host's pipeline."""
        return ToolResult.from_json(await self.ask_host("call_tool", name=name, args=dict(args)))

    async def send_message(self, text: str = "", images: Sequence[Image] = (), to: str | None = None) -> None:
        """Send to a conversation."""
        await self.ask_host("send_message", text=text, images=[image.to_dict() for image in images], to=to)

    async def notify(self, user_id: str, text: str) -> None:
        """Leave a message for a user."""
        await self.ask_host("notify", user_id=user_id, text=text)

    async def ask(self, question: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Ask the user."""
        return await self.ask_host("ask", question=question, schema=dict(schema) if schema is not None else None)

    async def ask_host(self, method: str, **arguments: Any) -> Any:
        """Send one question to the host and return its answer; raise what the host refuses.

        A host is told when the asker has been cancelled, so that a nested call ends with the one that it is nested in.
        """
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            call_id = current_call().call_id
        except NoCurrentCallError:
            call_id = ""
        question = {"k": "ask", "id": number, "method": method, "call": call_id, "args": checked(arguments)}
        self._link.send(question)
        try:
            return await answer
        except asyncio.CancelledError:
            self._link.send({"k": "unask", "id": number})  # a host that does not know the word lets it go on
            raise
        finally:
            self._asked.pop(number, None)


class _LinkStorage:
    """`HostAPI.storage` over the pipe."""

    def __init__(self, host: HostLink) -> None:
        self._host = host

    async def get(self, key: str, default: Any = None) -> Any:
        found = await self._host.ask_host("storage_get", key=key)
        return found["value"] if found["found"] else default

    async def set(self, key: str, value: Any) -> None:
        await self._host.ask_host("storage_set", key=key, value=value)

    async def delete(self, key: str) -> None:
        await self._host.ask_host("storage_delete", key=key)

    async def keys(self) -> Sequence[str]:
        keys: list[str] = await self._host.ask_host("storage_keys")
        return keys


class LinkLog(logging.Handler):
    """Sends what plugin code logs to the host, each line cut to 8,000 characters."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link

    def install(self, level: int) -> None:
        """Become the only handler of the root logger."""
        root = logging.getLogger()
        root.handlers[:] = [self]
        root.setLevel(level)
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; from any thread."""
        try:
            text = self.format(record)[:LOG_CHARS].encode("utf-8", "replace").decode()
            message = {"k": "log", "level": record.levelno, "logger": record.name[:200], "text": text}
            self._loop.call_soon_threadsafe(self._link.send, message)
        except Exception:  # noqa: BLE001 - a log line must never break plugin code
            self.handleError(record)
