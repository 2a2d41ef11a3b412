"""`cyrene audit`: shows, checks and exports the log of all calls, straight from the state directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO, cast, get_args

from cyrene_host.catalog.faults import nearest
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.cli.reading import read_settings_alone
from cyrene_host.cli.screen import Screen
from cyrene_host.record.audit import Audit
from cyrene_host.record.audit_lines import AuditKind
from cyrene_host.record.audit_reading import ExportFormat
from cyrene_host.record.audit_verify import Verification
from cyrene_sdk.errors import CyreneError

__all__ = ["export_audit", "show_tail", "verify_audit"]

MAX_NAMED_CALLS = 10
MAX_TEXT_CHARS = 100


def show_tail(
    choices: Choices, count: int, *, tool: str | None = None, principal: str | None = None, kind: str | None = None
) -> int:
    """Show the last records, the last one last.

    Raises:
        WrongUseError: there is no such kind of record.
        AuditReadError: a file cannot be read.
    """
    if kind is not None:
        _one_of(kind, get_args(AuditKind), "--kind")
    records = _audit(choices).tail(count, tool=tool, principal=principal, kind=kind)
    if choices.as_json:
        choices.screen.json(records)
        return 0
    choices.screen.table(("record", "at", "kind", "tool", "principal", "what"), map(_row, records))
    if not records:
        choices.screen.say("there are no such records" if tool or principal or kind else "there are no records yet")
    return 0


def verify_audit(choices: Choices, head: str | None) -> int:
    """Check the chain and say what is proven and what is not; 1 if a record does not fit.

    Raises:
        HeadError: the text is no head.
        AuditReadError: a file cannot be read.
    """
    found = _audit(choices).verify(head)
    if choices.as_json:
        choices.screen.json(found.to_dict())
    else:
        choices.screen.answer("\n".join(_told(found)))
    return 0 if found.is_sound else 1


def export_audit(choices: Choices, target: str, *, since: str | None, until: str | None, form: str) -> int:
    """Write the records into a file that is not there yet, or to stdout (`-`).

    Raises:
        WrongUseError: the file exists, or a time or format is none.
        CyreneError: the audit cannot be read, or the file not be written.
    """
    _one_of(form, get_args(ExportFormat), "--format")
    first, last = _moment(since, "--since"), _moment(until, "--until")
    audit, written = _audit(choices), 0
    try:
        with _target(choices.screen, target) as out:
            written = audit.export(out, since=first, until=last, format=cast("ExportFormat", form))
    except BrokenPipeError:
        raise
    except FileExistsError as error:
        raise WrongUseError(f"'{target}' exists", where="command line, FILE", mend="name a new file") from error
    except OSError as error:
        what = f"the audit cannot be exported: {(error.strerror or str(error)).lower()}"
        where = str(error.filename or target)
        raise CyreneError(what, where=where, mend="make it readable, or name another FILE") from error
    if target != "-" and choices.as_json:
        choices.screen.json({"file": target, "records": written})
    else:
        choices.screen.say(f"{_counted(written, 'record')} written")
    return 0


class _ScreenSink:
    """Takes bytes for the screen, which makes them fit for a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __enter__(self) -> BinaryIO:
        return cast("BinaryIO", self)

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, part: bytes) -> None:
        self._screen.data(part.decode("utf-8", errors="replace"))


def _target(screen: Screen, target: str) -> Any:
    if target == "-":
        return _ScreenSink(screen)
    return os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _audit(choices: Choices) -> Audit:
    return Audit(read_settings_alone(choices).state_folder() / "audit", instance="cli")


def _one_of(word: str, known: Sequence[str], option: str) -> None:
    if word in known:
        return
    near = nearest(word, known)
    mend = f"did you mean '{near}'?" if near else f"there are: {', '.join(known)}"
    raise WrongUseError(f"'{word[:80]}' is not known", where=f"command line, {option}", mend=mend)


def _moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        mend = "write 2026-11-30, or 2026-11-30T15:00:00+08:00; without a zone it is UTC"
        raise WrongUseError(f"'{text[:80]}' is no time", where=f"command line, {option}", mend=mend) from error


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    fields = record["fields"]
    at = record["at"][:19].replace("T", " ")
    return str(record["seq"]), at, record["kind"], _text(fields, "tool"), _text(fields, "principal"), _what(record)


def _what(record: dict[str, Any]) -> str:
    fields = record["fields"]
    if record["kind"] == "started":
        text = " ".join(filter(None, (_text(fields, "danger"), _text(fields, "decision"), _text(fields, "rule"))))
    elif record["kind"] == "ended":
        text = "success" if fields.get("success") is True else _text(fields, "error_kind") or "failure"
        if isinstance(fields.get("duration_ms"), int | float):
            text += f", {fields['duration_ms']:.1f} ms"
    else:
        text = ", ".join(f"{name}: {_text(fields, name)}" for name in fields)
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _told(found: Verification) -> Iterator[str]:
    if found.fault is not None:
        yield f"not sound: {found.fault.what}"
        yield f"read: {_counted(found.records, 'record')} in {_counted(found.files, 'file')}"
    elif found.head is None:
        yield "sound: there are no records"
    else:
        yield f"sound: {_counted(found.records, 'record')} in {_counted(found.files, 'file')}, each fits the one before"
    if found.head is not None:
        yield f"head: {found.head}"
    if found.given is not None:
        yield f"given head: it is record {found.given}, and {_counted(found.after_given or 0, 'record')} came after it"
    if found.open_calls:
        named = [f"{call} (record {seq})" for call, seq in found.open_calls.items()]
        more = f" and {len(named) - MAX_NAMED_CALLS} more" if len(named) > MAX_NAMED_CALLS else ""
        calls = f"{_counted(len(named), 'call')} without an end"
        yield f"{calls}, still running or ended by a crash: {', '.join(named[:MAX_NAMED_CALLS])}{more}"
    if found.torn:
        yield f"set aside: {_counted(found.torn, 'line')} that a crash had cut, in files that end with .torn"
    if found.lost:
        yield f"lost: {_counted(found.lost, 'record')} could not be written at the time"
    for sentence in found.unproven:
        yield f"not proven: {sentence}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
