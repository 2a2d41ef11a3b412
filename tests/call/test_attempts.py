"""A failed attempt is followed by another exactly where the design allows it."""

from __future__ import annotations

import itertools

import pytest

from cyrene_host.call.attempts import backoff_s, may_have_acted, may_retry
from cyrene_sdk import DangerLevel, ErrorKind, ToolDefinition
from cyrene_sdk._worker.faults import Fault, Retry

# What the design says, as (fault, idempotent, read_only) without danger high; a * is any value.
NOT_HIGH = """
never      * *         no
transient  * *         yes
unplanned  unset *     yes
unplanned  true *      yes
unplanned  false *     no
timeout    unset false no
timeout    unset true  yes
timeout    true *      yes
timeout    false false no
timeout    false true  yes
lost       unset false no
lost       unset true  yes
lost       true *      yes
lost       false false no
lost       false true  yes
"""
HIGH = """
never      * *         no
transient  unset *     no
transient  true *      yes
transient  false *     no
unplanned  unset *     no
unplanned  true *      yes
unplanned  false *     no
timeout    unset *     no
timeout    true *      yes
timeout    false *     no
lost       unset *     no
lost       true *      yes
lost       false *     no
"""
FAULTS: list[Retry] = ["never", "transient", "unplanned", "timeout", "lost"]
IDEMPOTENT = {"unset": None, "true": True, "false": False}
READ_ONLY = {"true": True, "false": False}


def cells(table: str) -> dict[tuple[str, str, str], bool]:
    """Read a table; each cell has to be in exactly one of its lines."""
    found: dict[tuple[str, str, str], bool] = {}
    for line in table.split("\n")[1:-1]:
        fault, idempotent, read_only, answer = line.split()
        for cell in itertools.product(
            [fault],
            IDEMPOTENT if idempotent == "*" else [idempotent],
            READ_ONLY if read_only == "*" else [read_only],
        ):
            assert cell not in found
            found[cell] = answer == "yes"
    assert len(found) == len(FAULTS) * len(IDEMPOTENT) * len(READ_ONLY)
    return found


CELLS = [
    (fault, idempotent, read_only, danger, answer)
    for danger, table in ((DangerLevel.LOW, NOT_HIGH), (DangerLevel.MEDIUM, NOT_HIGH), (DangerLevel.HIGH, HIGH))
    for (fault, idempotent, read_only), answer in cells(table).items()
]


@pytest.mark.parametrize(("fault", "idempotent", "read_only", "danger", "answer"), CELLS)
def test_another_attempt_is_made_exactly_where_the_table_says_so(
    fault: Retry, idempotent: str, read_only: str, danger: DangerLevel, answer: bool
) -> None:
    definition = ToolDefinition(
        name="t", max_retries=3, idempotent=IDEMPOTENT[idempotent], read_only=READ_ONLY[read_only]
    )

    assert may_retry(Fault(ErrorKind.TOOL_ERROR, "x", retry=fault), definition, danger) is answer


def test_the_wait_doubles_from_a_tenth_of_a_second_to_five() -> None:
    assert [backoff_s(attempt, 0.0) for attempt in range(1, 9)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_jitter_takes_away_up_to_half_of_the_wait() -> None:
    assert backoff_s(1, 0.5) == pytest.approx(0.075)
    assert backoff_s(3, 1.0) == pytest.approx(0.2)


def test_a_great_number_of_attempts_waits_no_longer() -> None:
    assert backoff_s(1000, 0.0) == 5.0


@pytest.mark.parametrize(
    ("fault", "acted"),
    [
        (Fault(ErrorKind.TOOL_ERROR, "x"), True),
        (Fault(ErrorKind.TOOL_ERROR, "x", retry="unplanned"), True),
        (Fault(ErrorKind.TOOL_ERROR, "x", retry="transient"), False),
        (Fault(ErrorKind.TIMEOUT, "x", retry="timeout"), True),
        (Fault(ErrorKind.WORKER_CRASHED, "x", retry="lost"), True),
        (Fault(ErrorKind.OUTPUT_INVALID, "x"), True),
        (Fault(ErrorKind.INVALID_ARGUMENTS, "x", reason="tool"), False),
        (Fault(ErrorKind.OVERLOADED, "x"), False),
        (Fault(ErrorKind.UNKNOWN_TOOL, "x"), False),
    ],
)
def test_a_fault_says_whether_the_tool_may_have_acted(fault: Fault, acted: bool) -> None:
    assert may_have_acted(fault) is acted
