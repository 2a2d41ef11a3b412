"""Hooks into the host's calls, for packages that an operator enables by name (pluggy, project `cyrene`).

A hook is found by the entry point group `cyrene.hooks`, and used only when `[hooks] enabled` in cyrene.toml
names it. One that raises or takes over 1 s is logged by name and skipped; a raising `before_call`
refuses the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from cyrene_sdk.types import ToolResult

__all__ = [
    "CallRefusedError",
    "after_call",
    "before_call",
    "before_select",
    "hookimpl",
    "hookspec",
    "plugin_state_changed",
    "tools_offered",
]

hookspec = pluggy.HookspecMarker("cyrene")
hookimpl = pluggy.HookimplMarker("cyrene")


class CallRefusedError(Exception):
    """Raised by `before_call`: the call is refused (`denied`) with this text."""


@hookspec
def before_call(tool_id: str, arguments: Mapping[str, Any], context: Any) -> None:
    """See a call before it runs; raise `CallRefusedError` to refuse it. Arguments cannot be changed."""


@hookspec
def after_call(tool_id: str, result: ToolResult, context: Any) -> None:
    """See the result of a call."""


@hookspec
def plugin_state_changed(plugin: str, old: str, new: str, reason: str) -> None:
    """See a plugin change its state."""


@hookspec
def before_select(message: str, conversation_id: str | None) -> str | None:
    """Return another text to choose tools by, or None to leave the message as it is."""


@hookspec
def tools_offered(tool_ids: Sequence[str], conversation_id: str | None) -> None:
    """See which tools a turn offers to the model."""
