"""The audit is written whole or not at all, by many processes, through crashes, full disks and lost folders."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record import audit_files
from cyrene_host.record.audit import Audit, AuditReadError, AuditUnavailableError
from cyrene_host.record.audit_files import file_name
from cyrene_host.record.audit_lines import Head
from cyrene_host.record.audit_records import ended_fields, started_fields

Open = Callable[..., Audit]


def lines_of(folder: Path) -> list[bytes]:
    return [line for file in sorted(folder.glob("audit-*.jsonl")) for line in file.read_bytes().splitlines()]


def records_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(folder)]


def in_a_process(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments], stdout=subprocess.PIPE, text=True
    )


def test_records_are_numbered_dated_and_chained_by_the_hash_of_the_line_before(folder: Path, open_audit: Open) -> None:
    times = itertools.count(1_800_000_000.25)
    audit = open_audit(instance="host-1", clock=lambda: next(times))
    heads = [audit.append("opened", {"version": "1"}), audit.append("plugin", {"plugin": "hello"})]

    first, second = lines_of(folder)
    assert json.loads(first) | {"crc": ""} == {
        "seq": 1,
        "at": "2027-01-15T08:00:00.250000Z",
        "instance": "host-1",
        "kind": "opened",
        "fields": {"version": "1"},
        "prev": "0" * 64,
        "crc": "",
    }
    assert json.loads(second)["prev"] == hashlib.sha256(first).hexdigest()
    assert heads == [Head(1, hashlib.sha256(first).hexdigest()), Head(2, hashlib.sha256(second).hexdigest())]
    assert audit.head == heads[-1]
    assert open_audit().head == heads[-1]


def test_the_folder_and_its_files_are_for_their_owner_alone(folder: Path, open_audit: Open) -> None:
    folder.mkdir(parents=True, mode=0o755)
    open_audit().append("opened", {})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_an_audit_that_is_only_read_makes_nothing(folder: Path, open_audit: Open) -> None:
    audit = open_audit()
    assert (audit.head, audit.tail(3), audit.verify().records, audit.close()) == (None, [], 0, None)
    assert not folder.exists()


def test_closing_says_so_and_returns_the_head(folder: Path, open_audit: Open) -> None:
    audit = open_audit()
    audit.append("opened", {})
    head = audit.close()
    assert records_of(folder)[-1]["kind"] == "closed"
    assert head == Head(2, hashlib.sha256(lines_of(folder)[-1]).hexdigest())


def test_a_full_file_is_followed_by_the_next_and_the_chain_goes_on(
    folder: Path, open_audit: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="cyrene.audit")
    audit = open_audit(max_file_bytes=4000)
    for number in range(40):
        audit.append("plugin", {"number": number})
    files = sorted(folder.glob("audit-*.jsonl"))
    assert len(files) > 2
    assert all(file.stat().st_size <= 4000 for file in files)
    ends = [file.read_bytes().splitlines()[-1] for file in files[:-1]]
    assert [json.loads(end)["fields"] for end in ends] == [{"next_file": file.name} for file in files[1:]]
    assert re.findall(r"its head: (\S+)", caplog.text) == [
        f"{json.loads(end)['seq']}:{hashlib.sha256(end).hexdigest()}" for end in ends
    ]
    assert [record["seq"] for record in records_of(folder)] == [*range(1, 41 + len(ends))]
    assert open_audit().verify().is_sound


def test_whoever_ends_between_two_files_is_followed_by_one_that_begins_the_next(folder: Path, open_audit: Open) -> None:
    audit = open_audit(max_file_bytes=2000)
    while not (folder / file_name(2)).exists():
        audit.append("plugin", {})
    (folder / file_name(2)).unlink()
    other = open_audit(max_file_bytes=2000)
    other.append("opened", {})
    assert json.loads((folder / file_name(2)).read_bytes())["kind"] == "opened"
    assert [record["kind"] for record in records_of(folder)].count("rotated") == 1
    assert other.verify().is_sound


WRITER = """
    import sys
    from pathlib import Path
    from cyrene_host.record.audit import Audit

    audit = Audit(Path(sys.argv[1]), instance=sys.argv[2], max_file_bytes=20_000)
    for number in range(200):
        audit.append("plugin", {"number": number})
"""


def test_four_processes_write_one_sound_chain_over_many_files(
    folder: Path, open_audit: Open, slow: Callable[[float], float]
) -> None:
    writers = [in_a_process(WRITER, str(folder), name) for name in "abcd"]
    for writer in writers:
        writer.communicate(timeout=slow(30))
    assert [writer.returncode for writer in writers] == [0] * 4

    written = [record for record in records_of(folder) if record["kind"] == "plugin"]
    for name in "abcd":
        numbers = [record["fields"]["number"] for record in written if record["instance"] == name]
        assert numbers == [*range(200)]
    found = open_audit().verify()
    assert (found.fault, found.files > 5, found.torn) == (None, True, 0)


def test_two_that_are_open_side_by_side_continue_each_others_chain(folder: Path, open_audit: Open) -> None:
    one, other = open_audit(max_file_bytes=3000), open_audit(max_file_bytes=3000)
    for _ in range(20):
        one.append("plugin", {})
        other.append("plugin", {})
    assert one.verify().is_sound
    assert len(list(folder.glob("*.jsonl"))) > 2


KILLED = """
    import sys
    from pathlib import Path
    from cyrene_host.record.audit import Audit

    audit = Audit(Path(sys.argv[1]), instance="killed", max_file_bytes=200_000)
    while True:
        head = audit.append("plugin", {"text": "x" * 30_000})
        print(head, flush=True)
"""


def test_twenty_kills_in_the_middle_of_writing_lose_nothing_that_was_acknowledged(
    folder: Path, open_audit: Open, slow: Callable[[float], float]
) -> None:
    acknowledged = set()
    for turn in range(20):
        with in_a_process(KILLED, str(folder)) as writer:
            assert writer.stdout is not None
            heads = [writer.stdout.readline().strip() for _ in range(1 + turn % 4)]
            writer.send_signal(signal.SIGKILL)
            heads += writer.stdout.read().split()
            writer.wait(slow(10))
        acknowledged.update(heads[:-1])  # the last may have been cut itself

    audit = open_audit()
    audit.append("opened", {})
    assert audit.verify().fault is None
    there = {f"{json.loads(line)['seq']}:{hashlib.sha256(line).hexdigest()}" for line in lines_of(folder)}
    assert acknowledged <= there
    assert len(acknowledged) >= 20


@pytest.mark.parametrize("kept", [0, 1, 100])
def test_a_torn_last_line_is_set_aside_and_told(folder: Path, open_audit: Open, kept: int) -> None:
    first = open_audit()
    first.append("opened", {})
    first.append("plugin", {"plugin": "hello"})
    file = folder / file_name(1)
    whole, torn = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(whole + torn[:kept])

    audit = open_audit()
    audit.append("opened", {"again": True})
    kinds = [record["kind"] for record in records_of(folder)]
    if kept:
        assert kinds == ["opened", "recovered", "opened"]
        aside = folder / "audit-000001.jsonl.torn"
        assert records_of(folder)[1]["fields"] == {"torn_bytes": kept, "torn_file": aside.name, "lost": 0}
        assert aside.read_bytes() == torn[:kept] + b"\n"
    else:
        assert kinds == ["opened", "opened"]
    found = audit.verify()
    assert (found.fault, found.torn) == (None, int(kept > 0))


def test_a_file_that_a_crash_left_empty_is_gone_on_with(folder: Path, open_audit: Open) -> None:
    open_audit().append("opened", {})
    with (folder / file_name(1)).open("ab") as file:
        file.write(b'{"seq":2')
    (folder / file_name(2)).touch()
    audit = open_audit()
    audit.append("plugin", {})
    assert [record["kind"] for record in records_of(folder)] == ["opened", "recovered", "plugin"]
    assert audit.verify().is_sound


def test_zeros_that_a_power_cut_left_are_set_aside(folder: Path, open_audit: Open) -> None:
    open_audit().append("opened", {})
    with (folder / file_name(1)).open("ab") as file:
        file.write(bytes(200_000))
    audit = open_audit()
    audit.append("opened", {})
    assert audit.verify().is_sound
    assert (folder / "audit-000001.jsonl.torn").read_bytes() == bytes(200_000) + b"\n"


def test_the_chain_goes_on_after_a_damaged_last_record_which_verify_names(folder: Path, open_audit: Open) -> None:
    first = open_audit()
    for _ in range(3):
        first.append("plugin", {})
    file = folder / file_name(1)
    file.write_bytes(file.read_bytes()[:-20] + b"damaged, and whole\n")
    audit = open_audit()
    assert audit.append("plugin", {}).seq == 4
    found = audit.verify()
    assert found.fault is not None
    assert (found.fault.kind, found.fault.seq) == ("changed", 3)


FULL = """
    import json, resource, sys
    from pathlib import Path
    from cyrene_host.record.audit import Audit, AuditUnavailableError

    audit = Audit(Path(sys.argv[1]), instance="full")
    audit.append("opened", {})
    size = next(Path(sys.argv[1]).glob("*.jsonl")).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), resource.RLIM_INFINITY))
    failed = []
    for number in range(3):
        try:
            audit.append("started", {"call_id": "refused"}, durable=True)
        except AuditUnavailableError as error:
            failed.append([error.what, error.where, error.mend])
    counted = [audit.append_or_count("plugin", {"number": number}) for number in range(1200)]
    lost, kept = audit.lost, [record["fields"]["number"] for record in audit.lost_records]
    trouble = str(audit.trouble)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    audit.append("started", {"call_id": "again"})
    print(json.dumps([failed, counted, lost, kept, trouble, audit.lost, audit.trouble]))
"""


@pytest.mark.parametrize("room", [0, 10, 150])
def test_a_full_file_system_is_told_counted_and_recovered_from(
    folder: Path, open_audit: Open, slow: Callable[[float], float], room: int
) -> None:
    told, _ = in_a_process(FULL, str(folder), str(room)).communicate(timeout=slow(30))
    failed, counted, lost, kept, trouble, lost_after, trouble_after = json.loads(told)
    file = str(folder / file_name(1))
    mend = "raise the limit on the size of files (`ulimit -f`)"
    assert failed == [["the audit cannot be written: file too large", file, mend]] * 3
    assert trouble == f"the audit cannot be written: file too large\n  where: {file}\n  mend:  {mend}"
    assert (counted, lost, lost_after, trouble_after) == ([None] * 1200, 1200, 0, None)
    assert kept == [*range(200, 1200)]

    assert [record["kind"] for record in records_of(folder)] == ["opened", "recovered", "started"]
    assert records_of(folder)[1]["fields"] == {"lost": 1200}
    found = open_audit().verify()
    assert (found.fault, found.lost) == (None, 1200)


@pytest.mark.parametrize("device_is_full", [True, False])
def test_a_write_that_stops_half_way_is_cut_back_or_set_aside_later(
    folder: Path, open_audit: Open, monkeypatch: pytest.MonkeyPatch, device_is_full: bool
) -> None:
    audit = open_audit()
    audit.append("opened", {})
    write, tries = os.write, itertools.count()

    def write_half(descriptor: int, text: bytes) -> int:
        if next(tries) == 0:
            return write(descriptor, text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_half)
        if not device_is_full:
            patched.setattr(os, "ftruncate", fail)
        with pytest.raises(AuditUnavailableError) as raised:
            audit.append("plugin", {})
    assert str(raised.value) == (
        "the audit cannot be written: no space left on device\n"
        f"  where: {folder / file_name(1)}\n"
        "  mend:  free space on that disk; the audit goes on by itself"
    )
    audit.append("plugin", {})
    kinds = ["opened", "plugin"] if device_is_full else ["opened", "recovered", "plugin"]
    assert [record["kind"] for record in records_of(folder)] == kinds
    assert audit.verify().is_sound


def test_trouble_is_logged_once_and_its_end_too(
    folder: Path, open_audit: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="cyrene.audit")
    folder.parent.mkdir()
    folder.write_text("in the way")
    audit = open_audit()
    for _ in range(5):
        assert audit.append_or_count("plugin", {}) is None
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert audit.trouble is not None
    assert audit.trouble.mend == "move away the file that stands where the folder should be"

    folder.unlink()
    assert audit.append_or_count("plugin", {}) is not None
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert (audit.trouble, audit.lost, len(audit.lost_records)) == (None, 0, 5)
    assert records_of(folder)[0]["fields"] == {"lost": 5}


def test_a_folder_that_is_gone_is_told_and_the_chain_goes_on_in_a_new_one(
    folder: Path, open_audit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = open_audit()
    for _ in range(3):
        audit.append("plugin", {})
    shutil.rmtree(folder)
    with pytest.raises(AuditUnavailableError) as raised:
        audit.append("plugin", {})
    assert raised.value.mend == "put the folder back, or make an empty one: the chain goes on there"
    with pytest.raises(AuditUnavailableError):
        audit.append("plugin", {})

    folder.mkdir()
    assert audit.append("plugin", {}).seq == 5
    recovered, _ = records_of(folder)
    assert (recovered["seq"], recovered["fields"]) == (4, {"expected_seq": 3, "found_seq": 0, "lost": 0})
    other = open_audit()
    other.append("plugin", {})
    audit.append("plugin", {})
    monkeypatch.setattr(audit_files, "LOCK_WAIT_S", 0.05)
    with (folder / "lock").open("rb") as lock:  # the new folder's lock counts
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(AuditUnavailableError, match="held its lock"):
            audit.append("plugin", {})
    found = audit.verify()
    assert found.fault is not None
    assert (found.fault.kind, found.fault.seq, found.records) == ("missing", 1, 4)


def test_a_folder_that_a_file_replaces_is_told(folder: Path, open_audit: Open) -> None:
    audit = open_audit()
    audit.append("opened", {})
    shutil.rmtree(folder)
    folder.write_text("in the way")
    with pytest.raises(AuditUnavailableError) as raised:
        audit.append("plugin", {})
    assert (raised.value.what, raised.value.mend) == (
        "the audit cannot be written: not a directory",
        "move away the file that stands where the folder should be",
    )
    with pytest.raises(AuditReadError) as unreadable:
        audit.verify()
    assert unreadable.value.what == "the audit cannot be read: not a directory"


def test_a_log_that_is_cut_while_it_is_written_is_found_out(folder: Path, open_audit: Open) -> None:
    audit = open_audit()
    for _ in range(3):
        audit.append("plugin", {})
    file = folder / file_name(1)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:1]))
    audit.append("plugin", {})
    found = audit.verify()
    assert found.fault is not None
    assert (found.fault.kind, found.fault.seq) == ("missing", 2)


def test_a_lock_that_is_never_let_go_is_told_and_waited_for_no_longer_than_a_second(
    folder: Path, open_audit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_files, "LOCK_WAIT_S", 0.05)
    audit = open_audit()
    audit.append("opened", {})
    with (folder / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(AuditUnavailableError) as raised:
            audit.append("plugin", {})
        assert raised.value.what == "the audit cannot be written: another process has held its lock for 0.05 s"
        assert audit.verify().records == 1  # who only reads goes on without
    audit.append("plugin", {})
    assert audit.verify().records == 2


def test_a_link_in_the_place_of_a_file_is_not_followed(folder: Path, tmp_path: Path, open_audit: Open) -> None:
    folder.mkdir(parents=True)
    (folder / file_name(1)).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    with pytest.raises(AuditUnavailableError) as raised:
        open_audit().append("opened", {})
    assert raised.value.mend == "replace the symbolic link by the file itself"
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_hostile_text_stays_on_its_line_and_steers_nothing(folder: Path, open_audit: Open) -> None:
    text = "a\nb\r\x1b[31m\x7f\x9b\u2028\u202e\U000e0041 你好 \ud800 end"
    audit = open_audit(instance="\ud800" + "i" * 500)
    audit.append("started", {"tool": text, "\udfff": {1: [b"raw", float("nan")]}})
    (line,) = lines_of(folder)
    assert not re.search(rb"[\x00-\x1f\x7f]", line)
    assert not re.search("[\x80-\x9f\u2028\u202e\U000e0041]", line.decode())
    assert "你好" in line.decode()
    record = json.loads(line)
    assert record["fields"]["tool"] == text.replace("\ud800", "\ufffd")
    assert record["fields"]["\ufffd"] == {"1": ["b'raw'", None]}
    assert record["instance"] == "\ufffd" + "i" * 63
    audit.append("started", {"tool": "\x7f"})
    assert rb"\u007f" in lines_of(folder)[1]
    assert audit.verify().is_sound


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"a": "x" * 100_000, "b": 1}, {"b": 1}),
        ({str(number): "x" for number in range(20_000)}, {}),
    ],
)
def test_a_record_over_64_kib_is_cut_and_says_what_it_was(
    folder: Path, open_audit: Open, fields: dict[str, Any], kept: dict[str, Any]
) -> None:
    open_audit().append("plugin", fields)
    (line,) = lines_of(folder)
    assert len(line) < 65_536
    written = json.loads(line)["fields"]
    (cut,) = (written.pop(name) for name in [*written] if name.endswith("_cut"))
    whole = json.dumps(fields["a"] if kept else fields, separators=(",", ":")).encode()
    assert cut == {"start": whole[:512].decode(), "sha256": hashlib.sha256(whole).hexdigest(), "size_bytes": len(whole)}
    assert written == kept


def test_the_records_of_a_call_leave_out_what_is_not_known_and_cut_long_arguments() -> None:
    started = started_fields(
        call_id="c1", tool="hello.hello", plugin="hello", principal="local", surface="cli",
        arguments={"text": "你" * 2000}, danger="low", decision="allow",
    )  # fmt: skip
    whole = json.dumps({"text": "你" * 2000}, separators=(",", ":"), ensure_ascii=False).encode()
    assert started.pop("arguments_cut") == {
        "start": whole[:512].decode(errors="ignore"),
        "sha256": hashlib.sha256(whole).hexdigest(),
        "size_bytes": len(whole),
    }
    assert started == {
        "call_id": "c1", "tool": "hello.hello", "plugin": "hello", "principal": "local", "surface": "cli",
        "danger": "low", "decision": "allow",
    }  # fmt: skip
    ended = ended_fields(
        call_id="c1", tool="hello.hello", principal="local", success=False, attempts=2, duration_ms=1.23456,
        error_kind="timeout", error_id="err_1", effect="unknown",
    )  # fmt: skip
    assert ended == {
        "call_id": "c1", "tool": "hello.hello", "principal": "local", "success": False, "error_kind": "timeout",
        "error_id": "err_1", "effect": "unknown", "attempts": 2, "duration_ms": 1.235,
    }  # fmt: skip


def test_what_must_be_on_disk_is_synced_before_the_answer_and_others_write_meanwhile(
    open_audit: Open, monkeypatch: pytest.MonkeyPatch, slow: Callable[[float], float]
) -> None:
    audit = open_audit()
    audit.append("opened", {})
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: int) -> None:
        begun.set()
        assert go_on.wait(slow(10))

    monkeypatch.setattr(os, "fsync", wait)
    audit.append("started", {})
    assert not begun.is_set()
    with ThreadPoolExecutor(1) as pool:
        durable = pool.submit(audit.append, "started", {}, durable=True)
        assert begun.wait(slow(10))
        assert not durable.done()
        assert audit.append("ended", {}).seq == 4
        go_on.set()
        assert durable.result(slow(10)).seq == 3


def test_a_disk_that_does_not_keep_what_must_be_kept_is_told(open_audit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = open_audit()
    audit.append("opened", {})
    descriptors = len([*Path("/dev/fd").iterdir()])

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(AuditUnavailableError, match="input/output error"):
        audit.append("started", {}, durable=True)
    assert len([*Path("/dev/fd").iterdir()]) == descriptors
    audit.append("ended", {})
    assert audit.verify().is_sound


def test_threads_that_share_an_audit_write_one_sound_chain(open_audit: Open) -> None:
    audit = open_audit(max_file_bytes=20_000)
    with ThreadPoolExecutor(4) as pool:
        heads = [*pool.map(lambda number: audit.append("plugin", {"number": number}), range(400))]
    assert len({head.seq for head in heads}) == 400
    found = audit.verify()
    assert (found.fault, found.files > 2) == (None, True)


def test_records_that_could_never_be_written_are_told_at_the_end(
    folder: Path, open_audit: Open, caplog: pytest.LogCaptureFixture
) -> None:
    folder.parent.mkdir()
    folder.write_text("in the way")
    audit = open_audit()
    audit.append_or_count("plugin", {})
    assert audit.close() is None
    assert caplog.messages[-1] == "2 records of the audit were never written"
