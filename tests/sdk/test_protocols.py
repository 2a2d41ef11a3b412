"""The seed's plugin, class by class, keeps the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cyrene_sdk import (
    ArgumentError,
    ComplexTool,
    HasConfigSchema,
    HostAPI,
    Plugin,
    PluginAuthor,
    PluginConfig,
    PluginMetadata,
    ProgressStatus,
    Tool,
    ToolComplexity,
    ToolDefinition,
    ToolProgress,
    ToolResult,
)


class HelloPlugin:
    def metadata(self) -> PluginMetadata:
        return PluginMetadata(
            name="hello",
            version="1.0.0",
            author=PluginAuthor(name="your-name"),
            description="示例插件：向用户问好",
        )

    async def init(self, config: PluginConfig) -> None:
        return None

    async def start(self, host: HostAPI) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def health(self) -> None:
        return None

    def tools(self) -> list[Tool]:
        return [HelloTool()]


class HelloTool:
    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            id="hello",
            name="hello",
            display_name="打招呼",
            description="向用户打招呼。当用户说你好/嗨/哈喽时调用。",
            category="tool",
            complexity=ToolComplexity.SIMPLE,
            parameters={
                "type": "object",
                "properties": {"name": {"type": "string", "description": "用户名字（可选）"}},
            },
        )

    async def execute(self, args: dict[str, Any]) -> ToolResult:
        name = args.get("name") or "开拓者"
        return ToolResult(success=True, output=name + "，昔涟向你问好♪")

    def validate(self, args: dict[str, Any]) -> None:
        return None

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.SIMPLE


class IndexTool(HelloTool):
    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.COMPLEX

    def validate(self, args: dict[str, Any]) -> None:
        if "name" not in args:
            raise ArgumentError("give a name", path="/name")

    async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
        yield ToolProgress(progress=0.5)
        result = await self.execute(args)
        yield ToolProgress(status=ProgressStatus.COMPLETED, progress=1.0, result=result)

    async def cancel(self, execution_id: str) -> None:
        self.cancelled.append(execution_id)


# A checker reads these as well: each class keeps its protocol in full.
PLUGIN: Plugin = HelloPlugin()
HELLO: Tool = HelloTool()
INDEX: ComplexTool = IndexTool()


def test_the_seeds_classes_keep_the_protocols() -> None:
    assert isinstance(PLUGIN, Plugin)
    assert isinstance(HELLO, Tool)
    assert isinstance(INDEX, ComplexTool)
    assert not isinstance(HELLO, ComplexTool)
    assert not isinstance(HELLO, Plugin)
    assert not isinstance(PLUGIN, HasConfigSchema)


@pytest.mark.parametrize(
    ("args", "output"),
    [
        ({"name": "Ada"}, "Ada，昔涟向你问好♪"),
        ({"name": ""}, "开拓者，昔涟向你问好♪"),
        ({}, "开拓者，昔涟向你问好♪"),
    ],
)
async def test_the_seeds_tool_greets(args: dict[str, Any], output: str) -> None:
    assert await HelloTool().execute(args) == ToolResult(success=True, output=output)


async def test_a_complex_tool_written_by_hand_ends_with_its_result() -> None:
    reports = [report async for report in IndexTool().execute_async({"name": "Ada"})]
    assert [report.status for report in reports] == [ProgressStatus.RUNNING, ProgressStatus.COMPLETED]
    assert reports[-1].result == ToolResult(success=True, output="Ada，昔涟向你问好♪")
