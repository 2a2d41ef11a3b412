"""When a plugin that was lost is started again, and when nobody tries any more."""

from __future__ import annotations

from cyrene_host.supervise.restarts import Restarts


class Clock:
    """Monotonic seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_first_restart_is_at_once_and_the_fourth_within_five_minutes_is_refused() -> None:
    clock = Clock()
    restarts = Restarts(clock)

    waits = []
    for _ in range(4):
        waits.append(restarts.next_wait_s())
        clock.now += 10

    assert waits == [0, 1, 2, None]


def test_waits_double_up_to_a_minute_while_losses_stay_apart_enough_to_go_on() -> None:
    clock = Clock()
    restarts = Restarts(clock)

    waits = []
    for _ in range(10):
        waits.append(restarts.next_wait_s())
        clock.now += 130

    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_wait_counts_from_the_restart_and_not_from_the_loss() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    for _ in range(3):
        restarts.next_wait_s()

    clock.now += 300.5
    first_is_over = restarts.next_wait_s()
    again = restarts.next_wait_s()

    assert first_is_over == 4
    assert again is None


def test_five_quiet_minutes_start_over() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    for _ in range(3):
        restarts.next_wait_s()

    clock.now += 303
    assert restarts.next_wait_s() == 0


def test_a_person_who_looked_at_it_starts_over() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    for _ in range(4):
        restarts.next_wait_s()

    restarts.forget()

    assert [restarts.next_wait_s() for _ in range(4)] == [0, 1, 2, None]


def test_the_restarts_of_the_last_five_minutes_are_counted() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    restarts.next_wait_s()
    clock.now += 200
    restarts.next_wait_s()

    assert restarts.recent == 2
    clock.now += 150
    assert restarts.recent == 1


def test_losses_by_no_fault_of_its_own_wait_alike_and_are_never_the_last() -> None:
    clock = Clock()
    restarts = Restarts(clock)

    waits = [restarts.next_wait_s(is_own=False) for _ in range(5)]
    own = [restarts.next_wait_s() for _ in range(4)]

    assert waits == [0, 1, 2, 4, 8]
    assert own == [16, 32, 60, None]
    assert restarts.recent == 3
