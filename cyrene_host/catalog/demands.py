"""What an entry demands of the place where its code runs, and whether this host can give it."""

from __future__ import annotations

from cyrene_host.catalog.entries import PluginEntry
from cyrene_sdk.errors import CyreneError

__all__ = ["DemandError", "check_demands", "untrusted_inline"]


class DemandError(CyreneError):
    """An entry demands what only a sandbox or an MCP client could give."""


def check_demands(entry: PluginEntry) -> None:
    """Refuse an entry whose plugin would run otherwise than it says.

    Raises:
        DemandError: it names an MCP server, or limits what its code may do.
    """
    if entry.mcp is not None:
        raise _unmet(entry, "it is an MCP server, and this host connects to none", "mcp", "disable the entry")
    if entry.permissions is not None:
        what = "its 'permissions' cannot be enforced: this host runs plugins without a sandbox"
        raise _unmet(entry, what, "permissions", "remove 'permissions' if you trust its code, or disable the entry")


def untrusted_inline(entry: PluginEntry) -> str | None:
    """Return a warning where the operator puts a plugin into the host and does not say that it is trusted."""
    if entry.runtime == "process" or entry.trust == "full" or not entry.enabled:
        return None
    return f'plugin \'{entry.name}\' runs inside the host: set "trust" to "full" if you trust its code ({entry.where})'


def _unmet(entry: PluginEntry, what: str, key: str, mend: str) -> DemandError:
    return DemandError(what, plugin=entry.name, where=f"{entry.where}/{key}", mend=mend)
