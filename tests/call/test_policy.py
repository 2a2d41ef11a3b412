"""The danger of a call is the higher of two words, unless the operator trusts the plugin in full."""

from __future__ import annotations

import pytest

from cyrene_host.call.policy import effective_danger
from cyrene_sdk import DangerLevel

LEVELS: dict[str, DangerLevel | None] = {"-": None, **{level.value: level for level in DangerLevel}}

# declared, operator's: effective where the plugin is listed / where it is trusted in full; `undeclared` is medium.
TABLE = """
-       -       medium medium
-       low     medium low
-       medium  medium medium
-       high    high   high
low     -       low    low
low     low     low    low
low     medium  medium medium
low     high    high   high
medium  -       medium medium
medium  low     medium low
medium  medium  medium medium
medium  high    high   high
high    -       high   high
high    low     high   low
high    medium  high   medium
high    high    high   high
"""
ROWS = [line.split() for line in TABLE.split("\n")[1:-1]]


@pytest.mark.parametrize(("declared", "operator", "listed", "full"), ROWS)
def test_the_effective_danger_is_what_the_table_says(declared: str, operator: str, listed: str, full: str) -> None:
    for trusted, expected in ((False, listed), (True, full)):
        effective = effective_danger(LEVELS[declared], LEVELS[operator], undeclared=DangerLevel.MEDIUM, trusted=trusted)
        assert effective is LEVELS[expected]


def test_the_table_has_every_pair_once() -> None:
    assert len({(row[0], row[1]) for row in ROWS}) == len(ROWS) == 16


@pytest.mark.parametrize("undeclared", DangerLevel)
def test_a_tool_that_declares_nothing_counts_as_the_operator_set(undeclared: DangerLevel) -> None:
    assert effective_danger(None, None, undeclared=undeclared, trusted=False) is undeclared
