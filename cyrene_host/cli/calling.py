"""`cyrene call`: one call through the host, which starts only the plugin that is called and what it needs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from cyrene_host.call.context import CallContext
from cyrene_host.cli.approval import approver_for
from cyrene_host.cli.logs import plugin_log_shown
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.cli.waiting import wait_for
from cyrene_host.errors import TRAITS
from cyrene_host.host.host import Host
from cyrene_sdk.types import ToolResult

__all__ = ["call_tool"]

MAX_STDIN_BYTES = 1_048_577
"""One more than arguments may have: the gate refuses the rest."""


def call_tool(
    choices: Choices, name: str, values: Sequence[str], *, arguments: str | None, yes: bool, timeout_s: float | None
) -> int:
    """Call a tool, print its output or its error, and return the exit code of the outcome."""
    given = _given(values, arguments)

    async def call() -> int:
        opening = Host.open(
            choices.plugins,
            config=choices.config,
            overrides=choices.overrides,
            approver=approver_for(choices.screen, yes=yes),
            start="called",
            only=name.partition(".")[0] if "." in name else None,
        )
        # The answer alone goes to stdout: what plugin code prints does not mix with it, inside the host or in a worker.
        with contextlib.redirect_stdout(sys.stderr), plugin_log_shown():
            async with opening as host:
                result = await host.call(name, given, context=CallContext(surface="cli"), deadline_s=timeout_s)
                _show(choices, result)
                return 0 if result.error_kind is None else TRAITS[result.error_kind].exit

    return wait_for(call)


def _given(values: Sequence[str], arguments: str | None) -> dict[str, str] | str | bytes:
    """Return the arguments as the gate takes them; `key=value` stays text, which the tool's schema types."""
    if arguments is None:
        return _pairs(values)
    if values:
        raise WrongUseError(
            f"arguments are given twice, by --args and as '{values[0][:80]}'",
            where="command line",
            mend="keep --args, or write all as key=value",
        )
    return sys.stdin.buffer.read(MAX_STDIN_BYTES) if arguments == "-" else arguments


def _pairs(values: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for value in values:
        key, sign, text = value.partition("=")
        if not sign or not key:
            mend = f"write --args '{value[:80]}'" if value.startswith("{") else "write it as key=value"
            raise WrongUseError(f"'{value[:80]}' is no argument", where="command line", mend=mend)
        if key in pairs:
            mend = f"""write a list as {key}='["…", "…"]'"""
            raise WrongUseError(f"the argument '{key[:80]}' is given twice", where="command line", mend=mend)
        pairs[key] = text
    return pairs


def _show(choices: Choices, result: ToolResult) -> None:
    screen = choices.screen
    if choices.as_json:
        screen.json(result.to_dict())
    elif not result.success:
        screen.error(result.error)
    elif result.output or not result.images:
        screen.data(result.output)
    for image in () if choices.as_json else result.images:
        screen.say(f"an image ({image.mime}): {image.url or '--json shows it'}")
