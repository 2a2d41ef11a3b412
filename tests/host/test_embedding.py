"""What a program that embeds a host runs into: threads, loops, logs, its own tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host, HostStateError
from cyrene_sdk import DefinitionError, ToolComplexity, ToolDefinition, ToolResult

Write = Callable[..., Path]


class Erase:
    """A tool of the protocol, written out."""

    def definition(self) -> ToolDefinition:
        return ToolDefinition(name="erase", description="Erase all.", parameters={"type": "object"})

    def execute(self, args: dict[str, Any]) -> ToolResult:
        return ToolResult(success=True, output="erased")

    def validate(self, args: dict[str, Any]) -> None: ...

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.SIMPLE


async def test_another_thread_calls_through_the_host_s_loop_and_is_told_so(plugins_json: Write) -> None:
    async with Host.open(plugins_json([])) as host:
        host.tools.register(lambda: "here", name="say")
        loop = asyncio.get_running_loop()

        async def call() -> ToolResult:
            return await host.call("say")

        async def hand_over() -> ToolResult:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(host.call("say"), loop))

        with pytest.raises(HostStateError) as refused:
            await asyncio.to_thread(asyncio.run, call())
        handed_over = await asyncio.to_thread(asyncio.run, hand_over())
        without_loop = await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(host.call("say"), loop).result(10)
        )

    assert str(refused.value) == (
        "the host was opened in another event loop than the one that this call runs in\n"
        "  where: Host.call\n"
        "  mend:  from another thread: `asyncio.run_coroutine_threadsafe(host.call(…), loop)`, with the host's loop"
    )
    assert (handed_over.output, without_loop.output) == ("here", "here")


def test_a_loop_that_goes_on_in_another_thread_takes_its_host_along(plugins_json: Write) -> None:
    loop, opening = asyncio.new_event_loop(), Host.open(plugins_json([]))
    host = loop.run_until_complete(opening.__aenter__())
    host.tools.register(lambda: "here", name="say")

    async def call() -> ToolResult:
        return await host.call("say")

    with ThreadPoolExecutor(1) as elsewhere:
        answer = elsewhere.submit(lambda: loop.run_until_complete(call())).result(timeout=60)
        with pytest.raises(HostStateError, match="opened in another event loop"):
            asyncio.run(call())
        elsewhere.submit(lambda: loop.run_until_complete(opening.__aexit__(None, None, None))).result(timeout=60)
    loop.close()

    assert answer.output == "here"


async def test_options_beside_a_tool_are_refused_and_not_lost(plugins_json: Write) -> None:
    async with Host.open(plugins_json([])) as host:
        with pytest.raises(DefinitionError) as refused:
            host.tools.register(Erase(), danger_level="high")
        plain = host.tools.register(Erase())

    assert str(refused.value) == (
        "options were given beside the tool Erase: danger_level\n"
        "  where: host.tools.register\n"
        "  mend:  say them in its definition: only a function takes options"
    )
    assert plain.id == "app.erase"


async def test_a_word_that_is_no_way_to_start_is_refused(plugins_json: Write) -> None:
    with pytest.raises(HostStateError) as refused:
        Host.open(plugins_json([]), start="lazy")  # type: ignore[arg-type]  # what a program without checkers writes
    assert str(refused.value) == (
        "'lazy' is no way to start\n  where: Host.open, start\n  mend:  write 'all' or 'called'"
    )


async def test_hosts_opened_one_after_another_leave_one_handler_in_the_log(plugins_json: Write) -> None:
    file = plugins_json([])
    for _ in range(3):
        async with Host.open(file):
            pass
    assert len(logging.getLogger("cyrene").handlers) == 1


async def test_a_host_that_is_open_is_not_opened_over_itself_but_again_when_it_is_closed(plugins_json: Write) -> None:
    opening = Host.open(plugins_json([]))
    async with opening:
        with pytest.raises(HostStateError) as refused:
            await opening.__aenter__()
    async with opening as again:
        again.tools.register(lambda: "here", name="say")
        result = await again.call("say")

    assert str(refused.value) == (
        "this host is open already\n  where: Host.open\n  mend:  open another one: Host.open(…) again"
    )
    assert result.output == "here"
