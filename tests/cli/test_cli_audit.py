"""`cyrene audit`: shows, checks and exports the log straight from the state directory, whatever the plugins are."""

from __future__ import annotations

import csv
import io
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record.audit import Audit
from cyrene_host.record.audit_records import ended_fields, started_fields

Run = Callable[..., Any]

START = 1_800_000_000


@pytest.fixture
def audit(workshop: Any) -> Audit:
    """The audit of the workshop's state directory, with two calls; the second one did not end."""
    times = iter(range(START, START + 1000))
    audit = Audit(workshop.folder / "state" / "audit", instance="host-1", clock=lambda: float(next(times)))
    audit.append("opened", {"version": "0.1.0"})
    for number, tool in enumerate(("hello.hello", "files.erase")):
        audit.append(
            "started",
            started_fields(
                call_id=f"call_{number}", tool=tool, plugin=tool.partition(".")[0], principal="ada", surface="http",
                arguments={}, danger="high", decision="denied", rule="danger.high",
            ),
        )  # fmt: skip
    audit.append(
        "ended",
        ended_fields(
            call_id="call_0", tool="hello.hello", principal="ada", success=False, attempts=1, duration_ms=12.34,
            error_kind="timeout",
        ),
    )  # fmt: skip
    return audit


def test_the_tail_is_a_table_for_people(audit: Audit, cyrene: Run) -> None:
    ran = cyrene("audit", "tail")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "RECORD  AT                   KIND     TOOL         PRINCIPAL  WHAT\n"
        "1       2027-01-15 08:00:00  opened                           version: 0.1.0\n"
        "2       2027-01-15 08:00:01  started  hello.hello  ada        high denied danger.high\n"
        "3       2027-01-15 08:00:02  started  files.erase  ada        high denied danger.high\n"
        "4       2027-01-15 08:00:03  ended    hello.hello  ada        timeout, 12.3 ms\n"
    )


def test_the_tail_can_be_asked_for_less(audit: Audit, cyrene: Run) -> None:
    def told(*options: str) -> list[int]:
        return [record["seq"] for record in cyrene("audit", "tail", "--json", *options).document]

    assert told("-n", "2") == [3, 4]
    assert told("--tool", "hello.hello") == [2, 4]
    assert told("--principal", "ada", "-n", "1") == [4]
    assert told("--kind", "started") == [2, 3]
    none = cyrene("audit", "tail", "--tool", "no.such")
    assert (none.code, none.err) == (0, "there are no such records\n")


def test_hostile_text_in_a_record_does_not_steer_the_terminal(audit: Audit, cyrene: Run) -> None:
    audit.append("started", {"tool": "\x1b[2J\nforged \u202e row", "call_id": "c", "danger": ["low"]})
    row = cyrene("audit", "tail", "-n", "1").out.splitlines()[1]
    assert "forged row" in " ".join(row.split())
    assert row.isprintable()
    assert "\x1b" not in cyrene("audit", "tail", "-n", "1", "--json").out


def test_a_kind_that_there_is_not_is_wrong_use(audit: Audit, cyrene: Run) -> None:
    ran = cyrene("audit", "tail", "--kind", "strated")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "'strated' is not known\n  where: command line, --kind\n  mend:  did you mean 'started'?\n"


def test_a_sound_log_is_told_with_what_is_not_proven(audit: Audit, cyrene: Run) -> None:
    ran = cyrene("audit", "verify")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "sound: 4 records in 1 file, each fits the one before\n"
        f"head: {audit.head}\n"
        "1 call without an end, still running or ended by a crash: call_1 (record 3)\n"
        "not proven: whether more records came after record 4 and were cut off\n"
        "not proven: whether the whole log was written anew: only a head that was printed earlier, and kept elsewhere,"
        " shows that (--head)\n"
    )


def test_a_head_tells_whether_its_record_is_there(audit: Audit, cyrene: Run) -> None:
    head = str(audit.head)
    audit.append_or_count("plugin", {})
    ran = cyrene("audit", "verify", "--head", head)
    assert ran.code == 0
    assert "\ngiven head: it is record 4, and 1 record came after it\n" in ran.out
    other = cyrene("audit", "verify", "--head", "9:" + "0" * 64)
    assert other.code == 1
    assert other.out.startswith(
        "not sound: record 9, whose head was given, is missing: the log ends with record 5\n"
    )  # fmt: skip
    wrong = cyrene("audit", "verify", "--head", "nonsense")
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "'nonsense' is no head of an audit")


def test_a_changed_record_is_named_and_ends_with_1(audit: Audit, workshop: Any, cyrene: Run) -> None:
    file = workshop.folder / "state" / "audit" / "audit-000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b"files.erase", b"files.erasf"))
    ran = cyrene("audit", "verify")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "not sound: record 3 was changed: audit-000001.jsonl line 3 is not as it was written",
        "read: 3 records in 1 file",
    ]
    told = cyrene("audit", "verify", "--json")
    assert (told.code, told.document["sound"]) == (1, False)
    assert told.document["fault"] == {
        "kind": "changed",
        "seq": 3,
        "file": "audit-000001.jsonl",
        "line": 3,
        "what": "record 3 was changed: audit-000001.jsonl line 3 is not as it was written",
    }


def test_what_was_lost_and_set_aside_is_told(audit: Audit, workshop: Any, cyrene: Run) -> None:
    folder = workshop.folder / "state" / "audit"
    folder.rename(folder.with_name("away"))
    for _ in range(2):
        audit.append_or_count("plugin", {})
    folder.with_name("away").rename(folder)
    with (folder / "audit-000001.jsonl").open("ab") as file:
        file.write(b"torn")
    audit.append_or_count("plugin", {})
    ran = cyrene("audit", "verify")
    assert ran.code == 0
    assert "\nset aside: 1 line that a crash had cut, in files that end with .torn\n" in ran.out
    assert "\nlost: 2 records could not be written at the time\n" in ran.out


def test_many_calls_without_an_end_are_counted_and_the_first_named(audit: Audit, cyrene: Run) -> None:
    for number in range(30):
        audit.append("started", {"call_id": f"more_{number}"})
    told = next(line for line in cyrene("audit", "verify").out.splitlines() if "without an end" in line)
    assert told.startswith("31 calls without an end")
    assert told.endswith("more_8 (record 13) and 21 more")


def test_an_export_to_stdout_is_what_the_file_holds(audit: Audit, workshop: Any, cyrene: Run) -> None:
    ran = cyrene("audit", "export")
    assert (ran.code, ran.err) == (0, "4 records written\n")
    assert ran.out == (workshop.folder / "state" / "audit" / "audit-000001.jsonl").read_text()
    some = cyrene("audit", "export", "-", "--since", "2027-01-15T08:00:01Z", "--until", "2027-01-15T16:00:03+08:00")
    assert [json.loads(line)["seq"] for line in some.out.splitlines()] == [2, 3]


def test_an_export_to_a_file_is_for_its_owner_and_replaces_nothing(audit: Audit, cyrene: Run) -> None:
    ran = cyrene("audit", "export", "out.csv", "--format", "csv")
    assert (ran.code, ran.out, ran.err) == (0, "", "4 records written\n")
    assert stat.S_IMODE(Path("out.csv").stat().st_mode) == 0o600
    assert [row["kind"] for row in csv.DictReader(io.StringIO(Path("out.csv").read_text()))] == [
        "opened",
        "started",
        "started",
        "ended",
    ]
    again = cyrene("audit", "export", "out.csv")
    assert (again.code, again.out) == (2, "")
    assert again.err == "'out.csv' exists\n  where: command line, FILE\n  mend:  name a new file\n"
    told = cyrene("audit", "export", "other.jsonl", "--json")
    assert told.document == {"file": "other.jsonl", "records": 4}
    nowhere = cyrene("audit", "export", "no/such/folder")
    assert nowhere.code == 2
    assert nowhere.err == (
        "the audit cannot be exported: no such file or directory\n"
        "  where: no/such/folder\n"
        "  mend:  make it readable, or name another FILE\n"
    )


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--since", "yesterday", "'yesterday' is no time"),
        ("--until", "", "'' is no time"),
        ("--format", "xml", "'xml' is not known"),
    ],
)
def test_a_time_or_format_that_is_none_is_wrong_use(
    audit: Audit, cyrene: Run, option: str, value: str, told: str
) -> None:
    ran = cyrene("audit", "export", option, value)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[:2] == [told, f"  where: command line, {option}"]


def test_without_a_log_there_is_nothing_and_nothing_is_made(workshop: Any, cyrene: Run) -> None:
    assert cyrene("audit", "tail").err == "there are no records yet\n"
    assert cyrene("audit", "verify").out == (
        "sound: there are no records\n"
        "not proven: whether there were any: only a head that was printed earlier, and kept elsewhere,"
        " shows that (--head)\n"
    )
    assert cyrene("audit", "export").out == ""
    assert cyrene("audit").out.startswith("Usage: cyrene audit")
    assert not (workshop.folder / "state").exists()


def test_a_log_can_be_read_though_plugins_json_cannot(audit: Audit, workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "plugins.json").write_text("{ broken")
    assert cyrene("audit", "verify").code == 0


def test_a_folder_that_cannot_be_read_is_told(workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "state").mkdir()
    (workshop.folder / "state" / "audit").write_text("in the way")
    ran = cyrene("audit", "verify")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[0] == "the audit cannot be read: not a directory"
    assert cyrene("audit", "tail").code == cyrene("audit", "export").code == 2
