"""Why a plugin cannot be used just now, and what its report says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from cyrene_host import Host, Reason

Write = Callable[..., Path]

FRAIL = '''
    import os

    from cyrene_sdk import BasePlugin, PluginMetadata, tool


    class FrailPlugin(BasePlugin):
        meta = PluginMetadata(name="frail", version="1.0.0")

        @tool(danger_level="low")
        async def fall(self) -> str:
            """Fall."""
            os._exit(3)
'''


async def test_a_plugin_that_waits_for_its_restart_says_so_and_that_waiting_helps(
    plugins_json: Write, slow: Callable[[float], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds:
            waits.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(Host, "_sleep", staticmethod(sleep))
    async with Host.open(plugins_json([{"name": "frail"}], frail=FRAIL)) as host, asyncio.timeout(slow(20)):
        await host.call("fall")
        await host.call("fall")  # the first restart is at once, the second waits
        await waits.wait()
        report = host.plugins.get("frail")
        why, of_tool = host.plugins.why("frail"), host.tools.why("fall")

    assert (report.state, report.restarts, report.pid) == ("restarting", 2, None)
    assert (why.reason, why.is_available, why.waiting_helps) == (Reason.PLUGIN_RESTARTING, False, True)
    assert report.retry_at is not None
    assert "exit status 3" in why.sentence
    assert (of_tool.name, of_tool.reason) == ("frail.fall", Reason.PLUGIN_RESTARTING)


async def test_who_switched_a_plugin_is_known_after_a_reload_that_changes_nothing(plugins_json: Write) -> None:
    async with Host.open(plugins_json([{"name": "frail"}], frail=FRAIL)) as host:
        before = host.plugins.get("frail")
        after = await host.plugins.enable("frail")
        off = await host.plugins.disable("frail")
        why = host.plugins.why("frail")

    assert (before.switched, after.switched, off.switched) == (None, True, False)
    assert before.pid == after.pid
    assert (why.reason, why.command) == (Reason.PLUGIN_SWITCHED_OFF, "cyrene plugins enable frail")
