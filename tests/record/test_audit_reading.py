"""The audit is read back from its end, and exported whole or in part."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record import audit_files
from cyrene_host.record.audit import Audit
from cyrene_host.record.audit_records import ended_fields, started_fields

Open = Callable[..., Audit]
START = 1_800_000_000
"""2027-01-15T08:00:00Z"""


@pytest.fixture
def audit(open_audit: Open) -> Audit:
    """Ten calls of two tools by two principals, a second apart, in several files."""
    times = iter(range(START, START + 1000))
    audit = open_audit(max_file_bytes=3000, clock=lambda: float(next(times)))
    for number in range(10):
        tool, who = ("a.one", "ada") if number % 2 else ("b.two", "bob")
        audit.append(
            "started",
            started_fields(
                call_id=f"c{number}", tool=tool, plugin=tool[0], principal=who, surface="cli",
                arguments={"number": number}, danger="low", decision="allow",
            ),
        )  # fmt: skip
        audit.append(
            "ended",
            ended_fields(call_id=f"c{number}", tool=tool, principal=who, success=True, attempts=1, duration_ms=1),
        )
    return audit


def ids(records: list[dict[str, Any]]) -> list[str]:
    return [record["fields"]["call_id"] for record in records]


def test_the_tail_has_the_last_records_in_order_across_files(folder: Path, audit: Audit) -> None:
    assert len([*folder.glob("*.jsonl")]) > 2
    assert [record["seq"] for record in audit.tail(7)] == [
        *range(audit.tail(1)[0]["seq"] - 6, audit.tail(1)[0]["seq"] + 1)
    ]
    assert len(audit.tail(1000)) == audit.verify().records
    assert audit.tail(0) == []


def test_the_tail_can_be_of_one_tool_principal_or_kind(audit: Audit) -> None:
    assert ids(audit.tail(3, tool="a.one")) == ["c7", "c9", "c9"]
    assert ids(audit.tail(3, principal="bob")) == ["c6", "c8", "c8"]
    assert ids(audit.tail(3, kind="started")) == ["c7", "c8", "c9"]
    assert ids(audit.tail(2, kind="ended", tool="b.two", principal="bob")) == ["c6", "c8"]
    assert audit.tail(3, tool="b.two", principal="ada") == []


def test_the_tail_reads_no_more_than_it_needs(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_files, "BLOCK_BYTES", 64)
    whole = audit.tail(1000)
    for count in range(len(whole)):
        assert audit.tail(count) == whole[len(whole) - count :]
    read: list[Path] = []
    opened = Path.open

    def watched(path: Path, *arguments: Any, **more: Any) -> Any:
        read.append(path)
        return opened(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", watched)
    audit.tail(1)
    assert len(read) == 1


def test_the_tail_leaves_out_what_cannot_be_read(folder: Path, audit: Audit) -> None:
    last = max(folder.glob("*.jsonl"))
    last.write_bytes(last.read_bytes() + b"garbage\n" + b'{"torn')
    assert ids(audit.tail(1)) == ["c9"]


def test_a_whole_export_is_what_the_files_hold(folder: Path, audit: Audit) -> None:
    out, text = io.BytesIO(), io.StringIO()
    written = audit.export(out)
    assert out.getvalue() == b"".join(file.read_bytes() for file in sorted(folder.glob("*.jsonl")))
    assert audit.export(text) == written == audit.verify().records
    assert text.getvalue().encode() == out.getvalue()


def test_a_whole_export_keeps_what_cannot_be_read_and_one_of_some_time_does_not(folder: Path, audit: Audit) -> None:
    last = max(folder.glob("*.jsonl"))
    last.write_bytes(last.read_bytes() + b'{"torn')
    out = io.BytesIO()
    assert audit.export(out) == audit.verify().records
    assert out.getvalue().endswith(b'\n{"torn\n')
    out = io.BytesIO()
    audit.export(out, since=datetime.fromtimestamp(START, UTC))
    assert out.getvalue().endswith(b'"}\n')


@pytest.mark.parametrize("zone", [UTC, None, timezone(timedelta(hours=8))])
def test_an_export_of_some_time_has_the_first_moment_and_not_the_last(audit: Audit, zone: Any) -> None:
    def moment(second: int) -> datetime:
        at = datetime.fromtimestamp(START + second, UTC)
        return at.astimezone(zone) if zone else at.replace(tzinfo=None)

    out = io.StringIO()
    assert audit.export(out, since=moment(2), until=moment(5)) == 3
    assert [line.partition(",")[0] for line in out.getvalue().splitlines()] == ['{"seq":3', '{"seq":4', '{"seq":5']


def test_csv_has_a_row_for_each_record_and_no_formula(audit: Audit) -> None:
    formula = "=HYPERLINK(1)"
    audit.append("started", {"tool": formula, "call_id": "-1", "other": "\n,", "arguments": {"a": "=1"}})
    out = io.StringIO(newline="")
    written = audit.export(out, format="csv")
    rows = [*csv.DictReader(io.StringIO(out.getvalue()))]
    assert len(rows) == written
    assert (rows[0]["seq"], rows[0]["kind"], rows[0]["tool"], rows[0]["success"]) == ("1", "started", "b.two", "")
    assert (rows[1]["success"], rows[1]["duration_ms"], rows[1]["more"]) == ("true", "1", "")
    assert (rows[-1]["tool"], rows[-1]["call_id"]) == (f"'{formula}", "'-1")
    assert rows[-1]["more"] == '{"other": "\\n,", "arguments": {"a": "=1"}}'


def test_csv_of_nothing_has_its_heads(open_audit: Open) -> None:
    out = io.StringIO(newline="")
    assert open_audit().export(out, format="csv") == 0
    assert out.getvalue().startswith("seq,at,instance,kind,call_id,tool,")
