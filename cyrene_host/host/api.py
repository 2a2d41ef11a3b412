"""What a started plugin gets of its host."""
# ruff: noqa: ARG002 - the signatures are the HostAPI's, also of what this host does not offer

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cyrene_host.errors import HostStateError
from cyrene_host.version import __version__
from cyrene_sdk.protocols import Storage
from cyrene_sdk.types import Image, ToolResult

__all__ = ["PluginAccess"]


class PluginAccess:
    """The `HostAPI` of one plugin.

    Args:
        plugin: its entry name.
        data_dir: a folder of its own, made when it is first asked for.
    """

    def __init__(self, plugin: str, data_dir: Path) -> None:
        self._plugin = plugin
        self._data_dir = data_dir

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
        """This host has no store."""
        self._refuse("storage")

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """This host runs no calls for plugins."""
        self._refuse("call_tool")

    async def send_message(self, text: str = "", images: Sequence[Image] = (), to: str | None = None) -> None:
        """This host has no conversations."""
        self._refuse("send_message")

    async def notify(self, user_id: str, text: str) -> None:
        """This host delivers no notifications."""
        self._refuse("notify")

    async def ask(self, question: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Nobody can be asked here."""
        return None

    def _refuse(self, what: str) -> NoReturn:
        raise HostStateError(
            f"this host does not offer '{what}'",
            plugin=self._plugin,
            where=f"HostAPI.{what}",
            mend=f"do without it; this is Cyrene {__version__}",
        )
