"""Reports leave in order, clamped, at most ten times a second, and the last one always."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from cyrene_sdk._worker.progress import Pace, Progress


class Words(str):
    """A text that pretends."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError


@pytest.fixture
def told() -> list[Progress]:
    return []


@pytest.fixture
async def pace(told: list[Progress]) -> Pace:
    return Pace(told.append)


async def test_the_first_is_told_at_once_and_of_the_next_the_newest(pace: Pace, told: list[Progress]) -> None:
    for step in range(1000):
        pace.take("e", step / 1000, f"{step}", "running")
    assert told == [Progress("e", 0.0, "0", "running")]

    pace.close()

    assert told[1:] == [Progress("e", 0.999, "999", "running")]


async def test_the_newest_is_told_in_time_without_another(
    pace: Pace, told: list[Progress], until: Callable[..., Any]
) -> None:
    pace.take("e", 0.1, "a", "running")
    pace.take("e", 0.2, "b", "running")

    await until(lambda: len(told) == 2)

    assert told[1].message == "b"


async def test_after_the_end_nothing_is_told(pace: Pace, told: list[Progress]) -> None:
    pace.take("e", 0.1, "a", "running")
    pace.close()
    pace.take("e", 0.2, "b", "running")
    pace.close()
    await asyncio.sleep(0.15)

    assert [progress.message for progress in told] == ["a"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "x", [], 10**400, -1, 0.2])
async def test_progress_stays_where_it_is(pace: Pace, told: list[Progress], value: object) -> None:
    pace.take("e", 0.4, "", "running")
    pace.take("e", value, "", "running")
    pace.close()

    assert [progress.progress for progress in told] == [0.4, 0.4]


async def test_more_than_all_is_all(pace: Pace, told: list[Progress]) -> None:
    pace.take("e", 7, "", "running")

    assert told[0].progress == 1.0


async def test_texts_are_plain_short_and_unicode(pace: Pace, told: list[Progress]) -> None:
    pace.take("i" * 300, 0, Words("\ud800" + "x" * 2000), "running")
    pace.close()
    (first,) = told

    assert first.message == "?" + "x" * 999
    assert type(first.message) is str
    assert first.execution_id == "i" * 200


async def test_what_is_no_text_is_left_out(pace: Pace, told: list[Progress]) -> None:
    pace.take(5, 0, object(), "running")

    assert told == [Progress("", 0.0, "", "running")]
