"""What a started plugin gets of its host."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cyrene_host.call.context import Caller
from cyrene_host.errors import HostStateError
from cyrene_host.host.outlets import OutgoingMessage, Outlets, Question
from cyrene_host.version import __version__
from cyrene_sdk._worker.gate import checked
from cyrene_sdk.context import CurrentCall, current_call
from cyrene_sdk.errors import CyreneError, NoCurrentCallError
from cyrene_sdk.protocols import Storage
from cyrene_sdk.types import Image, ToolResult

__all__ = ["Offer", "PluginAccess"]

TEXT_BYTES = 65_536


class _CallFrom(Protocol):
    """Calls a tool for a plugin."""

    def __call__(
        self, caller: Caller, name: str, arguments: object, *, deadline_s: float | None
    ) -> Awaitable[ToolResult]: ...


class Offer(NamedTuple):
    """What the host does for all its plugins.

    Args:
        storage: the key-value pairs of a plugin.
        call: calls a tool for a plugin.
        may_call: the entry names whose tools a plugin may call.
        notify: keeps a message for a user, from a plugin, until it is delivered.
        redact: takes the secrets of a plugin out of a text.
        outlets: the ways to a person.
    """

    storage: Callable[[str], Storage]
    call: _CallFrom
    may_call: Callable[[str], frozenset[str]]
    notify: Callable[[str, str, str], Awaitable[object]]
    redact: Callable[[str, str], str]
    outlets: Outlets


class PluginAccess:
    """The `HostAPI` of one plugin.

    Args:
        plugin: its entry name.
        data_dir: a folder of its own, made when it is first asked for.
        offer: what the host does for it.
    """

    def __init__(self, plugin: str, data_dir: Path, offer: Offer) -> None:
        self._plugin = plugin
        self._data_dir = data_dir
        self._offer = offer

    @property
    def version(self) -> str:
        """The host's version."""
        return __version__

    @property
    def logger(self) -> logging.Logger:
        """The plugin's own log, `cyrene.plugin.<name>`."""
        return logging.getLogger(f"cyrene.plugin.{self._plugin}")

    @property
    def data_dir(self) -> Path:
        """The plugin's folder in the state directory."""
        self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._data_dir

    @property
    def storage(self) -> Storage:
        """The plugin's durable key-value pairs."""
        return self._offer.storage(self._plugin)

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Call an own tool, or one of a declared dependency, within what is left of the current call's time."""
        call = _call()
        caller = Caller(self._plugin, self._offer.may_call(self._plugin), call.call_id if call else None)
        return await self._offer.call(caller, str(name), args, deadline_s=call.remaining_s if call else None)

    async def send_message(self, text: str = "", images: Sequence[Image] = (), to: str | None = None) -> None:
        """Send to a conversation; by default to that of the current call."""
        call = _call()
        conversation = to or (call.conversation_id if call else None)
        if conversation is None:
            raise self._error("send_message", "this call belongs to no conversation", "name one: send_message(…, to=…)")
        if self._offer.outlets.messenger is None:
            raise self._error("send_message", "nobody here delivers messages", "open the host with a messenger")
        await self._offer.outlets.messenger(
            OutgoingMessage(
                self._plugin,
                self._text("send_message", conversation),
                self._text("send_message", text),
                tuple(Image.from_json(image.to_dict()) for image in images),
                call.user_id if call else None,
                call.call_id if call else None,
            )
        )

    async def notify(self, user_id: str, text: str) -> None:
        """Leave a message for a user; it is kept until it is delivered."""
        await self._offer.notify(self._text("notify", user_id), self._plugin, self._text("notify", text))

    async def ask(self, question: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Ask the user of the current call; None where nobody can answer."""
        if self._offer.outlets.asker is None:
            return None
        call = _call()
        asked = Question(
            self._plugin,
            self._text("ask", question),
            schema,
            call.conversation_id if call else None,
            call.user_id if call else None,
            call.execution_id if call else None,
        )
        return checked(await self._offer.outlets.asker(asked))

    def _text(self, method: str, text: object) -> str:
        """Return a text that can be kept and shown, without the plugin's secrets."""
        if isinstance(text, str) and len(text) <= TEXT_BYTES:
            plain = str.__str__(text)
            if len(plain.encode("utf-8", "replace")) <= TEXT_BYTES:
                return self._offer.redact(self._plugin, plain.encode("utf-8", "replace").decode())
        kind = f"one of more than {TEXT_BYTES} bytes" if isinstance(text, str) else f"a {type(text).__name__}"
        raise self._error(method, f"it takes texts, not {kind}", "give a shorter str")

    def _error(self, method: str, what: str, mend: str) -> CyreneError:
        return HostStateError(what, plugin=self._plugin, where=f"HostAPI.{method}", mend=mend)


def _call() -> CurrentCall | None:
    try:
        return current_call()
    except NoCurrentCallError:
        return None
