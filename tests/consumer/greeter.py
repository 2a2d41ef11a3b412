"""A plugin as an author writes it, in the short way and class by class: type checkers read it with the SDK."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyrene_sdk import (
    ArgumentError,
    BasePlugin,
    HostAPI,
    Plugin,
    PluginConfig,
    PluginMetadata,
    Report,
    Tool,
    ToolComplexity,
    ToolDefinition,
    ToolResult,
    complex_tool,
    current_call,
    tool,
)


class ShortPlugin(BasePlugin):
    meta = PluginMetadata(name="short", version="1.0.0", author="Ada")

    @tool
    def bare(self, name: str) -> str:
        """Greet."""
        return name

    @tool(danger_level="low", triggers=["say hello to Ada"])
    async def hello(self, name: Annotated[str, "whom to greet"] = "") -> str:
        """Greet a person."""
        return f"{name} {current_call().call_id}"

    @complex_tool()
    async def index(self, folder: Path, report: Report) -> str:
        """Index a folder."""
        report(0.4, f"reading {folder}")
        return "done"


class GreetTool:
    def definition(self) -> ToolDefinition:
        return ToolDefinition(id="greet", name="greet", description="Greet a person.", parameters={"type": "object"})

    async def execute(self, args: dict[str, Any]) -> ToolResult:
        return ToolResult(tool_name="greet", success=True, output=f"hello {args['name']}")

    def validate(self, args: dict[str, Any]) -> None:
        if not args.get("name"):
            raise ArgumentError("give a name", path="/name")

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.SIMPLE


class LongPlugin:
    def metadata(self) -> PluginMetadata:
        return PluginMetadata(name="long", version="1.0.0")

    async def init(self, config: PluginConfig) -> None:
        self.greeting = config.get("greeting", "hello")

    async def start(self, host: HostAPI) -> None:
        host.logger.info("started under %s", host.version)

    def stop(self) -> None: ...

    def health(self) -> None: ...

    def tools(self) -> Sequence[Tool]:
        return [GreetTool()]


async def greet_twice(plugin: ShortPlugin) -> str:
    return await plugin.hello("Ada") + plugin.bare(name="Bob")


plugins: list[Plugin] = [ShortPlugin(), LongPlugin()]
