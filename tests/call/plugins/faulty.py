"""A plugin with one tool for each way that a tool can behave."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cyrene_sdk import (
    ArgumentError,
    BasePlugin,
    CurrentCall,
    Image,
    ModelRetry,
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
    tool,
)


class Odd(BaseException):
    """What no `except Exception` sees."""


class Speechless(Exception):
    def __str__(self) -> str:
        raise Odd


class Forecast(BaseModel):
    city: str = "Oslo"
    high: float = 21.5


_ERRORS: dict[str, Any] = {
    "ValueError": lambda: ValueError("bad value"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "Odd": lambda: Odd("odd"),
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "Speechless": Speechless,
    "long": lambda: ValueError("x" * 1_000_000),
    "ArgumentError": lambda: ArgumentError("no such city", path="/city"),
    "ModelRetry": lambda: ModelRetry("give a year"),
    "ToolFailure": lambda: ToolFailure("the shop is closed"),
    "Transient": lambda: Transient("busy"),
    "TimeoutError": lambda: TimeoutError("the tool's own"),
}


def error(what: str) -> BaseException:
    return _ERRORS[what]()  # type: ignore[no-any-return]


def _cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


VALUES: dict[str, Any] = {
    "set": lambda: {1},
    "object": object,
    "bytes": lambda: b"x",
    "nested": lambda: {"a": [1, {2}]},
    "cycle": _cyclic,
    "deep": _deep,
    "nan": lambda: math.nan,
    "inf": lambda: {"n": math.inf},
    "surrogate": lambda: "\ud800",
    "huge": lambda: "x" * 300_000_000,
    "text": lambda: "你好",
    "dict": lambda: {"city": "Oslo"},
    "list": lambda: [1, 2],
    "number": lambda: 1.5,
    "bool": lambda: True,
    "none": lambda: None,
    "model": Forecast,
    "flags": lambda: ToolResult(
        success=True,
        output="drawn",
        data={"id": 1},
        images=[Image(mime="image/png", base64="aGk=")],
        notes=["cached"],
        need_ai_reply=False,
        already_sent=True,
        send_result_text=True,
        no_reply=True,
        save_to_memory=False,
        tool_name="forged",
        plugin="forged",
        call_id="forged",
    ),
    "failure": lambda: ToolResult(success=False, error="no stock", retryable=True, reason="stock"),
    "failure in output": lambda: ToolResult(success=False, output="no stock left"),
    "failure in silence": lambda: ToolResult(success=False, effect="none"),
}


async def _forever() -> None:
    await asyncio.Event().wait()


class FaultyPlugin(BasePlugin):
    meta = PluginMetadata(name="faulty", version="1.0.0")

    def init(self, config: PluginConfig) -> None:
        self.calls: dict[str, int] = {}

    def _count(self, what: str) -> int:
        self.calls[what] = self.calls.get(what, 0) + 1
        return self.calls[what]

    def tools(self) -> list[Tool]:
        return [*super().tools(), AsyncForm(), SyncForm(), Unending(), Mute(), Breaking()]  # type: ignore[misc, list-item]

    @tool
    async def echo(self, text: str = "") -> str:
        return text

    @tool
    def echo_sync(self, text: str = "") -> str:
        return text

    @tool
    async def count(self) -> int:
        """Count its calls."""
        return self._count("count")

    @tool
    async def counted(self, what: str) -> int:
        """Tell how often something was counted."""
        return self.calls.get(what, 0)

    @tool(timeout_ms=100)
    async def hangs(self) -> None:
        await _forever()

    @tool(timeout_ms=100, idempotent=True, max_retries=2)
    async def hangs_often(self) -> None:
        self._count("hangs_often")
        await _forever()

    @tool(timeout_ms=100, read_only=True)
    async def hangs_reading(self) -> None:
        await _forever()

    @tool(timeout_ms=100)
    async def swallows(self) -> None:
        while True:
            try:
                await _forever()
            except asyncio.CancelledError:
                continue

    @tool(timeout_ms=100)
    async def answers_late(self) -> str:
        try:
            await _forever()
        except asyncio.CancelledError:
            return "late"
        return ""

    @tool(timeout_ms=100)
    async def blocks_the_loop(self) -> str:
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            pass
        return "late"

    @tool(timeout_ms=100)
    def blocks_its_thread(self) -> None:
        threading.Event().wait(20)

    @tool
    async def raises(self, what: str) -> str:
        raise error(what)

    @tool
    def raises_sync(self, what: str) -> str:
        raise error(what)

    @tool
    async def exits_in_a_thread(self) -> None:
        await asyncio.to_thread(sys.exit, 3)

    @tool(read_only=True)
    async def raises_reading(self) -> None:
        raise ValueError("bad value")

    @tool
    async def returns(self, what: str) -> Any:
        return VALUES[what]()

    @tool(read_only=True)
    async def fails_reading(self) -> ToolResult:
        return ToolResult(success=False, error="no stock")

    @tool(returns={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    async def promises(self, n: Any = 1, success: bool = True) -> ToolResult:
        return ToolResult(success=success, data={"n": n}, error="" if success else "half done")

    @tool(max_retries=2)
    async def works_at_last(self, fails: int, how: str = "Transient") -> int:
        if self._count("works_at_last") <= fails:
            raise error(how)
        return self.calls["works_at_last"]

    @tool(max_retries=2)
    async def acts_then_backs_out(self) -> None:
        """Fail after acting, and then without."""
        raise error("ValueError" if self._count("acts") == 1 else "Transient")

    @tool(max_retries=1)
    async def mutates(self, names: list[str]) -> list[str]:
        names.append("one more")
        if self._count("mutates") == 1:
            raise Transient("again")
        return names

    @tool(max_retries=5, timeout_ms=1000)
    async def fails_slowly(self, seconds: float) -> None:
        self._count("fails_slowly")
        await asyncio.sleep(seconds)
        raise ValueError("bad value")

    @tool
    async def whose(self, call: CurrentCall) -> dict[str, Any]:
        return _told(call)

    @tool
    def whose_sync(self) -> dict[str, Any]:
        return _told(current_call())

    @tool
    async def pauses(self) -> str:
        self._count("pauses")
        await asyncio.sleep(0.05)
        return "done"

    @tool
    async def tells_its_end(self, folder: str) -> None:
        """Leave a file when it begins, and another when it is cancelled."""
        _leave(folder, "begun")
        try:
            await _forever()
        except asyncio.CancelledError:
            _leave(folder, "cancelled")
            raise

    @tool
    async def shows_secret(self) -> ToolResult:
        token = self.settings["token"]
        return ToolResult(success=True, output=f"token {token}", data={token: [token]}, notes=[token])

    @tool
    async def raises_secret(self, padding: int = 0) -> None:
        raise ValueError("x" * padding + f"cannot use {self.settings['token']} in /srv/app")

    @tool
    async def returns_secret_failure(self) -> ToolResult:
        return ToolResult(success=False, error=f"cannot use {self.settings['token']}")

    @tool(secret_arguments=["password", "pin", "keys"])
    async def logs_in(
        self, user: str, how: str, password: str = "", pin: int = 0, keys: dict[str, Any] | None = None
    ) -> ToolResult:
        words = f"no {user} with {password}, {pin}, {keys}"
        if how == "ArgumentError":
            raise ArgumentError(words, path="/password")
        if how == "ValueError":
            raise ValueError(words)
        return ToolResult(success=False, error=words)

    @tool(danger_level="high")
    async def destroys(self, names: list[str]) -> int:
        self._count("destroys")
        return len(names)

    @tool(danger_level="high", max_retries=2)
    async def destroys_or_not(self, how: str) -> None:
        self._count("destroys_or_not")
        raise error(how)

    @complex_tool
    async def indexes(self, steps: int, report: Report) -> str:
        for step in range(steps):
            report(step / steps, f"step {step}")
            await asyncio.sleep(0)
        return "indexed"

    @complex_tool(timeout_ms=100)
    async def indexes_for_ever(self, report: Report) -> None:
        report(0.5, "half")
        await _forever()

    @complex_tool
    async def indexes_badly(self, report: Report) -> None:
        report(0.5, "half")
        raise ValueError("bad value")

    @complex_tool
    async def ends_without_result(self) -> AsyncIterator[Any]:
        yield 0.5, "half"

    @complex_tool
    async def reports_failure(self) -> AsyncIterator[ToolProgress]:
        yield ToolProgress(status=ProgressStatus.FAILED, error="disk full")


def _leave(folder: str, name: str) -> None:
    Path(folder, name).touch()


def _told(call: CurrentCall) -> dict[str, Any]:
    remaining_s = call.remaining_s
    return {
        "call_id": call.call_id,
        "surface": call.surface,
        "conversation_id": call.conversation_id,
        "user_id": call.user_id,
        "idempotency_key": call.idempotency_key,
        "has_deadline": remaining_s is not None and 0 < remaining_s <= 8,
    }


class AsyncForm:
    """A tool in its long form, with `async def` methods."""

    async def definition(self) -> ToolDefinition:
        return ToolDefinition(
            id="greeting",
            name="greets",
            description="Greet.",
            parameters={"type": "object", "properties": {"name": {"type": "string"}}},
        )

    async def complexity(self) -> ToolComplexity:
        return ToolComplexity.SIMPLE

    async def validate(self, args: dict[str, Any]) -> None:
        if args.get("name") == "nobody":
            raise ArgumentError("nobody is no name", path="/name")

    async def execute(self, args: dict[str, Any]) -> ToolResult:
        return ToolResult(success=True, output=f"{args.get('name') or '开拓者'}，昔涟向你问好♪")


class SyncForm:
    """The same with `def` methods."""

    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            name="greets_sync",
            description="Greet.",
            parameters={"type": "object", "properties": {"name": {"type": "string"}}},
        )

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.SIMPLE

    def validate(self, args: dict[str, Any]) -> None:
        if args.get("name") == "nobody":
            raise ArgumentError("nobody is no name", path="/name")

    def execute(self, args: dict[str, Any]) -> ToolResult:
        return ToolResult(success=True, output=f"{args.get('name') or '开拓者'}，昔涟向你问好♪")


class Unending(SyncForm):
    """A ComplexTool whose generator never really waits."""

    name = "reports_for_ever"
    timeout_ms = 100

    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self.name, complexity=ToolComplexity.COMPLEX, timeout_ms=self.timeout_ms)

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.COMPLEX

    async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
        while True:
            yield ToolProgress(progress=0.5)

    def cancel(self, execution_id: str) -> None: ...


class Mute(Unending):
    """A ComplexTool that ends without a result."""

    name = "reports_nothing"

    async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
        for report in ():
            yield report


class Breaking(SyncForm):
    """A tool whose definition and behaviour do not agree."""

    def definition(self) -> ToolDefinition:
        return ToolDefinition(name="disagrees", complexity=ToolComplexity.COMPLEX)
