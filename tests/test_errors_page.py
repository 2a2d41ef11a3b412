"""docs/errors.md: a heading for each kind, and a table that says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyrene_host.errors import TRAITS
from cyrene_sdk import ErrorKind

PAGE = (Path(__file__).parent.parent / "docs" / "errors.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| \[`(\w+)`\]\(#(\w+)\) \| [^|]+ \| (\d+)[^|]* \| (\S+?),?(?: [^|]*)? \| .*?(\d+) \|$", PAGE, re.MULTILINE
)


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_has_a_heading(kind: ErrorKind) -> None:
    assert f"\n## {kind}\n" in PAGE


def test_the_table_says_what_each_kind_is_on_every_surface() -> None:
    told = {kind: (int(http), mcp.replace("−", "-"), int(code)) for kind, _, http, mcp, code in ROWS}

    assert told == {kind.value: (traits.http, traits.mcp, traits.exit) for kind, traits in TRAITS.items()}
    assert [link for _, link, *_ in ROWS] == [kind.value for kind in ErrorKind]
