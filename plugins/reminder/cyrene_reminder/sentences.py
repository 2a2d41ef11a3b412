"""What users and models read of reminders, in Chinese or English."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from cyrene_reminder.chinese import has_chinese
from cyrene_reminder.ledger import Language, Reminder
from cyrene_reminder.repeats import Cycle, Repeat

__all__ = ["answer", "cancelled", "language_of", "listing", "notice", "shown"]

MOST_LISTED = 50

_CHINESE_DAYS = "一二三四五六日"
_ENGLISH_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def language_of(*texts: str) -> Language:
    """Return the language of the first text that has letters: `zh` if any of them is Chinese."""
    for text in texts:
        if any(letter.isalpha() for letter in text) and not _is_iso(text):
            return "zh" if has_chinese(text) else "en"
    return "en"


def shown(moment: datetime, zone: tzinfo, language: Language) -> str:
    """Return a time as a user can check it: 2026-12-01（周二）08:00, or Tue 2026-12-01 at 08:00."""
    local = moment.astimezone(zone)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    if language == "zh":
        return f"{local:%Y-%m-%d}（周{_CHINESE_DAYS[local.weekday()]}）{clock}"
    return f"{_ENGLISH_DAYS[local.weekday()]} {local:%Y-%m-%d} at {clock}"


def answer(reminder: Reminder, zone: tzinfo) -> str:
    """Return what a user is told of a reminder that was just set."""
    when = shown(reminder.due, zone, reminder.language)
    if reminder.language == "zh":
        if reminder.repeat is None:
            return f"好的，{when} 提醒你：{reminder.text}"
        return f"好的，{_repeated(reminder.repeat, 'zh')} 提醒你：{reminder.text}（第一次：{when}）"
    if reminder.repeat is None:
        return f"OK, I will remind you on {when}: {reminder.text}"
    return f"OK, I will remind you {_repeated(reminder.repeat, 'en')}: {reminder.text} (first on {when})"


def cancelled(reminder: Reminder, zone: tzinfo, language: Language) -> str:
    """Return what a user is told of a reminder that was cancelled."""
    line = _line(reminder, zone, language)
    return f"已取消提醒：{line}" if language == "zh" else f"Cancelled the reminder: {line}"


def listing(reminders: Sequence[Reminder], zone: tzinfo) -> str:
    """Return all reminders of a user, one a line with its id, in the language of the one set for next."""
    if not reminders:
        return "没有待提醒的事项。No reminders are set."
    language = reminders[0].language
    lines = [f"[{reminder.id}] {_line(reminder, zone, language)}" for reminder in reminders[:MOST_LISTED]]
    more = len(reminders) - len(lines)
    if language == "zh":
        head, tail = f"共有 {len(reminders)} 个提醒：", f"……还有 {more} 个"
    else:
        head = "1 reminder is set:" if len(reminders) == 1 else f"{len(reminders)} reminders are set:"
        tail = f"… and {more} more"
    return "\n".join([head, *lines, *([tail] if more else [])])


def notice(reminder: Reminder, zone: tzinfo, *, is_late: bool) -> str:
    """Return the message that a due reminder is delivered as."""
    was_due = shown(reminder.due, zone, reminder.language)
    if reminder.language == "zh":
        return f"提醒：{reminder.text}" + (f"（迟到：原定 {was_due}）" if is_late else "")
    return f"Reminder: {reminder.text}" + (f" (late: it was due on {was_due})" if is_late else "")


def _line(reminder: Reminder, zone: tzinfo, language: Language) -> str:
    when = shown(reminder.due, zone, language)
    if reminder.repeat is None:
        return f"{when} {reminder.text}"
    following = f"（下次 {when}）" if language == "zh" else f" (next on {when})"
    return f"{_repeated(reminder.repeat, language)} {reminder.text}{following}"


def _repeated(repeat: Repeat, language: Language) -> str:
    clock = f"{repeat.hour:02}:{repeat.minute:02}"
    return f"{_chinese(repeat.cycle)} {clock}" if language == "zh" else f"{_english(repeat.cycle)} at {clock}"


def _chinese(cycle: Cycle) -> str:
    if cycle.month_day is not None:
        return f"每月{cycle.month_day}号" + ("（没有这一天的月份在月底）" if cycle.month_day > 28 else "")
    days = "".join(_CHINESE_DAYS[day] for day in sorted(cycle.weekdays))
    return {"daily": "每天", "weekdays": "每个工作日"}.get(cycle.rhythm, f"每周{days}")


def _english(cycle: Cycle) -> str:
    if cycle.month_day is not None:
        shorter = " (in shorter months on the last)" if cycle.month_day > 28 else ""
        return f"every month on day {cycle.month_day}{shorter}"
    days = ", ".join(_ENGLISH_DAYS[day] for day in sorted(cycle.weekdays))
    return {"daily": "every day", "weekdays": "every weekday"}.get(cycle.rhythm, f"every {days}")


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip()).replace(tzinfo=UTC)
    except ValueError:
        return False
    return True
