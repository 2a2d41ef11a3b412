"""How a plugin reaches a person by way of the program that embeds the host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cyrene_host.call.policy import Approver
from cyrene_sdk.types import Image

__all__ = ["Asker", "Messenger", "OutgoingMessage", "Outlets", "Question"]


class OutgoingMessage(NamedTuple):
    """What a plugin sends to a conversation; `call_id` is the call that its code was serving, if any."""

    plugin: str
    conversation_id: str
    text: str
    images: Sequence[Image] = ()
    user_id: str | None = None
    call_id: str | None = None


class Question(NamedTuple):
    """What a plugin asks a person in the middle of a call; `schema` (JSON Schema) is what the answer should fit."""

    plugin: str
    text: str
    schema: Mapping[str, Any] | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    execution_id: str | None = None


Messenger = Callable[[OutgoingMessage], Awaitable[None]]
"""Delivers a message to its conversation, or raises."""
Asker = Callable[[Question], Awaitable[Any]]
"""Asks a person; None where nobody answers."""


class Outlets(NamedTuple):
    """The ways to a person that the embedding program has; None where it has none."""

    approver: Approver | None = None
    messenger: Messenger | None = None
    asker: Asker | None = None
