"""The bundled reminder plugin in a real host with its real store, by a clock that the tests set."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cyrene_host import CallContext, Host

Write = Callable[..., Path]
Slow = Callable[[float], float]

ADA = CallContext(user_id="ada")
BOB = CallContext(user_id="bob")
EVENING = "2026-11-30T20:00:00+08:00"


class Reminders:
    """A plugins.json that names the reminder plugin, and the clock that it goes by."""

    def __init__(self, file: Path, clock: Path, limit_s: float) -> None:
        self.file = file
        self._clock = clock
        self._limit_s = limit_s

    def set_clock(self, now: str) -> None:
        """Set the clock to an ISO 8601 time."""
        draft = self._clock.with_suffix(".new")
        draft.write_text(now, encoding="utf-8")
        draft.replace(self._clock)

    async def notices(self, host: Host, user_id: str, count: int) -> list[tuple[str, str]]:
        """Return plugin and text of what waits for a user, as soon as there are so many."""
        async with asyncio.timeout(self._limit_s):
            while len(pending := await host.notifications.pending(user_id)) < count:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.02)
        return [(notice.plugin, notice.text) for notice in pending]


@pytest.fixture(params=["inline", "process"])
def reminders(request: pytest.FixtureRequest, plugins_json: Write, tmp_path: Path, slow: Slow) -> Reminders:
    """The reminder plugin in each runtime, on the evening of Monday 2026-11-30 in Shanghai."""
    folder = tmp_path / "plugins" / "reminder"
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "plugins" / "clocked_reminder.py", folder)
    entry = {
        "name": "reminder",
        "path": "plugins/reminder",
        "import": "clocked_reminder",
        "class": "ClockedReminderPlugin",
        "runtime": request.param,
        "config": {"timezone": "Asia/Shanghai"},
    }
    found = Reminders(plugins_json([entry]), folder / "now", slow(15))
    found.set_clock(EVENING)
    return found


async def test_reminders_set_in_chinese_and_in_english_are_delivered_when_they_are_due(reminders: Reminders) -> None:
    async with Host.open(reminders.file) as host:
        chinese = await host.call("remind", {"text": "开会", "when": "明天早上八点"}, context=ADA)
        english = await host.call("remind", {"text": "remind me tomorrow at 8am to call mom"}, context=BOB)
        reminders.set_clock("2026-12-01T07:59:59+08:00")
        listed = await host.call("list_reminders", {}, context=ADA)
        before = await host.notifications.pending()
        reminders.set_clock("2026-12-01T08:00:00+08:00")
        of_ada = await reminders.notices(host, "ada", 1)
        of_bob = await reminders.notices(host, "bob", 1)

    assert chinese.output == "好的，2026-12-01（周二）08:00 提醒你：开会"
    assert english.output == "OK, I will remind you on Tue 2026-12-01 at 08:00: call mom"
    assert (listed.data["total"], list(before)) == (1, [])
    assert (of_ada, of_bob) == ([("reminder", "提醒：开会")], [("reminder", "Reminder: call mom")])


async def test_reminders_outlive_a_restart_of_the_host_and_come_once(reminders: Reminders) -> None:
    async with Host.open(reminders.file) as host:
        await host.call("remind", {"text": "明天早上八点提醒我开会"}, context=ADA)
        await host.call("remind", {"text": "call mom", "when": "tomorrow at 9am"}, context=ADA)
    async with Host.open(reminders.file) as host:
        listed = await host.call("list_reminders", {}, context=ADA)
        before = await host.notifications.pending("ada")
        reminders.set_clock("2026-12-01T08:00:10+08:00")
        first = await reminders.notices(host, "ada", 1)
    async with Host.open(reminders.file) as host:
        reminders.set_clock("2026-12-01T09:00:10+08:00")
        both = await reminders.notices(host, "ada", 2)
        left = await host.call("list_reminders", {}, context=ADA)

    assert ([entry["text"] for entry in listed.data["reminders"]], list(before)) == (["开会", "call mom"], [])
    assert first == [("reminder", "提醒：开会")]
    assert both == [*first, ("reminder", "Reminder: call mom")]
    assert left.data["total"] == 0


async def test_what_was_due_while_no_host_ran_is_delivered_at_the_next_start_as_late(reminders: Reminders) -> None:
    async with Host.open(reminders.file) as host:
        await host.call("remind", {"text": "喝水", "when": "每天晚上九点"}, context=ADA)
        await host.call("remind", {"text": "call mom", "when": "in 2 hours"}, context=BOB)
    reminders.set_clock("2026-12-03T12:00:00+08:00")
    async with Host.open(reminders.file) as host:
        of_ada = await reminders.notices(host, "ada", 1)
        of_bob = await reminders.notices(host, "bob", 1)
        listed = await host.call("list_reminders", {}, context=ADA)

    assert of_ada == [("reminder", "提醒：喝水（迟到：原定 2026-11-30（周一）21:00）")]
    assert of_bob == [("reminder", "Reminder: call mom (late: it was due on Mon 2026-11-30 at 22:00)")]
    assert listed.data["reminders"][0]["due"] == "2026-12-03T21:00:00+08:00"


async def test_a_cancelled_reminder_stays_cancelled_after_a_restart(reminders: Reminders) -> None:
    async with Host.open(reminders.file) as host:
        await host.call("remind", {"text": "开会", "when": "明天早上八点"}, context=ADA)
        await host.call("remind", {"text": "call mom", "when": "tomorrow at 9am"}, context=ADA)
        foreign = await host.call("cancel_reminder", {"reminder": "开会"}, context=BOB)
        cancelled = await host.call("cancel_reminder", {"reminder": "开会"}, context=ADA)
    async with Host.open(reminders.file) as host:
        reminders.set_clock("2026-12-01T09:00:00+08:00")
        delivered = await reminders.notices(host, "ada", 1)

    assert (foreign.error_kind, cancelled.output) == (
        "invalid_arguments",
        "已取消提醒：2026-12-01（周二）08:00 开会",
    )
    assert delivered == [("reminder", "Reminder: call mom")]


@pytest.mark.parametrize("when", ["昨天", "someday", "25点", "", "明天5点"])
async def test_a_time_that_cannot_be_taken_is_a_fault_of_the_arguments(when: str, reminders: Reminders) -> None:
    async with Host.open(reminders.file) as host:
        refused = await host.call("remind", {"text": "开会", "when": when}, context=ADA)
        listed = await host.call("list_reminders", {}, context=ADA)

    assert (refused.error_kind, refused.reason, refused.effect) == ("invalid_arguments", "tool", "none")
    assert listed.data["total"] == 0
