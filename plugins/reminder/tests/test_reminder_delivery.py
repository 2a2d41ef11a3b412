"""When and how reminders are delivered, against a host in memory with a clock that is set by hand."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cyrene_reminder import SystemClock
from cyrene_sdk import CyreneError


async def test_a_reminder_is_delivered_once_and_not_before_it_is_due(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("开会", "半小时后")
        await memory_host.clock.move(minutes=29, seconds=59)
        before = list(memory_host.notices)
        await memory_host.clock.move(seconds=1)
        await memory_host.clock.move(days=1)

    assert (before, memory_host.notices) == ([], [("ada", "提醒：开会")])
    assert memory_host.storage.kept == {}


async def test_one_that_is_set_later_and_due_sooner_comes_first(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("second", "in 2 hours")
        await memory_host.clock.move(minutes=1)
        await plugin.remind("first", "in 1 minute")
        await memory_host.clock.move(minutes=1)
        after_a_minute = list(memory_host.notices)
        await memory_host.clock.move(hours=2)

    assert after_a_minute == [("ada", "Reminder: first")]
    assert [text for _, text in memory_host.notices] == [
        "Reminder: first",
        "Reminder: second (late: it was due on Mon 2026-11-30 at 12:00)",
    ]


async def test_a_reminder_outlives_the_plugin_and_one_that_was_missed_is_told_as_late(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("开会", "明天早上八点")
        await plugin.remind("call mom", "tomorrow at 9am")
        await plugin.remind("mow the lawn", "tomorrow at 10am")
    memory_host.clock._now += timedelta(hours=23)  # while no plugin runs
    async with memory_host.run():
        await memory_host.clock.move(seconds=0)
        at_start = list(memory_host.notices)
        await memory_host.clock.move(hours=1)

    assert at_start == [
        ("ada", "提醒：开会（迟到：原定 2026-12-01（周二）08:00）"),
        ("ada", "Reminder: call mom"),
    ]
    assert memory_host.notices[2:] == [("ada", "Reminder: mow the lawn")]
    assert memory_host.storage.kept == {}


async def test_a_repeating_reminder_comes_again_and_what_was_missed_comes_once(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("喝水", "每天下午三点")
        for _ in range(2):
            await memory_host.clock.move(days=1)
    memory_host.clock._now += timedelta(days=5)
    async with memory_host.run() as plugin:
        await memory_host.clock.move(seconds=0)
        listed = await plugin.list_reminders()
        await memory_host.clock.move(hours=5)

    assert [text for _, text in memory_host.notices] == [
        "提醒：喝水（迟到：原定 2026-11-30（周一）15:00）",
        "提醒：喝水（迟到：原定 2026-12-01（周二）15:00）",
        "提醒：喝水（迟到：原定 2026-12-02（周三）15:00）",
        "提醒：喝水",
    ]
    assert listed.data["reminders"][0]["due"] == "2026-12-07T15:00:00+08:00"


async def test_a_notification_that_fails_is_tried_again_with_growing_waits(
    memory_host: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory_host.refuses = True
    async with memory_host.run() as plugin:
        number = (await plugin.remind("开会", "半小时后")).data["id"]
        await memory_host.clock.move(minutes=30)
        asked = [memory_host.asked]
        for seconds in (4, 1, 9, 1, 19):
            await memory_host.clock.move(seconds=seconds)
            asked.append(memory_host.asked)
        kept = len(memory_host.storage.kept)
        memory_host.refuses = False
        await memory_host.clock.move(seconds=1)

    assert (asked, kept) == ([1, 1, 2, 2, 3, 3], 1)
    assert memory_host.notices == [("ada", "提醒：开会")]
    assert memory_host.storage.kept == {}
    assert caplog.messages[0] == (
        f"reminder '{number}' could not be delivered, and is tried again in 5 s: nobody takes it"
    )


async def test_the_waits_grow_to_five_minutes_and_others_are_delivered_meanwhile(memory_host: Any) -> None:
    memory_host.refuses = True
    async with memory_host.run() as plugin:
        await plugin.remind("first", "in 1 minute")
        await plugin.remind("second", "in 3 hours")
        for _ in range(12):
            await memory_host.clock.move(minutes=5)
        asked = memory_host.asked
        await memory_host.clock.move(minutes=4, seconds=59)
        just_before = memory_host.asked
        memory_host.refuses = False
        await memory_host.clock.move(hours=2)

    assert (asked, just_before) == (12, 12)
    assert sorted(text.partition(" (")[0] for _, text in memory_host.notices) == ["Reminder: first", "Reminder: second"]


async def test_a_delivery_that_cannot_be_written_down_is_not_told_twice(
    memory_host: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("开会", "半小时后")
        memory_host.storage.refuses = True
        await memory_host.clock.move(minutes=30)
        await memory_host.clock.move(seconds=5)
        kept = len(memory_host.storage.kept)
        memory_host.storage.refuses = False
        await memory_host.clock.move(seconds=10)

    assert (memory_host.asked, memory_host.notices) == (1, [("ada", "提醒：开会")])
    assert (kept, memory_host.storage.kept) == (1, {})
    assert "could not be marked as delivered" in caplog.text


async def test_one_that_is_cancelled_while_it_is_told_does_not_come_again(memory_host: Any, as_user: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("喝水", "每天下午三点")
        tell = memory_host.notify

        async def tell_and_cancel(user_id: str, text: str) -> None:
            await tell(user_id, text)
            with as_user(user_id):
                await plugin.cancel_reminder("喝水")

        memory_host.notify = tell_and_cancel
        await memory_host.clock.move(hours=5)
        await memory_host.clock.move(days=3)

    assert (memory_host.notices, memory_host.storage.kept) == ([("ada", "提醒：喝水")], {})


async def test_a_key_that_cannot_be_read_is_named_and_left_and_the_others_are_delivered(
    memory_host: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("开会", "半小时后")
    strange = {"reminder.bad": json.dumps({"text": "no user"}), "other": json.dumps(1)}
    memory_host.storage.kept.update(strange)
    async with memory_host.run():
        await memory_host.clock.move(minutes=30)

    assert memory_host.notices == [("ada", "提醒：开会")]
    assert memory_host.storage.kept == strange
    assert [message.splitlines()[0] for message in caplog.messages] == [
        "the reminder under 'reminder.bad' cannot be read, and is left as it is: 2 validation errors for _Record"
    ]


async def test_a_plugin_that_is_stopped_delivers_nothing_more(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("开会", "半小时后")
        task = plugin._task
    memory_host.clock._now += timedelta(hours=1)
    await asyncio.sleep(0)

    assert task.cancelled()
    assert memory_host.notices == []
    await plugin.stop()  # again is no error


async def test_a_delivery_that_has_ended_is_a_plugin_that_is_not_well(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        plugin.health()

        async def fail(user_id: str, text: str) -> None:
            raise RuntimeError("a mistake in the host")

        memory_host.notify = fail
        await plugin.remind("开会", "半小时后")
        memory_host.clock._now += timedelta(minutes=30)
        plugin._delivery.wake()
        await asyncio.wait([plugin._task], timeout=20)
        with pytest.raises(CyreneError, match="reminders are no longer delivered: a mistake in the host"):
            plugin.health()


async def test_the_clock_of_the_machine_waits_for_a_moment_or_to_be_woken() -> None:
    clock, wake = SystemClock(), asyncio.Event()
    soon = datetime.now(UTC) + timedelta(milliseconds=20)

    async with asyncio.timeout(20):
        await clock.wait_until(soon, wake)
        reached = clock.now()
        asyncio.get_running_loop().call_soon(wake.set)
        await clock.wait_until(None, wake)
        await clock.wait_until(soon + timedelta(days=1), wake)

    assert reached >= soon
    assert clock.now() - reached < timedelta(seconds=20)


async def test_the_clock_of_the_machine_looks_up_at_times_since_it_may_have_been_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cyrene_reminder.clock.LONGEST_SLEEP_S", 0.01)

    async with asyncio.timeout(20):
        await SystemClock().wait_until(datetime.now(UTC) + timedelta(days=1), asyncio.Event())
        await SystemClock().wait_until(None, asyncio.Event())


@pytest.fixture(autouse=True)
def _logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="cyrene.plugin.reminder")
