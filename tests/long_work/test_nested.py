"""Tools that call tools: a nested call ends with the one that it is nested in."""

from __future__ import annotations

import asyncio
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
