"""The person at the terminal: is asked whether a call may run and what plugins want to know, and told things."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread

from cyrene_host.call.policy import ApprovalRequest, Approver
from cyrene_host.cli.options import WrongUseError
from cyrene_host.cli.progress import Progress
from cyrene_host.cli.safe_text import escaped, in_one_line
from cyrene_host.cli.screen import Screen
from cyrene_host.host.outlets import Asker, Messenger, OutgoingMessage, Question

__all__ = ["CONVERSATION", "Person", "told_call"]

CONVERSATION = "cli"
"""The conversation of a command's calls: its terminal."""

MOST_TRIES = 3
"""How often a person may try to give an answer that fits."""


class Person:
    """Whoever runs the command; asked one thing at a time, and the progress makes room for it.

    Args:
        screen: where questions and messages go.
        progress: what is shown meanwhile.
        yes: whether everything was approved beforehand.
    """

    def __init__(self, screen: Screen, progress: Progress, *, yes: bool = False) -> None:
        self._screen = screen
        self._progress = progress
        self._yes = yes
        self._is_there = sys.stdin is not None and sys.stdin.isatty()
        self._one = anyio.Lock()

    @property
    def approver(self) -> Approver | None:
        """Who decides: nobody asks after `--yes`; the person, if there is a terminal to type at; else None."""
        if self._yes:
            return _approve
        return self._ask if self._is_there else None

    @property
    def asker(self) -> Asker | None:
        """Who answers plugins; None without a terminal."""
        return self._answer if self._is_there else None

    @property
    def messenger(self) -> Messenger:
        """Delivers what plugins send."""
        return self._tell

    async def agrees(self, shown: str, question: str, *, yes: bool) -> bool:
        """Show what is decided about, and ask, unless the answer came with the command.

        Raises:
            WrongUseError: there is neither.
        """
        self._screen.say(shown)
        if yes:
            return True
        if not self._is_there:
            raise WrongUseError(
                "nobody is there to be asked", where="standard input", mend="use a terminal, or add --yes"
            )
        self._screen.say(f"{question} [y/N]")
        return _is_yes(await _typed())

    async def _ask(self, request: ApprovalRequest) -> bool:
        """Show all of the call; everything but a clear yes is a no."""
        async with self._one:
            with self._progress.aside():
                call = told_call(request.tool_id, request.plugin, request.danger, request.arguments)
                self._screen.say(f"A call needs your approval:\n{call}")
                self._screen.say("Run it? [y/N]")
                return _is_yes(await _typed())

    async def _answer(self, question: Question) -> Any:
        """Put a plugin's question; None where the person types the end of input, or nothing that fits."""
        async with self._one:
            with self._progress.aside():
                self._screen.say(f"Plugin '{in_one_line(question.plugin)}' asks: {escaped(question.text)}")
                self._screen.say(_expected(question.schema or {}))
                for _ in range(MOST_TRIES):
                    line = await _typed()
                    if not line:
                        return None
                    try:
                        return _read(line.rstrip("\r\n"), question.schema or {})
                    except ValueError:
                        self._screen.say(f"That does not fit. {_expected(question.schema or {})}")
                return None

    async def _tell(self, message: OutgoingMessage) -> None:
        to = "" if message.conversation_id == CONVERSATION else f" (to {in_one_line(message.conversation_id)})"
        self._screen.say(f"{in_one_line(message.plugin)}{to}: {in_one_line(message.text)}")
        for image in message.images:
            self._screen.say(f"{in_one_line(message.plugin)}{to}: an image ({in_one_line(image.url or image.mime)})")


def told_call(tool_id: str, plugin: str, danger: str, arguments: Any) -> str:
    """Return a call as a person has to see it: all of it, and nothing in it unseen."""
    shown = escaped(json.dumps(arguments, ensure_ascii=False, indent=2)).replace("\n", "\n  ")
    return (
        f"  tool:   {in_one_line(tool_id)}\n"
        f"  plugin: {in_one_line(plugin)}\n"
        f"  danger: {danger}\n"
        f"  arguments:\n  {shown}"
    )


def _is_yes(typed: str) -> bool:
    """Whether this is a clear yes."""
    return typed.strip().lower() in ("y", "yes")


async def _approve(request: ApprovalRequest) -> bool:
    del request
    return True


async def _typed() -> str:
    return await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)


def _expected(schema: Mapping[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        words = ", ".join(choice if isinstance(choice, str) else json.dumps(choice) for choice in schema["enum"])
        return f"Type one of: {escaped(words)}"
    kind = schema.get("type", "string")
    if kind == "boolean":
        return "Type yes or no:"
    return "Type an answer:" if kind == "string" else f"Type an answer, in JSON ({in_one_line(str(kind))}):"


def _read(line: str, schema: Mapping[str, Any]) -> Any:
    """Read what was typed as the schema wants it; the plugin checks the rest.

    Raises:
        ValueError: it is none of the choices, or no JSON.
    """
    choices = schema.get("enum")
    if isinstance(choices, list):
        said = {choice if isinstance(choice, str) else json.dumps(choice): choice for choice in choices}
        if line.strip() not in said:
            raise ValueError(line)
        return said[line.strip()]
    kind = schema.get("type", "string")
    if kind == "string":
        return line
    if kind == "boolean" and line.strip().lower() in ("y", "yes", "n", "no"):
        return _is_yes(line)
    return json.loads(line)
