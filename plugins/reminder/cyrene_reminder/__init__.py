"""A plugin that reminds users at a time that they name in Chinese or English."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import tzinfo
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, Field, field_validator
from tzlocal import get_localzone

from cyrene_reminder.clock import Clock, SystemClock
from cyrene_reminder.delivery import Delivery
from cyrene_reminder.ledger import MOST_PER_USER, Ledger, Reminder, TooManyError
from cyrene_reminder.reading import MAX_PHRASE, Moment, read_moment
from cyrene_reminder.repeats import Rhythm
from cyrene_reminder.requests import understand
from cyrene_reminder.sentences import MOST_LISTED, answer, cancelled, language_of, listing
from cyrene_sdk import (
    ArgumentError,
    BasePlugin,
    CyreneError,
    HostAPI,
    ModelRetry,
    PluginMetadata,
    ToolFailure,
    ToolResult,
    current_call,
    tool,
)

__all__ = ["Clock", "ReminderPlugin", "SystemClock"]

MAX_TEXT = 500
NOBODY = "local"
"""Who is reminded where a call names no user."""

_RETURNS = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "text": {"type": "string"},
        "due": {"type": "string", "description": "ISO 8601 with the offset of the plugin's time zone"},
        "repeat": {"enum": ["daily", "weekdays", "weekly", "monthly", None]},
    },
    "required": ["id", "text", "due", "repeat"],
}


class ReminderSettings(BaseModel):
    """What an operator may set."""

    timezone: str = Field(default="", description="IANA name such as Asia/Shanghai; empty: the time zone of the system")

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name and name not in available_timezones():
            near = get_close_matches(name, available_timezones(), n=1)
            raise ValueError(f"no such time zone; {f'did you mean {near[0]!r}?' if near else 'try Asia/Shanghai'}")
        return name


class ReminderPlugin(BasePlugin):
    """Keeps reminders and delivers them when they are due. `clock` is a class attribute that tests replace."""

    meta = PluginMetadata(
        name="reminder",
        display_name="提醒",
        version="1.0.0",
        author="Cyrene",
        description="提醒：听懂中文和英文的时间，到点通知",
        license="MIT",
        keywords=["reminder", "alarm", "提醒", "闹钟"],
        category="reminder",
    )
    config = ReminderSettings
    settings: ReminderSettings
    clock: ClassVar[Clock] = SystemClock()

    _zone: tzinfo
    _ledger: Ledger
    _delivery: Delivery
    _task: asyncio.Task[None] | None = None

    async def start(self, host: HostAPI) -> None:
        """Read the reminders that were kept, and begin to deliver: first what is overdue."""
        self._zone = ZoneInfo(self.settings.timezone) if self.settings.timezone else get_localzone()
        self._ledger = Ledger(host.storage)
        await self._ledger.load(host.logger)
        # The parser reads its tables at first use, which takes a tenth of a second: not in the first call.
        await asyncio.to_thread(read_moment, "in 1 minute", now=self.clock.now(), zone=self._zone)
        self._delivery = Delivery(self._ledger, host, self.clock, self._zone)
        self._task = asyncio.create_task(self._delivery.run(), name="reminder delivery")

    async def stop(self) -> None:
        """End the delivery; reminders stay in the storage."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def health(self) -> None:
        """Raise when reminders are no longer delivered."""
        if self._task is not None and self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            raise CyreneError(
                f"reminders are no longer delivered: {error or 'the task has ended'}",
                mend="restart the plugin; no reminder is lost",
            ) from error

    @tool(
        display_name="设置提醒",
        category="reminder",
        danger_level="low",
        read_only=False,
        idempotent=False,
        triggers=[
            "明天早上八点提醒我开会",
            "半小时后提醒我关火",
            "每天早上七点叫我起床",
            "下周三下午三点半提醒我去看牙医",
            "remind me tomorrow at 8am to call mom",
            "remind me in 10 minutes to check the oven",
            "set a reminder for Friday at 5pm: send the report",
            "remind me every Monday at 9 to water the plants",
        ],
        not_when=[
            "现在几点了",
            "明天早上八点天气怎么样",
            "这首歌让我想起小时候",
            "我有哪些提醒",
            "what time is it",
            "that reminds me of my childhood",
            "what is on my calendar tomorrow",
            "how do reminders work on a phone",
        ],
        examples=[
            {"text": "开会", "when": "明天早上八点"},
            {"text": "call mom", "when": "tomorrow at 8am"},
            {"text": "喝水", "when": "每天下午三点"},
        ],
        returns=_RETURNS,
    )
    async def remind(
        self,
        text: Annotated[
            str,
            Field(
                max_length=MAX_TEXT,
                description="提醒的内容，例如 开会；没有 when 时可以是整句话，例如 明天早上八点提醒我开会。"
                "What to be reminded of, in the user's language.",
            ),
        ],
        when: Annotated[
            str,
            Field(
                max_length=MAX_PHRASE,
                description="时间，照用户的原话，不要换算：明天早上八点、半小时后、每周一上午九点；或 ISO 8601。"
                "The time in the user's own words (tomorrow at 8am, in 10 minutes, every Monday at 9am), "
                "not worked out; or ISO 8601 (2026-12-01T08:00).",
            ),
        ] = "",
        repeat: Annotated[
            Rhythm | None, "只在 when 没有说重复时使用。How a `when` that names one time repeats; else leave it out."
        ] = None,
    ) -> ToolResult:
        """设置一个提醒，到点通知用户。Set a reminder; the user is notified when it is due.

        只在用户要求在某个时间提醒、叫醒或通知自己时调用；问时间、问日程或只是提到时间时不要调用。
        Call only when the user asks to be reminded, woken or told at a time; not for questions about time or plans.
        """

        def read(phrase: str) -> Moment:
            return read_moment(phrase, now=self.clock.now(), zone=self._zone, rhythm=repeat)

        request = understand(text, when, read)
        try:
            reminder = await self._ledger.add(_user(), request.text, request.moment, language_of(when, text))
        except TooManyError:
            raise ToolFailure(f"there are {MOST_PER_USER} reminders already, which is the limit: cancel some") from None
        except CyreneError as error:
            raise ToolFailure(f"the reminder could not be kept, and is not set: {error.what}") from error
        self._delivery.wake()
        return ToolResult(success=True, output=answer(reminder, self._zone), data=self._data(reminder))

    @tool(
        display_name="查看提醒",
        category="reminder",
        danger_level="low",
        read_only=True,
        idempotent=True,
        triggers=[
            "我有哪些提醒",
            "看看我的提醒",
            "列出所有闹钟和提醒",
            "what reminders do I have",
            "list my reminders",
            "show me all reminders that are set",
        ],
        not_when=[
            "提醒我开会",
            "取消提醒",
            "列出我的文件",
            "remind me to call mom",
            "cancel my reminder",
            "list my files",
        ],
        examples=[{}],
        returns={
            "type": "object",
            "properties": {"total": {"type": "integer"}, "reminders": {"type": "array", "items": _RETURNS}},
            "required": ["total", "reminders"],
        },
    )
    async def list_reminders(self) -> ToolResult:
        """列出用户还没到点的提醒。List the user's reminders that are still to come, with their ids.

        只在用户想知道设了哪些提醒，或要找某个提醒的编号时调用。
        Call only when the user asks which reminders are set, or when an id is needed.
        """
        reminders = self._ledger.of(_user())
        entries = [self._data(reminder) for reminder in reminders[:MOST_LISTED]]
        return ToolResult(
            success=True,
            output=listing(reminders, self._zone),
            data={"total": len(reminders), "reminders": entries},
        )

    @tool(
        display_name="取消提醒",
        category="reminder",
        danger_level="low",
        read_only=False,
        idempotent=False,
        triggers=[
            "取消开会的提醒",
            "不用提醒我喝水了",
            "把明天的提醒删掉",
            "cancel the reminder to call mom",
            "delete my reminder about the meeting",
            "you need not remind me of the dentist any more",
        ],
        not_when=[
            "取消订单",
            "取消会议",
            "我有哪些提醒",
            "cancel my subscription",
            "cancel the meeting",
            "list my reminders",
        ],
        examples=[{"reminder": "开会"}, {"reminder": "3f9a1c"}],
        returns=_RETURNS,
    )
    async def cancel_reminder(
        self,
        reminder: Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_TEXT,
                description="提醒的编号（见 list_reminders），或它的内容。"
                "The reminder's id (see list_reminders), or its text or a part of it.",
            ),
        ],
    ) -> ToolResult:
        """取消一个提醒。Cancel one reminder.

        只在用户不再需要某个已设的提醒时调用；取消会议或订单本身时不要调用。
        Call only when the user no longer wants a reminder; not to cancel the thing itself.
        """
        found = self._found(reminder.strip())
        try:
            await self._ledger.remove(found)
        except CyreneError as error:
            raise ToolFailure(f"the reminder could not be cancelled: {error.what}") from error
        self._delivery.wake()
        language = found.language if reminder.strip().lower() == found.id else language_of(reminder)
        return ToolResult(success=True, output=cancelled(found, self._zone, language), data=self._data(found))

    def _found(self, wanted: str) -> Reminder:
        """The one reminder of this user that an id, a text or a part of a text names."""
        own = self._ledger.of(_user())
        for matches in (
            [reminder for reminder in own if reminder.id == wanted.lower()],
            [reminder for reminder in own if reminder.text.casefold() == wanted.casefold()],
            [reminder for reminder in own if wanted and wanted.casefold() in reminder.text.casefold()],
        ):
            if len(matches) > 1:
                raise ModelRetry(f"several reminders fit '{wanted[:80]}', give an id: {self._named(matches)}")
            if matches:
                return matches[0]
        known = f"there are: {self._named(own)}" if own else "none is set"
        raise ArgumentError(f"no reminder fits '{wanted[:80]}'; {known}", path="/reminder")

    def _named(self, reminders: Sequence[Reminder]) -> str:
        named = [f"[{reminder.id}] {reminder.text[:80]}" for reminder in reminders[:MOST_LISTED]]
        return ", ".join(named) + (", …" if len(reminders) > MOST_LISTED else "")

    def _data(self, reminder: Reminder) -> dict[str, Any]:
        return {
            "id": reminder.id,
            "text": reminder.text,
            "due": reminder.due.astimezone(self._zone).isoformat(),
            "repeat": reminder.repeat.cycle.rhythm if reminder.repeat else None,
        }


def _user() -> str:
    return current_call().user_id or NOBODY
