"""What a plugin and its tools offer, and what the host offers them.

Method names are the Go names in snake case. Every method may be `def` or `async def`; a plain `def`
runs in a bounded thread. Go's `ctx` is `current_call()` and ordinary cancellation.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cyrene_sdk.types import Image, PluginMetadata, ToolComplexity, ToolDefinition, ToolProgress, ToolResult

__all__ = ["ComplexTool", "HasConfigSchema", "HostAPI", "Plugin", "PluginConfig", "Report", "Storage", "Tool"]


class PluginConfig(Mapping[str, Any]):
    """The `config` of the plugin's entry, secrets resolved, read-only; with the plugin's `name` and `version`.

    `folder` is that of plugins.json, where relative paths in the configuration start; a host older than the key
    leaves the current folder. `model` holds the checked instance when the plugin declares `config: type[BaseModel]`.
    """

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        name: str = "",
        version: str = "",
        folder: Path | None = None,
        model: Any = None,
    ) -> None:
        self._values = dict(values or {})
        self.name = name
        self.version = version
        self.folder = folder or Path.cwd()
        self.model = model

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"PluginConfig({', '.join(self._values)})"  # values may be secrets


class Storage(Protocol):
    """Durable key-value pairs of one plugin; values are JSON."""

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default`."""
        ...

    async def set(self, key: str, value: Any) -> None:
        """Keep `value` under `key`."""
        ...

    async def delete(self, key: str) -> None:
        """Forget `key`; unknown keys are no error."""
        ...

    async def keys(self) -> Sequence[str]:
        """Return all keys, sorted."""
        ...


class HostAPI(Protocol):
    """What the host offers a started plugin."""

    @property
    def version(self) -> str:
        """The host's version (PEP 440)."""
        ...

    @property
    def logger(self) -> logging.Logger:
        """The plugin's own log."""
        ...

    @property
    def data_dir(self) -> Path:
        """A folder of the plugin's own that outlives it."""
        ...

    @property
    def storage(self) -> Storage:
        """Durable key-value pairs of the plugin's own."""
        ...

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Call an own tool, or one of a declared dependency, through the same pipeline."""
        ...

    async def send_message(self, text: str = "", images: Sequence[Image] = (), to: str | None = None) -> None:
        """Send to a conversation; by default to that of the current call."""
        ...

    async def notify(self, user_id: str, text: str) -> None:
        """Leave a message for a user; it is kept until delivered."""
        ...

    async def ask(self, question: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Ask the user in the middle of a ComplexTool; None where nobody can answer."""
        ...


class Report(Protocol):
    """How a complex tool tells its progress; from any thread, at any rate (only the newest report is passed on)."""

    def __call__(self, progress: float, message: str = "") -> None:
        """Tell that `progress` (0.0 to 1.0) of the work is done, and what is being done."""
        ...


@runtime_checkable
class Tool(Protocol):
    """One function that a model may call."""

    def definition(self) -> ToolDefinition | Awaitable[ToolDefinition]:
        """Return what the tool is and when to call it."""
        ...

    def execute(self, args: dict[str, Any]) -> ToolResult | Awaitable[ToolResult]:
        """Run the tool with arguments that fit its schema."""
        ...

    def validate(self, args: dict[str, Any]) -> None | Awaitable[None]:
        """Check what a schema cannot say.

        Raises:
            ArgumentError: the arguments are at fault.
        """
        ...

    def complexity(self) -> ToolComplexity | Awaitable[ToolComplexity]:
        """Return `simple` or `complex`; agrees with the definition."""
        ...


@runtime_checkable
class ComplexTool(Tool, Protocol):
    """A tool that runs long, reports progress and can be cancelled."""

    def execute_async(
        self, args: dict[str, Any]
    ) -> AsyncIterator[ToolProgress] | Awaitable[AsyncIterator[ToolProgress]]:
        """Yield progress; the last report is terminal and carries the result."""
        ...

    def cancel(self, execution_id: str) -> None | Awaitable[None]:
        """End the execution with this id, if it still runs."""
        ...


@runtime_checkable
class Plugin(Protocol):
    """The author's object: metadata, a life, and tools."""

    def metadata(self) -> PluginMetadata | Awaitable[PluginMetadata]:
        """Return name, version and the like; called before anything else, without side effects."""
        ...

    def init(self, config: PluginConfig) -> None | Awaitable[None]:
        """Take the configuration; raise to fail."""
        ...

    def start(self, host: HostAPI) -> None | Awaitable[None]:
        """Begin work, with access to the host; raise to fail."""
        ...

    def stop(self) -> None | Awaitable[None]:
        """Release everything; called only after `init` finished."""
        ...

    def health(self) -> None | Awaitable[None]:
        """Return when well; raise when not."""
        ...

    def tools(self) -> Sequence[Tool] | Awaitable[Sequence[Tool]]:
        """Return the tools."""
        ...


@runtime_checkable
class HasConfigSchema(Protocol):
    """A plugin that describes its configuration as a JSON Schema."""

    def config_schema(self) -> dict[str, Any]:
        """Return a JSON Schema for the entry's `config`."""
        ...
