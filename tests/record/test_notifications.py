"""Messages that plugins leave for users."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record import notifications
from cyrene_host.record.notifications import NotificationError, Notifications
from cyrene_host.record.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
def messages(store: Store) -> Notifications:
    """No messages yet."""
    return Notifications(store)


async def test_messages_wait_in_order_until_they_are_delivered(open_store: Callable[[], Store]) -> None:
    messages = Notifications(open_store())
    before = time.time()
    ids = [await messages.leave(user, "clock", text) for user, text in (("ada", "1"), ("bob", "2"), ("ada", "3"))]
    assert ids == sorted({*ids})

    after_a_restart = Notifications(open_store())
    first, _, third = await after_a_restart.pending()
    assert (first.id, first.user_id, first.plugin, first.text) == (ids[0], "ada", "clock", "1")
    assert before <= first.created_at <= time.time()
    assert await after_a_restart.pending("ada") == [first, third]
    assert await after_a_restart.pending("ada", after=first.id) == [third]
    assert await after_a_restart.pending(limit=1) == [first]

    await messages.delivered([first.id, third.id, 10**9])
    await messages.delivered([first.id])
    assert [message.text for message in await messages.pending()] == ["2"]


async def test_an_id_is_never_used_twice(messages: Notifications, store: Store) -> None:
    first = await messages.leave("ada", "clock", "1")

    def remove(connection: Any) -> None:
        from cyrene_host.record.tables import notifications as table

        connection.execute(table.delete())

    await store.write(remove)
    second = await messages.leave("ada", "clock", "2")
    assert first is not None
    assert second is not None
    assert second > first


async def test_many_are_noted_as_delivered_at_once(messages: Notifications) -> None:
    ids = [await messages.leave("ada", "clock", "x") for _ in range(3)]
    await messages.delivered([*(number for number in ids if number), *range(10**6, 10**6 + 40_000)])
    assert await messages.pending() == []


async def test_the_same_occasion_is_told_once_to_each_user_and_by_each_plugin(messages: Notifications) -> None:
    first = await messages.leave("ada", "clock", "noon", key="noon")
    assert await messages.leave("ada", "clock", "noon again", key="noon") is None
    assert first is not None
    await messages.delivered([first])
    assert await messages.leave("ada", "clock", "noon again", key="noon") is None
    assert await messages.leave("bob", "clock", "noon", key="noon")
    assert await messages.leave("ada", "sun", "noon", key="noon")
    assert await messages.leave("ada", "clock", "no key")
    assert await messages.leave("ada", "clock", "no key")


async def test_who_waits_gets_the_next_message_at_once(messages: Notifications, slow: Callable[[float], float]) -> None:
    old = await messages.leave("ada", "clock", "old")
    assert old is not None
    waiting = asyncio.ensure_future(messages.newer(old, "ada", wait_s=slow(20)))
    for_another = asyncio.ensure_future(messages.newer(old, "eve", wait_s=slow(20)))
    await messages.pending()  # the looks are queued before this one
    await messages.leave("bob", "clock", "not for ada")
    await messages.leave("ada", "clock", "new")
    async with asyncio.timeout(slow(10)):
        assert [message.text for message in await waiting] == ["new"]
    assert not for_another.done()
    for_another.cancel()


class CountingStore(Store):
    """A store that counts how often it is read."""

    reads = 0

    async def read(self, work: Any) -> Any:
        self.reads += 1
        return await super().read(work)


async def test_who_waits_looks_once_for_each_message(tmp_path: Path, store_url: str | None) -> None:
    store = CountingStore(tmp_path, store_url)
    messages = Notifications(store)
    await messages.leave("bob", "clock", "not for ada")
    assert await messages.newer(0, "ada", wait_s=0.2) == []
    assert store.reads == 1
    await store.close()


async def test_who_waits_in_vain_gets_nothing(messages: Notifications) -> None:
    await messages.leave("bob", "clock", "not for ada")
    assert await messages.newer(0, "ada", wait_s=0.05) == []


@pytest.mark.parametrize(
    ("user_id", "text", "what"),
    [
        ("", "x", "a user's id is text of 1 to 256 characters"),
        ("u" * 257, "x", "a user's id is text of 1 to 256 characters"),
        (None, "x", "a user's id is text of 1 to 256 characters"),
        ("ada", "", "a message is text, and not empty"),
        ("ada", 7, "a message is text, and not empty"),
        ("ada", "é" * 32_769, "a message has at most 65,536 bytes"),
    ],
)
async def test_a_message_that_is_none_is_refused(messages: Notifications, user_id: Any, text: Any, what: str) -> None:
    with pytest.raises(NotificationError) as error:
        await messages.leave(user_id, "clock", text)
    assert (error.value.what, error.value.plugin, error.value.where) == (what, "clock", "HostAPI.notify")
    assert await messages.pending() == []


async def test_too_many_messages_for_one_user_are_refused(
    messages: Notifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "MOST_PENDING", 1)
    first = await messages.leave("ada", "clock", "1")
    with pytest.raises(NotificationError) as error:
        await messages.leave("ada", "clock", "2")
    assert str(error.value) == (
        "plugin 'clock': 1 messages wait for this user already\n"
        "  where: HostAPI.notify\n"
        "  mend:  deliver them: GET /api/notifications"
    )
    assert await messages.leave("bob", "clock", "1")
    assert first is not None
    await messages.delivered([first])
    assert await messages.leave("ada", "clock", "2")
