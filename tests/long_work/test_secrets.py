"""Secrets are in nothing that is kept, told or shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

CANARY = "canary-4711-canary"


def everything(site: Any) -> bytes:
    return b"".join(path.read_bytes() for path in site.state.rglob("*") if path.is_file())


async def test_a_plugins_secret_is_told_to_nobody(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    (entry,) = json.loads(site.file.read_text())
    site.file.write_text(json.dumps([{**entry, "config": {"key": {"$env": "CANARY"}}}]))
    told: list[str] = []

    async def messenger(message: Any) -> None:
        told.append(message.text)

    async def asker(question: Any) -> None:
        told.append(question.text)

    async with site.open(messenger=messenger, asker=asker) as host:
        started = await host.start_execution("leak")
        events = [event async for event in host.executions.events(started.id)]
        notified = await host.notifications.pending("ada")

    assert events[-1].state == "completed"
    assert "the key is ***" in {event.message for event in events}
    assert told == ["the key is ***", "is the key ***?"]
    assert [message.text for message in notified] == ["the key is ***"]
    assert CANARY not in repr(events) + caplog.text
    assert CANARY.encode() not in everything(site)
