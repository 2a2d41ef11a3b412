"""A host in memory and a clock that is set by hand, for the plugin on its own."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from cyrene_reminder import ReminderPlugin
from cyrene_sdk import CurrentCall, CyreneError, HostAPI, Image, PluginConfig, ToolResult
from cyrene_sdk.context import _current

LIMIT_S = 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._moved = asyncio.Event()
        self._asleep = asyncio.Event()

    def now(self) -> datetime:
        return self._now

    async def wait_until(self, moment: datetime | None, wake: asyncio.Event) -> None:
        while not wake.is_set() and (moment is None or self._now < moment):
            self._asleep.set()
            waits = [asyncio.ensure_future(wake.wait()), asyncio.ensure_future(self._moved.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    async def move(self, **by: float) -> None:
        """Go on, and let what is due then happen."""
        self._asleep.clear()
        self._now += timedelta(**by)
        self._moved.set()
        self._moved = asyncio.Event()
        async with asyncio.timeout(LIMIT_S):
            await self._asleep.wait()


class Storage:
    """Values as JSON; `refuses` makes every change fail."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.refuses = False

    async def get(self, key: str, default: Any = None) -> Any:
        await asyncio.sleep(0)
        return json.loads(self.kept[key]) if key in self.kept else default

    async def set(self, key: str, value: Any) -> None:
        await self._change()
        self.kept[key] = json.dumps(value, allow_nan=False)

    async def delete(self, key: str) -> None:
        await self._change()
        self.kept.pop(key, None)

    async def keys(self) -> Sequence[str]:
        return sorted(self.kept)

    async def _change(self) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise CyreneError("the store is full")


class MemoryHost:
    """The host's side: what it keeps and delivers; `refuses` makes notifications fail."""

    def __init__(self, now: datetime) -> None:
        self.clock = Clock(now)
        self.storage = Storage()
        self.notices: list[tuple[str, str]] = []
        self.asked = 0
        self.refuses = False
        self.version = "0.1.0"
        self.logger = logging.getLogger("cyrene.plugin.reminder")
        self.data_dir = Path("unused")

    async def notify(self, user_id: str, text: str) -> None:
        self.asked += 1
        await asyncio.sleep(0)
        if self.refuses:
            raise CyreneError("nobody takes it")
        self.notices.append((user_id, text))

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        raise AssertionError("not used")

    async def send_message(self, text: str = "", images: Sequence[Image] = (), to: str | None = None) -> None:
        raise AssertionError("not used")

    async def ask(self, question: str, schema: Mapping[str, Any] | None = None) -> Any:
        raise AssertionError("not used")

    @asynccontextmanager
    async def run(self, timezone: str = "Asia/Shanghai") -> AsyncIterator[ReminderPlugin]:
        """Start a plugin, and stop it at the end; the storage and the clock go on."""

        class OnThisClock(ReminderPlugin):
            clock = self.clock

        plugin = OnThisClock()
        plugin.init(PluginConfig({"timezone": timezone}))
        await plugin.start(cast(HostAPI, self))
        try:
            with calling("ada"):
                yield plugin
        finally:
            await plugin.stop()


@contextmanager
def calling(user_id: str | None) -> Iterator[None]:
    """Be inside a call of that user."""
    token = _current.set(CurrentCall(call_id="c1", user_id=user_id))
    try:
        yield
    finally:
        _current.reset(token)


@pytest.fixture
def memory_host() -> MemoryHost:
    """A host on Monday 2026-11-30 at 10:00 in Shanghai."""
    return MemoryHost(datetime(2026, 11, 30, 10, 0, tzinfo=ZoneInfo("Asia/Shanghai")))


@pytest.fixture
def as_user() -> Any:
    """Return the context manager that makes the calls in it those of a user."""
    return calling
