"""The tools of the plugin, against a host in memory."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from cyrene_reminder import ReminderPlugin
from cyrene_sdk import ArgumentError, DangerLevel, ModelRetry, ToolFailure
from cyrene_sdk.plugin import ConfigError, PluginConfig

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "when", "said"),
    [
        ("开会", "明天早上八点", "好的，2026-12-01（周二）08:00 提醒你：开会"),
        ("call mom", "tomorrow at 8am", "OK, I will remind you on Tue 2026-12-01 at 08:00: call mom"),
        ("明天早上八点提醒我开会", "", "好的，2026-12-01（周二）08:00 提醒你：开会"),
        ("开会", "2026-12-01T08:00", "好的，2026-12-01（周二）08:00 提醒你：开会"),
        ("buy 豆腐", "tomorrow at 8am", "OK, I will remind you on Tue 2026-12-01 at 08:00: buy 豆腐"),
        ("喝水", "每天下午三点", "好的，每天 15:00 提醒你：喝水（第一次：2026-11-30（周一）15:00）"),
        ("运动", "每周一三五晚上八点", "好的，每周一三五 20:00 提醒你：运动（第一次：2026-11-30（周一）20:00）"),
        (
            "water the plants",
            "every Monday at 9",
            "OK, I will remind you every Mon at 09:00: water the plants (first on Mon 2026-12-07 at 09:00)",
        ),
        (
            "rent",
            "every month on the 31st",
            (
                "OK, I will remind you every month on day 31 (in shorter months on the last) at 09:00: rent "
                "(first on Thu 2026-12-31 at 09:00)"
            ),
        ),
    ],
)
async def test_the_answer_says_the_time_in_the_language_of_the_request(
    text: str, when: str, said: str, memory_host: Any
) -> None:
    async with memory_host.run() as plugin:
        result = await plugin.remind(text, when)

    assert (result.success, result.output) == (True, said)


async def test_a_reminder_is_kept_under_a_key_of_its_own(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        once = (await plugin.remind("开会", "明天早上八点")).data
        again = (await plugin.remind("rent", "tomorrow at 9am", "monthly")).data

    assert once == {"id": once["id"], "text": "开会", "due": "2026-12-01T08:00:00+08:00", "repeat": None}
    assert again["repeat"] == "monthly"
    assert {key: json.loads(value)["text"] for key, value in memory_host.storage.kept.items()} == {
        f"reminder.{once['id']}": "开会",
        f"reminder.{again['id']}": "rent",
    }


async def test_reminders_are_listed_by_time_to_the_user_who_set_them(memory_host: Any, as_user: Any) -> None:
    async with memory_host.run() as plugin:
        later = (await plugin.remind("开会", "明天早上八点")).data["id"]
        sooner = (await plugin.remind("喝水", "每天下午三点")).data["id"]
        with as_user("bob"):
            await plugin.remind("call mom", "tomorrow at 8am")
            of_bob = await plugin.list_reminders()
        of_ada = await plugin.list_reminders()
        with as_user(None):
            of_nobody = await plugin.list_reminders()

    assert of_ada.output == (
        "共有 2 个提醒：\n"
        f"[{sooner}] 每天 15:00 喝水（下次 2026-11-30（周一）15:00）\n"
        f"[{later}] 2026-12-01（周二）08:00 开会"
    )
    assert [entry["id"] for entry in of_ada.data["reminders"]] == [sooner, later]
    assert of_bob.output.splitlines()[0] == "1 reminder is set:"
    assert of_bob.output.endswith("Tue 2026-12-01 at 08:00 call mom")
    assert (of_nobody.output, of_nobody.data) == (
        "没有待提醒的事项。No reminders are set.",
        {"total": 0, "reminders": []},
    )


async def test_a_call_without_a_user_is_one_of_the_local_user(memory_host: Any, as_user: Any) -> None:
    async with memory_host.run() as plugin:
        with as_user(None):
            await plugin.remind("开会", "半小时后")
        await memory_host.clock.move(minutes=30)

    assert memory_host.notices == [("local", "提醒：开会")]


async def test_long_lists_are_cut_and_counted(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        for number in range(52):
            await plugin.remind(f"call {number}", f"in {number + 1} minutes")
        listed = await plugin.list_reminders()

    assert (listed.data["total"], len(listed.data["reminders"])) == (52, 50)
    assert listed.output.splitlines()[-1] == "… and 2 more"


@pytest.mark.parametrize("wanted", ["开会", "部门", "ID", "id "])
async def test_a_reminder_is_cancelled_by_its_id_its_text_or_a_part_of_it(wanted: str, memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        number = (await plugin.remind("部门开会", "明天早上八点")).data["id"]
        named = {"ID": number.upper(), "id ": f" {number} "}.get(wanted, wanted)
        result = await plugin.cancel_reminder(named)
        await memory_host.clock.move(days=2)

    assert result.output == "已取消提醒：2026-12-01（周二）08:00 部门开会"
    assert (memory_host.storage.kept, memory_host.notices) == ({}, [])


async def test_a_whole_text_is_preferred_to_a_part_and_several_are_asked_about(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("call mom", "tomorrow at 8am")
        first = (await plugin.remind("call", "tomorrow at 9am")).data["id"]
        second = (await plugin.remind("call", "every Monday and Tuesday at 10am")).data["id"]
        with pytest.raises(ModelRetry) as refused:
            await plugin.cancel_reminder("Call")
        cancelled = await plugin.cancel_reminder(first)
        the_other = await plugin.cancel_reminder(second)

    assert str(refused.value) == f"several reminders fit 'Call', give an id: [{first}] call, [{second}] call"
    assert cancelled.output == "Cancelled the reminder: Tue 2026-12-01 at 09:00 call"
    assert the_other.output == (
        "Cancelled the reminder: every Mon, Tue at 10:00 call (next on Tue 2026-12-01 at 10:00)"
    )


async def test_nobody_cancels_what_is_not_theirs(memory_host: Any, as_user: Any) -> None:
    async with memory_host.run() as plugin:
        number = (await plugin.remind("开会", "明天早上八点")).data["id"]
        with as_user("bob"), pytest.raises(ArgumentError) as by_bob:
            await plugin.cancel_reminder(number)
        with pytest.raises(ArgumentError) as unknown:
            await plugin.cancel_reminder("吃饭")

    assert str(by_bob.value) == f"no reminder fits '{number}'; none is set"
    assert str(unknown.value) == f"no reminder fits '吃饭'; there are: [{number}] 开会"
    assert unknown.value.path == "/reminder"
    assert len(memory_host.storage.kept) == 1


async def test_a_user_has_at_most_500_reminders_and_keeps_no_other_user_from_theirs(
    memory_host: Any, as_user: Any
) -> None:
    async with memory_host.run() as plugin:
        for number in range(500):
            await plugin.remind(f"call {number}", "tomorrow at 8am")
        with pytest.raises(ToolFailure, match="there are 500 reminders already, which is the limit: cancel some"):
            await plugin.remind("one more", "tomorrow at 8am")
        with as_user("bob"):
            await plugin.remind("call", "tomorrow at 8am")
        await plugin.cancel_reminder("call 499")
        await plugin.remind("one more", "tomorrow at 8am")

    assert len(memory_host.storage.kept) == 501


async def test_what_the_host_cannot_keep_is_not_set_and_what_it_cannot_forget_stays(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        await plugin.remind("开会", "明天早上八点")
        memory_host.storage.refuses = True
        with pytest.raises(ToolFailure, match="could not be kept, and is not set: the store is full"):
            await plugin.remind("吃饭", "明天早上八点")
        with pytest.raises(ToolFailure, match="could not be cancelled: the store is full"):
            await plugin.cancel_reminder("开会")
        listed = await plugin.list_reminders()

    assert [entry["text"] for entry in listed.data["reminders"]] == ["开会"]


async def test_a_refused_time_sets_nothing(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        with pytest.raises(ArgumentError):
            await plugin.remind("开会", "昨天")

    assert memory_host.storage.kept == {}


def test_an_unknown_time_zone_is_refused_with_a_near_one() -> None:
    with pytest.raises(ConfigError) as refused:
        ReminderPlugin().init(PluginConfig({"timezone": "Asia/Shanghi"}))

    assert [pointer for pointer, _ in refused.value.faults] == ["/timezone"]
    assert "did you mean 'Asia/Shanghai'?" in str(refused.value)


async def test_without_a_time_zone_the_one_of_the_system_holds(memory_host: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TZ", "America/New_York")

    async with memory_host.run(timezone="") as plugin:  # it is 21:00 on the day before there
        result = await plugin.remind("call mom", "tomorrow at 8am")

    assert result.data["due"] == "2026-11-30T08:00:00-05:00"


def test_its_definitions_say_when_to_call_each_tool_and_when_not() -> None:
    remind, listing, cancel = (tool.definition() for tool in ReminderPlugin().tools())

    assert [remind.name, listing.name, cancel.name] == ["remind", "list_reminders", "cancel_reminder"]
    assert remind.parameters["required"] == ["text"]
    assert remind.parameters["properties"]["text"]["maxLength"] == 500
    assert [(tool.read_only, tool.idempotent) for tool in (remind, listing, cancel)] == [
        (False, False),
        (True, True),
        (False, False),
    ]
    for definition in (remind, listing, cancel):
        assert (definition.danger_level, definition.category) == (DangerLevel.LOW, "reminder")
        assert "Call only when" in definition.description
        for requests in (definition.triggers, definition.not_when):
            in_english = [request for request in requests if request.isascii()]
            assert len(in_english) >= 3
            assert len(requests) - len(in_english) >= 3


async def test_every_request_and_example_of_its_definition_works(memory_host: Any) -> None:
    async with memory_host.run() as plugin:
        remind = plugin.tools()[0]
        definition = remind.definition()
        requests = [{"text": trigger} for trigger in definition.triggers]
        results = [await remind.execute(arguments) for arguments in [*requests, *definition.examples]]

    assert len({result.data["due"] for result in results}) >= 8
    assert all(result.success for result in results)


def test_its_metadata_and_its_distribution_state_one_version() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    metadata = ReminderPlugin().metadata()

    assert (metadata.version, metadata.category) == (project["version"], "reminder")  # type: ignore[union-attr]


def test_its_entry_point_names_the_plugin() -> None:
    (entry_point,) = entry_points(group="cyrene.plugins", name="reminder")

    assert entry_point.load() is ReminderPlugin
