"""Tell apart what a user wants to be reminded of and when, where both are in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cyrene_reminder.chinese import has_chinese
from cyrene_reminder.reading import Moment
from cyrene_reminder.refusals import UnreadableError
from cyrene_sdk import ArgumentError

__all__ = ["Request", "understand"]

LONGEST_PHRASE = 60
"""Characters of a sentence that may be a time, where nothing says where the time ends."""

_ASKING = re.compile(
    r"(?:请|麻烦|记得|到时候?)*(?:你|帮我|给我)?"
    r"(?:提醒(?:我|一下)|叫我|通知我|(?:设置?|定|加|创建)(?:一?个)?提醒)(?:一下|一声)?(?:要|记得)?[：:，,]?"
    r"|(?:hey |please |(?:can|could|would) you |i want you to )*"
    r"(?:remind me|set (?:me )?a reminder(?: for me)?)(?: please)?(?: to\b| that\b| about\b| of\b)?:?",
    re.IGNORECASE,
)
_EDGES = " \t\n,，。.、:：;；!！?？"
_JOINING = re.compile(r"^(?:to|that|about|for|的|要)\s*|\s+(?:for|please)$", re.IGNORECASE)

_Read = Callable[[str], Moment]


@dataclass(frozen=True, slots=True)
class Request:
    """What to say, and when."""

    text: str
    moment: Moment


def understand(text: str, when: str, read: _Read) -> Request:
    """Return what is to be said and when.

    Args:
        text: what to be reminded of, or the whole request.
        when: the time; empty where it is in `text`.
        read: how a time is read.
    Raises:
        ArgumentError: there is no time, or nothing to be reminded of.
        ModelRetry: the time may be two times.
    """
    request = _in_two(text, when, read) if when.strip() else _in_one(text, read)
    if not request.text:
        raise ArgumentError("say what to be reminded of, such as '开会' or 'call mom'", path="/text")
    return request


def _in_two(text: str, when: str, read: _Read) -> Request:
    """The time is apart; a model may all the same give the request, or its head, in either."""
    when, body = when.strip(_EDGES), text.strip()
    asking = _ASKING.search(when)
    moment = read((when[: asking.start()].strip(_EDGES) or when[asking.end() :]) if asking else when)
    said = body.removeprefix(when).lstrip(_EDGES)
    if asking := _ASKING.match(said):
        said = said[asking.end() :]
    if said != body:
        said = _tidy(said.strip(_EDGES).removesuffix(when))
    return Request(said, moment)


def _in_one(text: str, read: _Read) -> Request:
    asking = _ASKING.search(text)
    before, after = (text[: asking.start()], text[asking.end() :]) if asking else ("", text)
    for phrase, rest in _cuts(before.strip(_EDGES), after.strip(_EDGES)):
        try:
            return Request(_tidy(rest), read(phrase.strip(_EDGES)))
        except UnreadableError:
            continue
    raise UnreadableError(text, because="names no time that can be read: give it as `when`")


def _cuts(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Each way to cut a request into time and text, the likeliest first."""
    if before:
        yield before, after
    body = f"{before} {after}".strip()
    places = [match.start() for match in re.finditer(r"[\u3400-\u9fff]|(?<=[\u3400-\u9fff])\S|\s+", body)]
    for place in [len(body), *reversed(places)]:
        if 0 < place <= LONGEST_PHRASE:
            yield body[:place], body[place:]
    for place in places:
        if len(body) - place <= LONGEST_PHRASE:
            yield body[place:], body[:place]


def _tidy(text: str) -> str:
    """What is left of a sentence without its time: no word that joined the two."""
    text = text.strip(_EDGES)
    return _JOINING.sub("", text).strip(_EDGES) if has_chinese(text) or " " in text else text
