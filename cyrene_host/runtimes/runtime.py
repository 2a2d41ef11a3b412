"""The seam between the host and the place where a plugin's code runs."""

from __future__ import annotations

from typing import Protocol

from cyrene_host.call.tool import ToolRuntime
from cyrene_sdk._worker.runner import ToolListing
from cyrene_sdk.protocols import HostAPI, PluginConfig
from cyrene_sdk.types import PluginMetadata

__all__ = ["Runtime"]


class Runtime(ToolRuntime, Protocol):
    """One plugin in one place: its stages in the order load, init, start, tools, and its calls.

    A stage raises `StageError` whatever the plugin's code does; nothing else comes out.
    """

    @property
    def abandoned(self) -> int:
        """How many given-up calls still run there."""
        ...

    @property
    def pid(self) -> int | None:
        """The process it runs in, where that is another than the host's."""
        ...

    @property
    def checks_config(self) -> bool:
        """Whether the loaded plugin compares its configuration with a model of its own."""
        ...

    async def load(self, limit_s: float) -> PluginMetadata:
        """Import the plugin and ask its metadata."""
        ...

    async def init(self, config: PluginConfig, limit_s: float) -> None:
        """Hand over the configuration."""
        ...

    async def start(self, host: HostAPI, limit_s: float) -> None:
        """Start the plugin."""
        ...

    async def tools(self, limit_s: float) -> ToolListing:
        """Ask for the live definitions."""
        ...

    async def health(self, limit_s: float) -> None:
        """Ask whether it is well."""
        ...

    async def stop(self, limit_s: float) -> None:
        """Let the plugin release what it holds."""
        ...

    async def close(self) -> None:
        """Take the place itself down; the last thing, also after a failed stage."""
        ...
