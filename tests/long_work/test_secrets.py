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


@pytest.mark.parametrize("runtime", ["inline"], indirect=True)
@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_secret_argument_is_kept_only_as_long_as_its_call_waits(site: Any, is_approved: bool) -> None:
    async with site.open() as host:
        waits = await host.call("sign", {"password": CANARY})
        (asked,) = await host.approvals.list()
        decide = host.approvals.approve if is_approved else host.approvals.deny
        execution = await decide(asked.id, by="carol")
        await host.executions.wait(execution.id)
        after = await host.approvals.get(waits.data["approval_id"])

    assert asked.to_dict()["arguments"] == {"password": CANARY}
    assert after.to_dict()["arguments"] == {"password": "***"}
    assert CANARY.encode() not in everything(site)
    assert site.notes == (["signed with 18"] if is_approved else [])
