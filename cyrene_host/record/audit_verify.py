"""Proves of the audit what its chain can prove, names the first record that does not fit, and says what stays open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cyrene_host.record.audit_files import number_of, snapshot
from cyrene_host.record.audit_lines import BEFORE_FIRST, Head, line_hash, read_line
from cyrene_host.record.audit_reading import read_lines

__all__ = ["Fault", "FaultKind", "Verification", "verify_chain"]

FaultKind: TypeAlias = Literal[
    "changed", "torn", "missing", "swapped", "duplicate", "rewritten", "file_missing", "start_missing", "head_missing"
]

MAX_NAMED_CALLS = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing that does not fit.

    Args:
        kind: in which way.
        seq: the record's number.
        file: the file's name; empty where there is none.
        line: in the file, from 1; 0 where there is none.
        what: the sentence for people.
    """

    kind: FaultKind
    seq: int
    file: str
    line: int
    what: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"kind": self.kind, "seq": self.seq, "file": self.file, "line": self.line, "what": self.what}


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found.

    Args:
        records: how many there are that can be read.
        files: how many.
        head: the last line's; None where there is none.
        fault: the first that does not fit; None if all do.
        open_calls: call id → number of the `started` record, of calls without an `ended` one.
        lost: records that could not be written while the disk was full or so, as `recovered` records tell.
        torn: lines that a crash cut and that were set aside, as `recovered` records tell.
        given: the number of the record that the given head names; None if no head was given or it is not there.
        unproven: what this cannot prove, in sentences.
    """

    records: int
    files: int
    head: Head | None
    fault: Fault | None
    open_calls: Mapping[str, int]
    lost: int
    torn: int
    given: int | None
    unproven: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether every record fits."""
        return self.fault is None

    @property
    def after_given(self) -> int | None:
        """How many records came after the given head."""
        return None if self.given is None or self.head is None else self.head.seq - self.given

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "sound": self.is_sound,
            "records": self.records,
            "files": self.files,
            "head": str(self.head) if self.head else None,
            "fault": self.fault.to_dict() if self.fault else None,
            "open_calls": dict(self.open_calls),
            "lost": self.lost,
            "torn": self.torn,
            "given_head": self.given,
            "after_given_head": self.after_given,
            "unproven": list(self.unproven),
        }


def verify_chain(folder: Path, head: str | None = None) -> Verification:
    """Read all of the audit and check each record against the one before it.

    Args:
        folder: of the audit; it may be written meanwhile.
        head: of a record that must be there, as it was printed when the host stopped or a file was full.
    Raises:
        HeadError: the text is no head.
        OSError: the folder or a file cannot be read.
    """
    given = Head.parse(head) if head is not None else None
    chain, facts = _Chain(), _Facts(given)
    files = snapshot(folder)
    for file, size in files:
        chain.begin_file(file)
        for number, line in enumerate(read_lines(file, size), 1):
            whole = line.removesuffix(b"\n")
            record = read_line(whole) if whole != line else None
            digest = line_hash(whole)
            facts.count(record, digest)
            chain.follow(_Line(file.name, number, record, digest, is_torn=whole == line))
    return facts.told(chain.fault, len(files))


@dataclass(frozen=True, slots=True)
class _Line:
    file: str
    number: int
    record: dict[str, Any] | None
    digest: str
    is_torn: bool

    @property
    def place(self) -> str:
        return f"{self.file} line {self.number}"


class _Chain:
    """Follows the chain up to the first fault, and looks on for what explains it."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self._end = BEFORE_FIRST
        self._end_place = ("", 0)
        self._file_number = 0
        self._gap = ""
        self._suspect: _Line | None = None

    def begin_file(self, file: Path) -> None:
        number = number_of(file)
        first, last = self._file_number + 1, number - 1
        if first <= last:
            self._gap = f"file {first}" if first == last else f"files {first} to {last}"
        self._file_number = number

    def follow(self, line: _Line) -> None:
        if self.fault is None:
            self.fault = self._fault_of(line)
            if self.fault is None:
                self._end, self._end_place, self._gap = (
                    Head(self._end.seq + 1, line.digest),
                    (line.file, line.number),
                    "",
                )
            else:
                self._suspect = line
        elif self.fault.kind in ("missing", "swapped", "file_missing", "start_missing"):
            self._look_for_moved(line)
        elif self.fault.kind == "rewritten":
            self._tell_which(line)

    def _fault_of(self, line: _Line) -> Fault | None:
        seq = self._end.seq + 1
        if line.is_torn:
            return _fault("torn", seq, line, f"record {seq} was cut off: {line.place} has no end")
        if line.record is None:
            return _fault("changed", seq, line, f"record {seq} was changed: {line.place} is not as it was written")
        found: int = line.record["seq"]
        if found < seq:
            what = f"record {found} is there twice, or has a wrong number: {line.place} should be record {seq}"
            return _fault("duplicate", found, line, what)
        if found > seq:
            return self._missing(seq, found, line)
        if line.record["prev"] == self._end.hash:
            return None
        if seq == 1:
            return _fault("rewritten", 1, line, f"record 1 was written anew: {line.place} does not begin a chain")
        file, number = self._end_place
        what = f"record {seq - 1} ({file} line {number}) or {seq} ({line.place}) was written anew: they do not fit"
        return Fault("rewritten", seq - 1, file, number, what)

    def _missing(self, seq: int, found: int, line: _Line) -> Fault:
        those = f"record {seq} is" if found == seq + 1 else f"records {seq} to {found - 1} are"
        if self._gap and seq == 1:
            return _fault(
                "start_missing", 1, line, f"{those} missing, with {self._gap}: the log begins with {line.place}"
            )
        if self._gap:
            return _fault("file_missing", seq, line, f"{those} missing, with {self._gap}, before {line.place}")
        return _fault("missing", seq, line, f"{those} missing: {line.place} is record {found}")

    def _look_for_moved(self, line: _Line) -> None:
        """What seemed missing stands elsewhere; or what stood in its place is a copy."""
        fault, suspect = self.fault, self._suspect
        if fault is None or suspect is None or suspect.record is None or line.record is None:
            return
        found, there = line.record["seq"], suspect.record["seq"]
        if found == self._end.seq + 1:
            what = (
                f"record {found} is in another place: it stands in {line.place}, and record {there} in {suspect.place}"
            )
            self.fault = _fault("swapped", found, line, what)
        elif found == there:
            what = f"record {there} is there twice: in {suspect.place}, and in {line.place}"
            self.fault = _fault("duplicate", there, suspect, what)

    def _tell_which(self, line: _Line) -> None:
        """The one of two records that fits its other neighbour was not written anew."""
        fault, suspect = self.fault, self._suspect
        self._suspect = None
        if fault is None or suspect is None or suspect.record is None or line.record is None:
            return
        second: int = suspect.record["seq"]
        if line.record["seq"] != second + 1 or second == 1:
            return
        if line.record["prev"] == suspect.digest:
            file, number = self._end_place
            place = f"{file} line {number}"
            self.fault = replace(
                fault, what=f"record {second - 1} was written anew: {place} does not fit {suspect.place}"
            )
        else:
            what = f"record {second} was written anew: {suspect.place} fits neither the record before it nor the next"
            self.fault = _fault("rewritten", second, suspect, what)


class _Facts:
    """Counts what the records tell, whether they fit or not."""

    def __init__(self, given: Head | None) -> None:
        self._given = given
        self._given_seq: int | None = None
        self._records = 0
        self._last: Head | None = None
        self._open: dict[str, int] = {}
        self._lost = 0
        self._torn = 0

    def count(self, record: dict[str, Any] | None, digest: str) -> None:
        seq: int = record["seq"] if record else (self._last.seq + 1 if self._last else 1)
        self._last = Head(seq, digest)
        if self._given and self._given.hash == digest:
            self._given_seq = seq
        if record is None:
            return
        self._records += 1
        kind, fields = record["kind"], record["fields"]
        if kind == "started":
            self._open[str(fields.get("call_id", ""))] = seq
        elif kind == "ended":
            self._open.pop(str(fields.get("call_id", "")), None)
        elif kind == "recovered":
            lost = fields.get("lost")
            self._lost += lost if isinstance(lost, int) else 0
            self._torn += "torn_bytes" in fields

    def told(self, fault: Fault | None, files: int) -> Verification:
        beheaded = self._head_fault()
        if fault is not None and beheaded is not None:
            fault = replace(fault, what=f"{fault.what}; the record whose head was given is not there either")
        return Verification(
            records=self._records,
            files=files,
            head=self._last,
            fault=fault or beheaded,
            open_calls=self._open,
            lost=self._lost,
            torn=self._torn,
            given=self._given_seq,
            unproven=tuple(self._unproven()),
        )

    def _head_fault(self) -> Fault | None:
        if self._given is None or self._given_seq is not None:
            return None
        last = self._last.seq if self._last else 0
        if self._given.seq > last:
            what = f"record {self._given.seq}, whose head was given, is missing: the log ends with record {last}"
        else:
            what = "the record whose head was given is not there: the end was cut off, or the log was written anew"
        return Fault("head_missing", self._given.seq, "", 0, what)

    def _unproven(self) -> list[str]:
        last = self._last.seq if self._last else 0
        elsewhere = "only a head that was printed earlier, and kept elsewhere, shows that (--head)"
        if self._given is None and self._last is None:
            return [f"whether there were any: {elsewhere}"]
        if self._given is None:
            return [
                f"whether more records came after record {last} and were cut off",
                f"whether the whole log was written anew: {elsewhere}",
            ]
        if self._given_seq is None:
            return []
        return [
            f"whether more records came after record {last} and were cut off, or those after the given head rewritten"
        ]


def _fault(kind: FaultKind, seq: int, line: _Line, what: str) -> Fault:
    return Fault(kind, seq, line.file, line.number, what)
