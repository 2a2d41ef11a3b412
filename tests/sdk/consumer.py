"""Code as a user of the SDK writes it: strict type checkers must find nothing to complain of."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from cyrene_sdk import (
    ArgumentError,
    BasePlugin,
    ComplexTool,
    CurrentCall,
    DangerLevel,
    ErrorKind,
    FunctionTool,
    HasConfigSchema,
    HostAPI,
    Image,
    ModelRetry,
    Plugin,
    PluginAuthor,
    PluginConfig,
    PluginMetadata,
    ProgressStatus,
    Report,
    Tool,
    ToolComplexity,
    ToolDefinition,
    ToolFailure,
    ToolProgress,
    ToolResult,
    Transient,
    complex_tool,
    current_call,
    function_tool,
    tool,
)


class WeatherSettings(BaseModel):
    city: str = "Paris"


class Unit(Enum):
    CELSIUS = "C"


class Forecast(BaseModel):
    day: date
    warm: bool


@dataclass
class Spot:
    latitude: float


class Movie(TypedDict):
    year: int


class WeatherPlugin(BasePlugin):
    meta = PluginMetadata(
        name="weather",
        display_name="天气",
        version="1.2.0",
        min_cyrene_version="0.1.0",
        author="Ada",
        keywords=["rain"],
        dependencies={"maps": "^1.2"},
    )
    config = WeatherSettings
    settings: WeatherSettings

    def init(self, config: PluginConfig) -> None:
        self.names = [config.name, self.settings.city, *config]

    async def start(self, host: HostAPI) -> None:
        await self.host.storage.set("city", self.settings.city)
        self.home: Path = host.data_dir / "cache"

    async def stop(self) -> None:
        await self.host.storage.delete("city")

    def health(self) -> None:
        if not self.names:
            raise RuntimeError("no names")

    @tool
    def bare(self, city: str) -> str:
        return city

    @tool()
    async def called(self, city: str = "", *, days: int = 1) -> Forecast:
        if days > 9:
            raise ArgumentError("at most 9 days", path="/days")
        if city == "Atlantis":
            raise ModelRetry("give a real city")
        return Forecast(day=date(2026, 1, 1), warm=True)

    @tool(danger_level="high", idempotent=False, timeout_ms=500, secret_arguments=["key"], examples=[{"key": "x"}])
    def optioned(
        self,
        key: Annotated[str, "the key"],
        unit: Unit | None = None,
        mode: Literal["fast", "slow"] = "fast",
        spots: Annotated[list[Spot], Field(max_length=3)] = [],  # noqa: B006 - never changed
        movie: Movie | None = None,
        token: UUID | None = None,
        *,
        host: HostAPI,
        log: logging.Logger,
        call: CurrentCall,
    ) -> dict[str, Any]:
        log.info("%s of %s", call.call_id, host.version)
        if mode == "slow":
            raise Transient("try again")
        raise ToolFailure("no sun")

    @complex_tool(danger_level=DangerLevel.LOW)
    async def index(self, folder: Path, report: Report) -> str:
        report(0.4, f"reading {folder}")
        answer = await self.host.ask("go on?")
        await self.host.send_message(str(answer), images=[Image(url="https://example.org/x.png")])
        return "done"

    @complex_tool
    async def stream(self) -> AsyncIterator[ToolProgress | tuple[float, str] | ToolResult]:
        yield 0.5, "half"
        yield ToolProgress(status=ProgressStatus.RUNNING, progress=0.7)
        yield ToolResult(success=True, output="done", data={"pages": 1})


class PlainTool:
    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            name="plain",
            display_name="Plain",
            complexity=ToolComplexity.COMPLEX,
            parameters={"type": "object"},
            danger_level=DangerLevel.MEDIUM,
        )

    def execute(self, args: dict[str, Any]) -> ToolResult:
        return ToolResult(success=False, error=str(args), error_kind=ErrorKind.TOOL_ERROR)

    async def validate(self, args: dict[str, Any]) -> None: ...

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.COMPLEX

    async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
        yield ToolProgress(
            execution_id=current_call().execution_id or "",
            status=ProgressStatus.COMPLETED,
            progress=1.0,
            result=self.execute(args),
        )

    def cancel(self, execution_id: str) -> None: ...


class PlainPlugin:
    def metadata(self) -> PluginMetadata:
        return PluginMetadata(name="plain", version="1", author=PluginAuthor(name="Ada", email="ada@example.org"))

    def init(self, config: PluginConfig) -> None: ...

    async def start(self, host: HostAPI) -> None: ...

    def stop(self) -> None: ...

    async def health(self) -> None: ...

    async def tools(self) -> Sequence[Tool]:
        return [PlainTool()]

    def config_schema(self) -> dict[str, Any]:
        return {"type": "object"}


def double(number: int) -> int:
    return number * 2


async def use() -> Mapping[str, object]:
    weather = WeatherPlugin()
    city: str = weather.bare("Paris")
    forecast: Forecast = await weather.called(city="Paris", days=2)
    kept: Callable[[WeatherPlugin, str], str] = WeatherPlugin.bare
    doubling: FunctionTool = function_tool(double, danger_level="low", serial=True)
    awaited: Awaitable[str] = weather.index(Path("docs"), lambda progress, message="": None)
    definition = ToolDefinition.from_json(doubling.definition().to_json())
    return {"city": city, "warm": forecast.warm, "kept": kept, "text": await awaited, "name": definition.name}


plugins: list[Plugin] = [WeatherPlugin(), PlainPlugin()]
described: list[HasConfigSchema] = [WeatherPlugin(), PlainPlugin()]
tools: list[Tool] = [PlainTool(), function_tool(double)]
long_running: ComplexTool = PlainTool()
