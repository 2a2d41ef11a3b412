"""Frames: however the stream is cut the messages are the same, and what is no message ends it with the rule."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_sdk._worker.wire import FRAME_BYTES, Link, Message, ProtocolError

Until = Callable[..., Any]

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
messages = st.lists(st.dictionaries(st.text(), plain, max_size=4), max_size=6)


class End:
    """One end of a pipe, with what came and how it ended."""

    def __init__(self) -> None:
        self.came: list[Message] = []
        self.ended: list[Exception | None] = []
        self.link = Link(self.came.append, self.ended.append)


async def pair() -> tuple[End, End]:
    loop = asyncio.get_running_loop()
    ends = End(), End()
    for end, sock in zip(ends, socket.socketpair(), strict=True):
        await loop.create_unix_connection(lambda end=end: end.link, sock=sock)  # type: ignore[misc]
    return ends


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@given(messages, st.data())
def test_any_cut_of_the_stream_gives_the_same_messages(sent: list[Message], data: st.DataObject) -> None:
    stream = b"".join(frame(json.dumps(message).encode()) for message in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    end = End()

    for begin, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        end.link.data_received(stream[begin:stop])
    end.link.connection_lost(None)

    assert end.came == sent
    assert end.ended == [None]


def test_one_byte_at_a_time_gives_the_same_messages() -> None:
    sent: list[Message] = [{}, {"a": "ü" * 100}, {"b": [1, 2.5, None]}]
    end = End()

    for byte in b"".join(frame(json.dumps(message).encode()) for message in sent):
        end.link.data_received(bytes([byte]))

    assert end.came == sent


@given(st.binary(max_size=200))
def test_no_bytes_at_all_break_more_than_the_stream(stream: bytes) -> None:
    end = End()

    end.link.data_received(stream)
    end.link.connection_lost(None)

    assert len(end.ended) == 1
    assert end.ended[0] is None or isinstance(end.ended[0], ProtocolError)
    assert all(type(message) is dict for message in end.came)


@pytest.mark.parametrize(
    ("stream", "rule"),
    [
        (b"\xff\xff\xff\xff", f"a frame of 4294967295 bytes was announced, at most {FRAME_BYTES} are allowed"),
        ((FRAME_BYTES + 1).to_bytes(4, "big"), f"a frame of {FRAME_BYTES + 1} bytes was announced"),
        (frame(b"nojso"), "a frame is no JSON: "),
        (frame(b""), "a frame is no JSON: "),
        (frame(b'{"a": NaN}'), "a frame is no JSON: "),
        (frame(b'{"a": "\xff"}'), "a frame is no JSON: "),
        (frame(b'{"a": "\\ud800"}'), "a frame is no JSON: "),
        (frame(b"[" * 100_000), "a frame is no JSON: "),
        (frame(b"[]"), "a frame is a JSON list, not an object"),
        (frame(b"null"), "a frame is a JSON NoneType, not an object"),
    ],
)
async def test_what_is_no_message_ends_the_stream_with_the_rule_that_it_broke(
    until: Until, stream: bytes, rule: str
) -> None:
    one, other = await pair()
    one.link.send({"before": 1})
    await asyncio.sleep(0)
    assert one.link._transport is not None
    one.link._transport.write(stream)
    one.link.send({"after": 2})
    await until(lambda: other.ended and one.ended)

    assert other.came == [{"before": 1}]
    (error,) = other.ended
    assert isinstance(error, ProtocolError)
    assert str(error).startswith(rule)
    assert len(str(error)) < 200


@pytest.mark.parametrize("left", [b"\x00", b"\x00\x00\x00\x05", b"\x00\x00\x00\x05{}"])
def test_an_end_in_the_middle_of_a_frame_is_told(left: bytes) -> None:
    end = End()
    end.link.data_received(frame(b"{}") + left)
    end.link.connection_lost(None)

    assert end.came == [{}]
    assert str(end.ended[0]) == "the stream ended in the middle of a frame"


async def test_a_message_of_the_largest_size_arrives(until: Until) -> None:
    one, other = await pair()
    text = "x" * (FRAME_BYTES - len('{"t":""}'))
    one.link.send({"t": text})
    await until(lambda: other.came, 10)
    one.link.close()

    assert other.came == [{"t": text}]


async def test_messages_arrive_in_order_from_both_ends(until: Until) -> None:
    one, other = await pair()
    for number in range(500):
        one.link.send({"one": number})
        other.link.send({"other": number})
        if number % 7 == 0:
            await asyncio.sleep(0)
    await until(lambda: len(one.came) == len(other.came) == 500)
    one.link.close()
    await until(lambda: one.ended and other.ended)

    assert other.came == [{"one": number} for number in range(500)]
    assert one.came == [{"other": number} for number in range(500)]
    assert one.ended == [None]


async def test_what_is_sent_after_the_end_goes_nowhere(until: Until) -> None:
    one, other = await pair()
    one.link.send({"last": 1})
    one.link.close()
    one.link.send({"late": 1})
    await until(lambda: one.ended and other.ended)
    one.link.send({"later": 1})
    one.link.close()
    await asyncio.sleep(0)

    assert len(one.ended) == len(other.ended) == 1
    assert {"later": 1} not in other.came
