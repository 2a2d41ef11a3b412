"""Tools that call tools: a nested call ends with the one that it is nested in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("tool", ["jot", "mark"])
async def test_a_nested_call_is_cancelled_with_the_call_that_it_is_nested_in(
    site: Any, tool: str, until: Callable[..., Any]
) -> None:
    async with site.open() as host:
        nested = {"name": tool, "arguments": {"name": "a", "seconds": 60}}
        outer = asyncio.create_task(host.call("pass_on", nested))
        await until(lambda: site.notes == ["begin a"])
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        await until(lambda: has_ended(host, f"long.{tool}"))
        (last,) = ended_records(host, f"long.{tool}")

    assert last["fields"]["error_kind"] == "cancelled"
    assert site.notes == ["begin a"]


def has_ended(host: Any, tool: str) -> bool:
    return len(ended_records(host, tool)) == 1


def ended_records(host: Any, tool: str) -> list[Any]:
    return [record for record in host.audit.tail(20, tool=tool) if record["kind"] == "ended"]


def change_entry(site: Any, **changes: Any) -> None:
    """Change the plugin's entry, and add a second one of the same class, which nobody declares."""
    (entry,) = json.loads(site.file.read_text())
    site.file.write_text(json.dumps([{**entry, **changes}, {**entry, "name": "stranger"}]))


def passing_on(levels: int) -> dict[str, Any]:
    """Arguments of `pass_on` with which it calls itself, and at the last level `who`."""
    arguments: dict[str, Any] = {"name": "who", "arguments": {}}
    for _ in range(levels):
        arguments = {"name": "pass_on", "arguments": arguments}
    return arguments


async def test_calls_in_a_circle_are_denied_at_the_fifth_level_and_need_one_place_in_all(
    site: Any, slow: Callable[[float], float]
) -> None:
    change_entry(site, limits={"concurrency": 1, "queue_size": 1})
    async with site.open() as host, asyncio.timeout(slow(20)):
        four = await host.call("long.pass_on", passing_on(2))
        five = await host.call("long.pass_on", passing_on(3))
        after = await host.call("long.who")
        chain = [record["fields"] for record in host.audit.tail(100) if record["kind"] == "started"][:4]

    assert four.data["data"]["data"]["success"] is True
    refused = five.data["data"]["data"]["data"]
    assert refused["error_kind"] == "denied"
    assert "'long.who' would be the call at depth 5: at most 4 are nested" in refused["error"]
    assert [call.get("parent_call_id") for call in chain] == [None, *(call["call_id"] for call in chain[:3])]
    assert after.success


async def test_a_tool_of_a_plugin_that_is_not_declared_cannot_be_called(site: Any) -> None:
    change_entry(site)
    async with site.open() as host:
        refused = (await host.call("long.pass_on", {"name": "stranger.who", "arguments": {}})).data
        records = [record["fields"] for record in host.audit.tail(20, tool="stranger.who")]

    assert refused["error_kind"] == "denied"
    assert "plugin 'long' may not call 'stranger.who': it does not declare 'stranger'" in refused["error"]
    assert "call_tool, in long.pass_on" in refused["error"]
    assert records[-1]["error_kind"] == "denied"


async def test_a_low_tool_that_calls_a_high_one_asks_as_the_high_one(site: Any) -> None:
    asked: list[Any] = []

    async def approver(request: Any) -> bool:
        asked.append((request.tool_id, request.danger))
        return False

    async with site.open(approver=approver) as host:
        relayed = await host.call("pass_on", {"name": "erase", "arguments": {"what": "disk"}})
        raised = await host.call("relay", {"name": "who", "arguments": {}})

    assert relayed.data["error_kind"] == "denied"
    assert raised.error_kind == "denied"
    assert asked == [("long.erase", "high"), ("long.relay", "high")]
    assert site.notes == []
