"""A plugin's places: so many run, so many wait in order, and none is lost or given twice."""

from __future__ import annotations

import asyncio

import pytest
from anyio.lowlevel import checkpoint

from cyrene_host.call.admission import Admission, QueueFullError


async def begun(admission: Admission) -> asyncio.Task[None]:
    """A call that waits for a place."""
    waiting = asyncio.create_task(admission.wait(10))
    await checkpoint()
    return waiting


async def test_as_many_places_are_taken_as_there_are() -> None:
    admission = Admission(concurrency=2, queue_size=0)

    assert [admission.take() for _ in range(3)] == [True, True, False]
    admission.leave()
    assert [admission.take() for _ in range(2)] == [True, False]


async def test_who_waits_gets_the_place_in_order_of_arrival_and_before_any_newcomer() -> None:
    admission = Admission(concurrency=1, queue_size=2)
    admission.take()
    first, second = await begun(admission), await begun(admission)

    admission.leave()
    assert not admission.take()
    await first
    assert not second.done()

    admission.leave()
    await second
    admission.leave()
    assert admission.take()


async def test_a_full_queue_refuses_at_once() -> None:
    admission = Admission(concurrency=1, queue_size=1)
    admission.take()
    waiting = await begun(admission)

    with pytest.raises(QueueFullError):
        await admission.wait(10)

    admission.leave()
    await waiting


async def test_without_a_queue_nobody_waits() -> None:
    admission = Admission(concurrency=1, queue_size=0)
    admission.take()

    with pytest.raises(QueueFullError):
        await admission.wait(10)


async def test_who_waits_too_long_gives_up_and_leaves_the_queue() -> None:
    admission = Admission(concurrency=1, queue_size=1)
    admission.take()

    for _ in range(2):  # the second finds the queue empty again
        with pytest.raises(TimeoutError):
            await admission.wait(0.01)

    admission.leave()
    assert admission.take()


async def test_a_cancelled_call_leaves_the_queue_and_the_next_gets_the_place() -> None:
    admission = Admission(concurrency=1, queue_size=2)
    admission.take()
    first, second = await begun(admission), await begun(admission)

    first.cancel()
    admission.leave()  # before the first has noticed
    await second

    assert first.cancelled()
    admission.leave()
    assert admission.take()


async def test_a_place_that_comes_as_its_call_is_cancelled_goes_to_the_next() -> None:
    admission = Admission(concurrency=1, queue_size=2)
    admission.take()
    first, second = await begun(admission), await begun(admission)

    admission.leave()
    first.cancel()  # it has the place already, but not yet run
    await asyncio.wait([first])

    assert first.cancelled()
    await second
    admission.leave()
    assert admission.take()
