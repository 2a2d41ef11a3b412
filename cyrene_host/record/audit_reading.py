"""Reads the audit back: its last records, and all of them as JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias, cast

from cyrene_host.record.audit_files import lines_from_end, snapshot
from cyrene_host.record.audit_lines import read_line

__all__ = ["ExportFormat", "export_records", "read_lines", "tail_records"]

ExportFormat: TypeAlias = Literal["jsonl", "csv"]

ENVELOPE = ("seq", "at", "instance", "kind")
COLUMNS = (
    "call_id", "tool", "plugin", "principal", "surface", "user_id", "conversation_id", "parent_call_id",
    "execution_id", "danger", "decision", "rule", "fingerprint", "success", "error_kind", "error_id", "effect",
    "attempts", "duration_ms",
)  # fmt: skip
"""Fields with a column of their own; all the others share the last one, as JSON."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def read_lines(file: Path, size_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a file up to a size, with their line breaks; the last one may lack it.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as stream:
        left = size_bytes
        for line in stream:
            if left <= 0:
                return
            yield line[:left]
            left -= len(line)


def tail_records(
    folder: Path, count: int, *, tool: str | None = None, principal: str | None = None, kind: str | None = None
) -> list[dict[str, Any]]:
    """Return the last records that fit, the last one last; what cannot be read is left out.

    Raises:
        OSError: the folder or a file cannot be read.
    """
    wanted = {name: value for name, value in (("tool", tool), ("principal", principal)) if value is not None}
    found: list[dict[str, Any]] = []
    for record in _records_from_end(folder):
        if len(found) >= count:
            break
        fields = record["fields"]
        if kind in (None, record["kind"]) and all(fields.get(name) == value for name, value in wanted.items()):
            found.append(record)
    return found[::-1]


def export_records(
    folder: Path,
    out: BinaryIO | TextIO,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    format: ExportFormat = "jsonl",  # noqa: A002 - the option's name everywhere
) -> int:
    """Write the records to a stream, the first one first, and return how many.

    JSON lines are written byte for byte, so that a whole export proves what the files prove. Of those, what cannot be
    read as a record is written too while no time is asked for; CSV leaves it out. In CSV, a text that a spreadsheet
    would run as a formula gets an apostrophe before it.

    Args:
        out: for bytes, or for text (its `newline` should be empty for CSV).
        since: the first moment that counts; without a time zone it is UTC.
        until: the first moment that counts no more.
    Raises:
        OSError: the folder or a file cannot be read, or the stream cannot be written.
    """
    first, last = _stamp(since), _stamp(until)
    write = _writer(out)
    rows = io.StringIO()
    table = csv.writer(rows)
    if format == "csv":
        table.writerow((*ENVELOPE, *COLUMNS, "more", "prev"))
    written = 0
    for file, size in snapshot(folder):
        for line in read_lines(file, size):
            record = read_line(line.removesuffix(b"\n"))
            if not _is_between(record, first, last) or (record is None and format == "csv"):
                continue
            if record is None or format == "jsonl":
                write(line if line.endswith(b"\n") else line + b"\n")
            else:
                table.writerow(_row(record))
                write(_taken(rows))
            written += record is not None
    if format == "csv" and not written:
        write(_taken(rows))  # the heads alone
    return written


def _records_from_end(folder: Path) -> Iterator[dict[str, Any]]:
    for file, size in reversed(snapshot(folder)):
        lines = lines_from_end(file, size)
        next(lines)
        yield from filter(None, map(read_line, lines))


def _stamp(moment: datetime | None) -> str | None:
    """Write a moment as the records do, so that texts compare as moments."""
    if moment is None:
        return None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def _is_between(record: dict[str, Any] | None, first: str | None, last: str | None) -> bool:
    if record is None:
        return first is None and last is None
    return (first is None or record["at"] >= first) and (last is None or record["at"] < last)


def _writer(out: BinaryIO | TextIO) -> Any:
    if isinstance(out, io.TextIOBase):
        text = cast("TextIO", out)
        return lambda part: text.write(part.decode("utf-8", errors="replace"))
    return out.write


def _row(record: dict[str, Any]) -> list[str]:
    fields = record["fields"]
    more = {name: value for name, value in fields.items() if name not in COLUMNS}
    cells = [*(record.get(name) for name in ENVELOPE), *(fields.get(name) for name in COLUMNS)]
    return [*map(_cell, cells), json.dumps(more, ensure_ascii=False) if more else "", record["prev"]]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA_STARTS) else text


def _taken(rows: io.StringIO) -> bytes:
    text = rows.getvalue()
    rows.seek(0)
    rows.truncate()
    return text.encode()
