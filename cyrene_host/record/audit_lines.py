"""One record of the audit as a line of JSON: written, read back, and kept within its bounds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, TypeAlias
from zlib import crc32

from pydantic_core import from_json, to_json

from cyrene_sdk.errors import CyreneError

__all__ = [
    "BEFORE_FIRST",
    "AuditKind",
    "Head",
    "HeadError",
    "fields_json",
    "fitted",
    "instance_json",
    "line_hash",
    "make_line",
    "read_line",
]

AuditKind: TypeAlias = Literal["started", "ended", "opened", "closed", "rotated", "recovered", "approval", "plugin"]

ENVELOPE_BYTES = 1024
"""Room for what a line holds beside its fields; `instance` is cut to fit."""

MAX_FIELDS_BYTES = 65_536 - ENVELOPE_BYTES
LONG_FIELD_BYTES = 1024
CUT_START_BYTES = 512
MAX_INSTANCE_CHARS = 64

_CRC_CHARS = len(',"crc":"01234567"}')
# No control characters to JSON, yet they steer a terminal or are not seen: DEL, C1, bidi marks, separators, tags.
_STEERING = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_HEAD = re.compile(r"(?:(\d{1,18}):)?([0-9a-f]{64})", re.ASCII)


class HeadError(CyreneError):
    """A text is no head of an audit."""


class Head(NamedTuple):
    """The place of a record in the chain: its number, and the SHA-256 of its line (hex, without the line break)."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `SEQ:HASH`, as it is printed, or the hash alone (`seq` is 0 then).

        Raises:
            HeadError: the text is neither.
        """
        found = _HEAD.fullmatch(text.strip().lower())
        if found is None:
            raise HeadError(
                f"'{text[:80]}' is no head of an audit",
                where="head",
                mend="give what was printed: a number, a colon and 64 hexadecimal digits, or these digits alone",
            )
        return cls(int(found[1] or 0), found[2])


BEFORE_FIRST = Head(0, "0" * 64)
"""What the first record of all follows."""


def make_line(after: Head, *, at: str, instance: bytes, kind: str, fields: bytes) -> tuple[bytes, Head]:
    """Return the line that continues the chain, with its line break, and the head that it makes.

    The checksum at its end tells a damaged line by itself; only the chain tells a forged one.

    Args:
        after: the head before.
        at: when, in UTC, ISO 8601.
        instance: from `instance_json`.
        fields: from `fields_json`.
    """
    seq = after.seq + 1
    body = b'{"seq":%d,"at":"%s","instance":%s,"kind":"%s","fields":%s,"prev":"%s"' % (
        seq, at.encode(), instance, kind.encode(), fields, after.hash.encode(),
    )  # fmt: skip
    line = b'%s,"crc":"%08x"}' % (body, crc32(body))
    return line + b"\n", Head(seq, line_hash(line))


def instance_json(instance: str) -> bytes:
    """Return the JSON text of a process's name, cut to 64 characters."""
    return _json(instance[:MAX_INSTANCE_CHARS])


def line_hash(line: bytes) -> str:
    """Return the SHA-256 of a line without its line break, in hex."""
    return hashlib.sha256(line).hexdigest()


def read_line(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line (without its line break); None if it is not as it was written."""
    body = line[:-_CRC_CHARS]
    if line[-_CRC_CHARS:] != b',"crc":"%08x"}' % crc32(body):
        return None
    try:
        record: Any = from_json(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("fields"), dict):
        return None
    has_texts = all(isinstance(record.get(key), str) for key in ("at", "kind", "prev"))
    return record if has_texts and type(record.get("seq")) is int else None


def fields_json(fields: Mapping[str, Any]) -> bytes:
    """Return the JSON text of a record's fields, on one line and fit for one; what is too long is cut.

    Where the whole would pass 64 KiB, each field over 1 KiB gives way to `<field>_cut`, see `fitted`.
    """
    text = _json(fields)
    if len(text) > MAX_FIELDS_BYTES:
        parts = [fitted(key, value, LONG_FIELD_BYTES) for key, value in fields.items()]
        text = _json({key: value for part in parts for key, value in part.items()})
    return text if len(text) <= MAX_FIELDS_BYTES else _json(fitted("fields", fields, LONG_FIELD_BYTES))


def fitted(name: str, value: Any, max_bytes: int) -> dict[str, Any]:
    """Return `{name: value}`, or `{name_cut: {start, sha256, size_bytes}}` where the value's JSON text is too long."""
    text = _json(value)
    if len(text) <= max_bytes:
        return {name: value}
    start = text[:CUT_START_BYTES].decode("utf-8", errors="ignore")
    return {f"{name}_cut": {"start": start, "sha256": hashlib.sha256(text).hexdigest(), "size_bytes": len(text)}}


def _json(value: Any) -> bytes:
    try:
        text = to_json(value, inf_nan_mode="null")
    except (ValueError, TypeError):  # half a surrogate pair, or a value that is no JSON
        text = to_json(_writable(value), inf_nan_mode="null")
    if text.isascii() and b"\x7f" not in text:
        return text
    return _STEERING.sub(_escape, text.decode()).encode()


def _writable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_writable(str(key)): _writable(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(child) for child in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _SURROGATE.sub("\ufffd", str(value))


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"
