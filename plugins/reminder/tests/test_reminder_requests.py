"""How one sentence is taken apart into what and when."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from cyrene_reminder.reading import Moment, read_moment
from cyrene_reminder.requests import understand
from cyrene_sdk import ArgumentError

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 11, 30, 10, 0, tzinfo=SHANGHAI)


def read(phrase: str) -> Moment:
    return read_moment(phrase, now=NOW, zone=SHANGHAI)


@pytest.mark.parametrize(
    ("request_text", "text", "due"),
    [
        ("明天早上八点提醒我开会", "开会", "12-01 08:00"),
        ("提醒我明天早上八点开会", "开会", "12-01 08:00"),
        ("半小时后提醒我关火", "关火", "11-30 10:30"),
        ("每天早上七点叫我起床", "起床", "12-01 07:00"),
        ("下周三下午三点半提醒我去看牙医", "去看牙医", "12-09 15:30"),
        ("请帮我设置一个提醒：明天下午三点交报告", "交报告", "12-01 15:00"),
        ("明天早上八点的会议提醒我一下", "会议", "12-01 08:00"),
        ("明天早上八点要去机场", "去机场", "12-01 08:00"),
        ("remind me tomorrow at 8am to call mom", "call mom", "12-01 08:00"),
        ("remind me to call mom tomorrow at 8am", "call mom", "12-01 08:00"),
        ("Remind me about the dentist on Friday at 3pm, please", "the dentist", "12-04 15:00"),
        ("Can you remind me in half an hour that the cake is done?", "the cake is done", "11-30 10:30"),
        ("set a reminder for Friday at 5pm: send the report", "send the report", "12-04 17:00"),
        ("remind me every Monday at 9 to water the plants", "water the plants", "12-07 09:00"),
        ("remind me to buy 3 apples at 5pm", "buy 3 apples", "11-30 17:00"),
        ("call me back tomorrow at noon", "call me back", "12-01 12:00"),
    ],
)
def test_a_whole_request_is_taken_apart(request_text: str, text: str, due: str) -> None:
    request = understand(request_text, "", read)

    assert (request.text, f"{request.moment.due.astimezone(SHANGHAI):%m-%d %H:%M}") == (text, due)


@pytest.mark.parametrize(
    ("given", "when", "text"),
    [
        ("开会", "明天早上八点", "开会"),
        ("提醒我开会", "明天早上八点", "开会"),
        ("明天早上八点提醒我开会", "明天早上八点", "开会"),
        ("开会", "明天早上八点提醒我开会", "开会"),
        ("提醒小明交作业", "明天早上八点", "提醒小明交作业"),
        ("把提醒功能做完", "明天早上八点", "把提醒功能做完"),
        ("去年的报告", "明天早上八点", "去年的报告"),
        ("remind me to call mom", "tomorrow at 8am", "call mom"),
        ("remind me to call mom tomorrow at 8am", "tomorrow at 8am", "call mom"),
        ("call mom", "remind me tomorrow at 8am", "call mom"),
        ("to be or not to be", "2026-12-01T08:00", "to be or not to be"),
        ("buy bread!", "tomorrow at 8am", "buy bread!"),
    ],
)
def test_a_text_beside_its_time_loses_only_what_asks(given: str, when: str, text: str) -> None:
    request = understand(given, when, read)

    assert (request.text, f"{request.moment.due.astimezone(SHANGHAI):%m-%d %H:%M}") == (text, "12-01 08:00")


@pytest.mark.parametrize(("text", "when"), [("", "明天"), ("  ", "明天"), ("提醒我", "明天"), ("10分钟后叫我", "")])
def test_a_request_that_says_no_thing_is_refused(text: str, when: str) -> None:
    with pytest.raises(ArgumentError, match="say what to be reminded of") as refused:
        understand(text, when, read)

    assert refused.value.path == "/text"


@pytest.mark.parametrize("text", ["提醒我喝水", "remind me someday to breathe", "开会", "x" * 500, "喝水" * 250])
def test_a_request_that_says_no_time_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="names no time that can be read: give it as `when`") as refused:
        understand(text, "", read)

    assert refused.value.path == "/when"


def test_a_time_that_there_is_not_is_refused_for_its_own_reason() -> None:
    with pytest.raises(ArgumentError, match="25:00 is no time of day"):
        understand("提醒我25点睡觉", "", read)
