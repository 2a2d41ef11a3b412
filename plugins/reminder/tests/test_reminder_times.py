"""Which moment a phrase means, on Monday 2026-11-30 at 10:00 in Shanghai."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_reminder.reading import Moment, read_moment
from cyrene_reminder.refusals import UnreadableError
from cyrene_reminder.repeats import Rhythm
from cyrene_sdk import ArgumentError, ModelRetry

SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 30, 10, 0, tzinfo=SHANGHAI)


def read(phrase: str, *, rhythm: Rhythm | None = None, now: datetime = NOW, zone: ZoneInfo = SHANGHAI) -> Moment:
    return read_moment(phrase, now=now, zone=zone, rhythm=rhythm)


def shown(moment: Moment, zone: ZoneInfo = SHANGHAI) -> str:
    return f"{moment.due.astimezone(zone):%a %Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        # a day and a time
        ("明天早上八点", "Tue 2026-12-01 08:00"),
        ("明早8点", "Tue 2026-12-01 08:00"),
        ("明天 早上 8 点", "Tue 2026-12-01 08:00"),
        ("在明天的早上八点钟", "Tue 2026-12-01 08:00"),
        ("明天中午12点半", "Tue 2026-12-01 12:30"),
        ("明天凌晨3点", "Tue 2026-12-01 03:00"),
        ("明天8点", "Tue 2026-12-01 08:00"),
        ("后天上午十点", "Wed 2026-12-02 10:00"),
        ("大后天下午2点", "Thu 2026-12-03 14:00"),
        ("下午五点", "Mon 2026-11-30 17:00"),
        ("晚上8:30", "Mon 2026-11-30 20:30"),
        ("今晚九点", "Mon 2026-11-30 21:00"),
        ("今晚12点", "Tue 2026-12-01 00:00"),
        ("今晚一点", "Tue 2026-12-01 01:00"),
        ("明天晚上12点", "Wed 2026-12-02 00:00"),
        ("上午十点零五分", "Mon 2026-11-30 10:05"),
        ("晚上八点四十五", "Mon 2026-11-30 20:45"),
        ("明早7点一刻", "Tue 2026-12-01 07:15"),
        ("下午差一刻四点", "Mon 2026-11-30 15:45"),
        ("八点差五分", "Mon 2026-11-30 19:55"),
        ("tomorrow at 8am", "Tue 2026-12-01 08:00"),
        ("tomorrow at 8 a.m.", "Tue 2026-12-01 08:00"),
        ("Tomorrow morning at 8", "Tue 2026-12-01 08:00"),
        ("at 8 in the morning tomorrow", "Tue 2026-12-01 08:00"),
        ("the day after tomorrow at 10", "Wed 2026-12-02 10:00"),
        ("noon tomorrow", "Tue 2026-12-01 12:00"),
        ("tonight at 8", "Mon 2026-11-30 20:00"),
        ("tonight at 12", "Tue 2026-12-01 00:00"),
        ("5pm", "Mon 2026-11-30 17:00"),
        ("at half past seven in the evening", "Mon 2026-11-30 19:30"),
        ("tomorrow at a quarter to six in the evening", "Tue 2026-12-01 17:45"),
        # a time alone is the next such time
        ("8点", "Mon 2026-11-30 20:00"),
        ("5点", "Mon 2026-11-30 17:00"),
        ("凌晨两点", "Tue 2026-12-01 02:00"),
        ("今天5点", "Mon 2026-11-30 17:00"),
        ("at 5", "Mon 2026-11-30 17:00"),
        ("at 8am", "Tue 2026-12-01 08:00"),
        ("8:30", "Mon 2026-11-30 20:30"),
        ("08:30", "Tue 2026-12-01 08:30"),
        ("17:00", "Mon 2026-11-30 17:00"),
        ("10 o'clock", "Mon 2026-11-30 22:00"),
        ("midnight", "Tue 2026-12-01 00:00"),
        ("24:00", "Tue 2026-12-01 00:00"),
        # a day alone is at nine, a part of the day in its middle
        ("明天", "Tue 2026-12-01 09:00"),
        ("后天", "Wed 2026-12-02 09:00"),
        ("大后天", "Thu 2026-12-03 09:00"),
        ("今晚", "Mon 2026-11-30 20:00"),
        ("明天下午", "Tue 2026-12-01 15:00"),
        ("中午", "Mon 2026-11-30 12:00"),
        ("day after tomorrow", "Wed 2026-12-02 09:00"),
        ("this evening", "Mon 2026-11-30 20:00"),
        ("in the morning", "Tue 2026-12-01 09:00"),
        # so much later
        ("半小时后", "Mon 2026-11-30 10:30"),
        ("10分钟后", "Mon 2026-11-30 10:10"),
        ("十分钟之后", "Mon 2026-11-30 10:10"),
        ("过10分钟", "Mon 2026-11-30 10:10"),
        ("再过一刻钟", "Mon 2026-11-30 10:15"),
        ("一个半小时后", "Mon 2026-11-30 11:30"),
        ("一小时二十分钟以后", "Mon 2026-11-30 11:20"),
        ("三天后", "Thu 2026-12-03 10:00"),
        ("3天后早上8点", "Thu 2026-12-03 08:00"),
        ("两周后", "Mon 2026-12-14 10:00"),
        ("半个月后", "Tue 2026-12-15 10:00"),
        ("in 10 minutes", "Mon 2026-11-30 10:10"),
        ("in half an hour", "Mon 2026-11-30 10:30"),
        ("in an hour and a half", "Mon 2026-11-30 11:30"),
        ("in 2 hours 15 minutes", "Mon 2026-11-30 12:15"),
        ("45 minutes from now", "Mon 2026-11-30 10:45"),
        ("5 minutes later", "Mon 2026-11-30 10:05"),
        ("in three days at 8am", "Thu 2026-12-03 08:00"),
        ("in two weeks", "Mon 2026-12-14 10:00"),
        # days of the week; the week begins on Monday
        ("周一早上9点", "Mon 2026-12-07 09:00"),
        ("周五晚上", "Fri 2026-12-04 20:00"),
        ("这周五下午4点", "Fri 2026-12-04 16:00"),
        ("下周三下午三点半", "Wed 2026-12-09 15:30"),
        ("下下周一", "Mon 2026-12-14 09:00"),
        ("星期天早上9点", "Sun 2026-12-06 09:00"),
        ("礼拜三", "Wed 2026-12-02 09:00"),
        ("周末", "Sat 2026-12-05 09:00"),
        ("下周末", "Sat 2026-12-12 09:00"),
        ("下周", "Mon 2026-12-07 09:00"),
        ("on Monday at 9am", "Mon 2026-12-07 09:00"),
        ("Monday at 11am", "Mon 2026-11-30 11:00"),
        ("Wednesday at 9", "Wed 2026-12-02 09:00"),
        ("next Wednesday at 3:30pm", "Wed 2026-12-09 15:30"),
        ("Sunday night", "Sun 2026-12-06 20:00"),
        ("this weekend", "Sat 2026-12-05 09:00"),
        # dates
        ("5号上午十点", "Sat 2026-12-05 10:00"),
        ("下个月5号", "Sat 2026-12-05 09:00"),
        ("12月24日晚上六点", "Thu 2026-12-24 18:00"),
        ("十二月二十四号下午6点", "Thu 2026-12-24 18:00"),
        ("１２月２４日　晚上８点", "Thu 2026-12-24 20:00"),
        ("2026年12月1日8点", "Tue 2026-12-01 08:00"),
        ("明年3月5日上午9点", "Fri 2027-03-05 09:00"),
        ("11月30日上午9点", "Tue 2027-11-30 09:00"),
        ("11月30日上午11点", "Mon 2026-11-30 11:00"),
        ("月底", "Thu 2026-12-31 09:00"),
        ("月底下午5点", "Mon 2026-11-30 17:00"),
        ("年底", "Thu 2026-12-31 09:00"),
        ("on the 5th at 10am", "Sat 2026-12-05 10:00"),
        ("on the 31st", "Thu 2026-12-31 09:00"),
        ("on the 5th of next month", "Sat 2026-12-05 09:00"),
        ("December 24 at 6pm", "Thu 2026-12-24 18:00"),
        ("Thursday, December 24th, 2026 at 6 pm", "Thu 2026-12-24 18:00"),
        ("24 Dec", "Thu 2026-12-24 09:00"),
        ("24/12/2026 18:00", "Thu 2026-12-24 18:00"),
        ("Feb 29 at noon", "Tue 2028-02-29 12:00"),
        ("end of the month", "Thu 2026-12-31 09:00"),
        ("2026-12-01", "Tue 2026-12-01 09:00"),
        ("2026-12-01 08:00", "Tue 2026-12-01 08:00"),
        ("2026-12-01T08:00:00+09:00", "Tue 2026-12-01 07:00"),
        ("2026-12-01T08:00Z", "Tue 2026-12-01 16:00"),
    ],
)
def test_a_phrase_means_the_next_time_that_fits_it(phrase: str, expected: str) -> None:
    moment = read(phrase)

    assert (shown(moment), moment.repeat) == (expected, None)


@pytest.mark.parametrize(
    ("phrase", "first", "rhythm"),
    [
        ("每天早上七点", "Tue 2026-12-01 07:00", "daily"),
        ("每天", "Tue 2026-12-01 09:00", "daily"),
        ("每晚十点", "Mon 2026-11-30 22:00", "daily"),
        ("天天晚上12点", "Tue 2026-12-01 00:00", "daily"),
        ("每个工作日早上7点半", "Tue 2026-12-01 07:30", "weekdays"),
        ("每周一到周五8点", "Tue 2026-12-01 08:00", "weekdays"),
        ("每周一早上九点", "Mon 2026-12-07 09:00", "weekly"),
        ("每周一三五晚上8点", "Mon 2026-11-30 20:00", "weekly"),
        ("每周二、周四下午3点", "Tue 2026-12-01 15:00", "weekly"),
        ("每周末上午10点", "Sat 2026-12-05 10:00", "weekly"),
        ("每月5号", "Sat 2026-12-05 09:00", "monthly"),
        ("每个月底下午五点", "Mon 2026-11-30 17:00", "monthly"),
        ("every day at 7", "Tue 2026-12-01 07:00", "daily"),
        ("every morning", "Tue 2026-12-01 09:00", "daily"),
        ("daily at 7am", "Tue 2026-12-01 07:00", "daily"),
        ("weekdays at 8:30", "Tue 2026-12-01 08:30", "weekdays"),
        ("every Monday at 9", "Mon 2026-12-07 09:00", "weekly"),
        ("Mondays and Fridays at 6pm", "Mon 2026-11-30 18:00", "weekly"),
        ("every month on the 5th at 10am", "Sat 2026-12-05 10:00", "monthly"),
        ("the last day of every month at 5pm", "Mon 2026-11-30 17:00", "monthly"),
    ],
)
def test_what_is_said_to_come_again_repeats(phrase: str, first: str, rhythm: str) -> None:
    moment = read(phrase)

    assert moment.repeat is not None
    assert (shown(moment), moment.repeat.cycle.rhythm) == (first, rhythm)


@pytest.mark.parametrize(
    "phrase",
    [
        "",
        "  ",
        "someday",
        "later",
        "soon",
        "in a while",
        "in a few days",
        "以后",
        "过几天",
        "一会儿",
        "3",
        "banana",
        "now",
        "现在",
        "next year",
        "tomorrow at 8 or 9",
        "8:00 8:30",
        "明天八点到九点",
        "明天明天",
        "remind me",
        "x" * 201,
    ],
)
def test_what_is_no_time_is_refused_with_examples_of_times(phrase: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        read(phrase)

    assert refused.value.path == "/when"
    assert "'tomorrow at 8am'" in str(refused.value)
    assert "'明天早上八点'" in str(refused.value)


@pytest.mark.parametrize(
    "phrase", ["每两天", "每年12月24日", "每小时", "every 2 hours", "every other day", "yearly", "every week"]
)
def test_a_repeat_that_is_not_supported_is_refused_with_those_that_are(phrase: str) -> None:
    with pytest.raises(UnreadableError, match=r"not supported \(supported: every day, every weekday"):
        read(phrase)


@pytest.mark.parametrize(
    ("phrase", "moment"),
    [
        ("昨天", "2026-11-29 09:00"),
        ("前天晚上", "2026-11-28 20:00"),
        ("今天早上8点", "2026-11-30 08:00"),
        ("三天前", "2026-11-27 10:00"),
        ("这个月15号", "2026-11-15 09:00"),
        ("yesterday", "2026-11-29 09:00"),
        ("an hour ago", "2026-11-30 09:00"),
        ("today at 9:30am", "2026-11-30 09:30"),
        ("in 0 minutes", "2026-11-30 10:00"),
        ("Dec 24 2020", "2020-12-24 09:00"),
        ("2026-11-30T10:00", "2026-11-30 10:00"),
        ("2026-11-30T01:59Z", "2026-11-30 09:59"),
    ],
)
def test_what_can_only_be_over_is_refused_with_the_time_it_means(phrase: str, moment: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        read(phrase)

    assert str(refused.value) == f"'{phrase}' means {moment}, which is over: name a time to come"


@pytest.mark.parametrize(
    ("phrase", "why"),
    [
        ("25点", "25:00 is no time of day: hours go from 0 to 23, minutes from 0 to 59"),
        ("tomorrow at 25:00", "25:00 is no time of day"),
        ("8:61", "8:61 is no time of day"),
        ("上午13点", "13:00 is not in the part of the day that is named (morning)"),
        ("8am tonight", "8:00 is not in the part of the day"),
        ("2月30日", "there is no such date"),
        ("Feb 30", "there is no such date"),
        ("2026-02-30T08:00", "there is no such time"),
        ("Friday 13 November 2027", "2027-11-13 is no Fri"),
        ("in 20 years", "further away than ten years"),
        ("Jan 1 2099", "further away than ten years"),
    ],
)
def test_a_time_that_there_is_not_is_refused_with_the_reason(phrase: str, why: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        read(phrase)

    assert refused.value.path == "/when"
    assert str(refused.value).startswith(f"'{phrase}': ")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("phrase", "readings"),
    [
        ("明天5点", "05:00 or 17:00"),
        ("周一三点", "03:00 or 15:00"),
        ("每天四点半", "04:30 or 16:30"),
        ("tomorrow at 5", "05:00 or 17:00"),
        ("01/02/2027", "write the date as 2026-12-24"),
        ("tomorrow at midnight", "say 00:00 or 23:59"),
        ("every Monday at midnight", "the night before that day or the one after it"),
    ],
)
def test_what_may_be_two_times_is_asked_about(phrase: str, readings: str) -> None:
    with pytest.raises(ModelRetry) as refused:
        read(phrase)

    assert str(refused.value).startswith(f"'{phrase}' may mean two times: ")
    assert readings in str(refused.value)


@pytest.mark.parametrize(
    ("rhythm", "first", "second"),
    [
        ("daily", "Sat 2026-12-05 10:00", "Sun 2026-12-06 10:00"),
        ("weekdays", "Mon 2026-12-07 10:00", "Tue 2026-12-08 10:00"),
        ("weekly", "Sat 2026-12-05 10:00", "Sat 2026-12-12 10:00"),
        ("monthly", "Sat 2026-12-05 10:00", "Tue 2027-01-05 10:00"),
    ],
)
def test_a_phrase_for_one_time_repeats_as_it_is_told_to(rhythm: Rhythm, first: str, second: str) -> None:
    moment = read("12月5日上午10点", rhythm=rhythm)

    assert moment.repeat is not None
    again = Moment(moment.repeat.next_after(moment.due, SHANGHAI))
    assert (shown(moment), shown(again)) == (first, second)


def test_a_phrase_and_an_argument_that_repeat_differently_are_refused() -> None:
    with pytest.raises(ArgumentError, match="it repeats daily, but `repeat` says weekly: leave one out"):
        read("每天早上七点", rhythm="weekly")

    assert read("每天早上七点", rhythm="daily").repeat == read("每天早上七点").repeat


def test_a_month_without_the_day_has_it_on_its_last_day() -> None:
    repeat = read("monthly on the 31st").repeat
    assert repeat is not None

    days = [NOW]
    for _ in range(4):
        days.append(repeat.next_after(days[-1], SHANGHAI))

    assert [f"{day.astimezone(SHANGHAI):%m-%d}" for day in days] == ["11-30", "12-31", "01-31", "02-28", "03-31"]


def test_hours_pass_on_any_clock_and_days_end_at_the_same_time_of_day() -> None:
    before_the_change = datetime(2027, 3, 27, 12, 0, tzinfo=BERLIN)  # the clock goes from 2:00 to 3:00 on the 28th

    hours = read("in 24 hours", now=before_the_change, zone=BERLIN)
    days = read("1天后", now=before_the_change, zone=BERLIN)

    assert (shown(hours, BERLIN), shown(days, BERLIN)) == ("Sun 2027-03-28 13:00", "Sun 2027-03-28 12:00")


def test_a_time_that_daylight_saving_leaves_out_is_after_the_jump_and_one_that_comes_twice_is_the_first() -> None:
    left_out = read("2027-03-28T02:30", now=NOW, zone=BERLIN)
    twice = read("2027-10-31T02:30", now=NOW, zone=BERLIN)

    assert left_out.due == datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    assert twice.due == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)


def test_a_repeat_keeps_its_time_on_the_wall_clock_when_daylight_saving_begins() -> None:
    repeat = read("every day at 7am", now=datetime(2027, 3, 26, 12, 0, tzinfo=BERLIN), zone=BERLIN).repeat
    assert repeat is not None

    saturday = repeat.next_after(datetime(2027, 3, 26, 12, 0, tzinfo=BERLIN), BERLIN)
    sunday = repeat.next_after(saturday, BERLIN)

    assert (saturday.hour, sunday.hour) == (6, 5)
    assert sunday - saturday == timedelta(hours=23)


WORDS = [
    "明天",
    "后天",
    "今晚",
    "早上",
    "下午",
    "晚上",
    "半夜",
    "八点",
    "十二点半",
    "25点",
    "5号",
    "月底",
    "12月24日",
    "2月30日",
    "每天",
    "每周一三五",
    "每月",
    "下周三",
    "周末",
    "半小时后",
    "三天前",
    "一刻",
    "差",
    "过",
    "年",
    "的",
    "tomorrow",
    "tonight",
    "every",
    "next",
    "this",
    "monday",
    "weekend",
    "5th",
    "dec",
    "24",
    "at",
    "8",
    "8am",
    "13pm",
    "24:00",
    "in",
    "minutes",
    "3",
    "days",
    "ago",
    "month",
    "end",
    "of",
    "year",
    "half",
    "past",
    "-1",
    "999999999",
    "。",
    "/",
    ":",
    "十十",
    "2026-12-01",
    "1/2",
]


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from(["", " "]))
def test_whatever_is_said_is_a_time_to_come_or_one_clear_refusal(words: list[str], between: str) -> None:
    try:
        due = read(between.join(words)).due
    except (ArgumentError, ModelRetry):
        due = None

    assert due is None or NOW < due < NOW + timedelta(days=3661)
