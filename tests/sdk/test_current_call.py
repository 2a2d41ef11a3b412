"""The current call is known in async code and in threads, and to nobody else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from cyrene_sdk import CurrentCall, NoCurrentCallError, current_call
from cyrene_sdk.context import _current


@pytest.fixture
def call() -> Iterator[CurrentCall]:
    token = _current.set(CurrentCall("c-1", user_id="ada"))
    yield _current.get()
    _current.reset(token)


async def test_the_call_is_known_in_tasks_and_threads(call: CurrentCall) -> None:
    async def ask() -> CurrentCall:
        return current_call()

    token = _current.set(call)
    try:
        assert await asyncio.create_task(ask()) is call
        assert await asyncio.to_thread(current_call) is call
    finally:
        _current.reset(token)


def test_outside_of_a_call_there_is_none() -> None:
    with pytest.raises(NoCurrentCallError):
        current_call()


def test_the_rest_of_the_time_is_never_below_zero() -> None:
    assert CurrentCall("c").remaining_s is None
    assert CurrentCall("c", deadline=time.monotonic() - 5).remaining_s == 0.0
    remaining_s = CurrentCall("c", deadline=time.monotonic() + 60).remaining_s
    assert remaining_s is not None
    assert 0 < remaining_s <= 60
