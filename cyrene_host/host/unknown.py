"""Why a name means no tool."""

from __future__ import annotations

from typing import Protocol

from cyrene_host.catalog.names import ToolNames
from cyrene_host.catalog.state import PluginState
from cyrene_host.errors import CallFailedError
from cyrene_sdk.errors import CyreneError, ErrorKind

__all__ = ["Undescribed", "unknown_tool"]

SHOWN_CHARS = 80
_LIST = "`cyrene tools` lists all, and names the plugins that cannot be used"


class Undescribed(Protocol):
    """A plugin whose tools are not known."""

    @property
    def name(self) -> str:
        """The entry's name."""
        ...

    @property
    def state(self) -> PluginState:
        """Where it is in its life."""
        ...

    @property
    def error(self) -> CyreneError | None:
        """What went wrong with it."""
        ...


def unknown_tool(name: str, names: ToolNames, undescribed: Undescribed | None) -> CallFailedError:
    """Return the error for a name that `names` does not read.

    Args:
        undescribed: the plugin that `name` begins with, where its tools are not known.
    Returns:
        `unknown_tool`, with names that look alike; `plugin_unavailable` where the plugin is `undescribed`.
    """
    shown = name[:SHOWN_CHARS].encode("utf-8", "replace").decode()
    if meanings := names.meanings(name):
        choice = ", ".join(f"'{tool_id}'" for tool_id in meanings)
        return CallFailedError(
            ErrorKind.UNKNOWN_TOOL, f"'{shown}' means several tools", where="tool name", mend=f"say which: {choice}"
        )
    if undescribed is not None:
        return _not_known_yet(undescribed, shown)
    near = names.near(name[:SHOWN_CHARS])
    hint = f"did you mean {' or '.join(repr(known) for known in near)}?" if near else _LIST
    return CallFailedError(ErrorKind.UNKNOWN_TOOL, f"there is no tool '{shown}'", where="tool name", mend=hint)


def _not_known_yet(plugin: Undescribed, shown: str) -> CallFailedError:
    error = plugin.error
    cause = f": {error.what}" if error else ""
    return CallFailedError(
        ErrorKind.PLUGIN_UNAVAILABLE,
        f"it {plugin.state.claim}, so its tool '{shown}' is not known{cause}",
        plugin=plugin.name,
        where=error.where if error else None,
        mend=(error.mend if error else None) or plugin.state.mend_of(plugin.name),
    )
