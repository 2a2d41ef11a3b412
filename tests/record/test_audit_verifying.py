"""Whatever is done to the audit's files, the first record that does not fit is named, or what cannot be proven."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_host.record.audit import Audit
from cyrene_host.record.audit_files import file_name
from cyrene_host.record.audit_lines import HeadError
from cyrene_host.record.audit_verify import Verification, verify_chain

Lines = list[bytes]
ELSEWHERE = "only a head that was printed earlier, and kept elsewhere, shows that (--head)"
HEADS: list[str] = []
FILES: list[Lines] = []


@pytest.fixture(scope="module", autouse=True)
def _written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A log of several files, as it was written: lines with their line breaks, by file, and the head of each."""
    folder = tmp_path_factory.mktemp("audit")
    times = iter(range(1_800_000_000, 1_800_001_000))
    audit = Audit(folder, instance="host", max_file_bytes=2200, clock=lambda: float(next(times)))
    for number in range(12):
        audit.append("started" if number % 2 else "ended", {"call_id": f"c{number}", "text": "你好\n" * (number % 4)})
    audit.close()
    FILES[:] = [file.read_bytes().splitlines(keepends=True) for file in sorted(folder.glob("*.jsonl"))]
    HEADS[:] = [str(head_of(line, number)) for number, line in enumerate(all_lines(), 1)]
    assert len(FILES) >= 3
    yield
    FILES.clear()


def head_of(line: bytes, seq: int) -> str:
    return f"{seq}:{hashlib.sha256(line.rstrip(bytes([10]))).hexdigest()}"


def all_lines() -> Lines:
    return [line for lines in FILES for line in lines]


@contextmanager
def a_log(files: Sequence[bytes | Lines | None]) -> Iterator[Path]:
    """A folder with these files; None stands for one that is not there."""
    folder = Path(tempfile.mkdtemp())
    try:
        for number, content in enumerate(files, 1):
            if content is not None:
                (folder / file_name(number)).write_bytes(content if isinstance(content, bytes) else b"".join(content))
        yield folder
    finally:
        shutil.rmtree(folder)


def verified(files: Sequence[bytes | Lines | None], head: str | None = None) -> Verification:
    with a_log(files) as folder:
        return verify_chain(folder, head)


def in_files(lines: Lines) -> list[Lines]:
    """Share the lines out as the files were, the last file taking the rest."""
    ends = [*accumulate(map(len, FILES))]
    return [lines[start:end] for start, end in zip([0, *ends[:-1]], [*ends[:-1], len(lines)], strict=True)]


def fault_of(found: Verification) -> tuple[str, int]:
    assert found.fault is not None, "it was found sound"
    assert not found.is_sound
    return found.fault.kind, found.fault.seq


def rewritten(line: bytes, **changes: Any) -> bytes:
    """The line as a forger would write it: changed, with a checksum that fits."""
    record = {**json.loads(line), **changes}
    record.pop("crc")
    body = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, crc32(body))


def indices(data: st.DataObject, *, least: int = 0, most: int = 0) -> int:
    return data.draw(st.integers(least, len(all_lines()) - 1 - most))


def test_what_was_written_is_sound_and_what_that_leaves_open_is_said() -> None:
    found = verified(FILES)
    count = len(all_lines())
    assert (found.fault, found.records, found.files) == (None, count, len(FILES))
    assert str(found.head) == HEADS[-1]
    assert found.unproven == (
        f"whether more records came after record {count} and were cut off",
        f"whether the whole log was written anew: {ELSEWHERE}",
    )
    assert [*found.open_calls] == ["c1", "c3", "c5", "c7", "c9", "c11"]


@given(data=st.data())
def test_a_changed_byte_is_found_and_its_record_named(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(FILES) - 1))
    content = bytearray(b"".join(FILES[number]))
    offset = data.draw(st.integers(0, len(content) - 1))
    content[offset] ^= data.draw(st.integers(1, 255))

    ends = [*accumulate(map(len, FILES[number]))]
    line = bisect_right(ends, offset)
    seq = sum(map(len, FILES[:number])) + line + 1
    found = verified([*FILES[:number], bytes(content), *FILES[number + 1 :]])
    kind, named = fault_of(found)
    assert (kind in ("changed", "torn"), named) == (True, seq)
    assert found.fault is not None
    assert (found.fault.file, found.fault.line) == (file_name(number + 1), line + 1)


@given(data=st.data())
def test_a_cut_end_is_named_where_it_cuts_a_record_and_else_by_a_head(data: st.DataObject) -> None:
    content = b"".join(FILES[-1])
    left = data.draw(st.integers(0, len(content) - 1))
    ends = [0, *accumulate(map(len, FILES[-1]))]
    whole = bisect_right(ends, left) - 1
    last = sum(map(len, FILES[:-1])) + whole
    found = verified([*FILES[:-1], content[:left]])
    if left == ends[whole]:
        assert found.is_sound
        assert found.unproven[0] == f"whether more records came after record {last} and were cut off"
        assert fault_of(verified([*FILES[:-1], content[:left]], HEADS[-1])) == ("head_missing", len(HEADS))
    else:
        assert fault_of(found) == ("torn", last + 1)


@given(data=st.data())
def test_records_that_are_removed_are_named(data: st.DataObject) -> None:
    first = indices(data, most=1)
    last = data.draw(st.integers(first, len(all_lines()) - 2))
    lines = all_lines()
    found = verified(in_files(lines[:first] + lines[last + 1 :]))
    assert fault_of(found) == ("missing", first + 1)
    assert found.fault is not None
    gone = f"record {first + 1} is" if first == last else f"records {first + 1} to {last + 1} are"
    assert found.fault.what.startswith(f"{gone} missing: ")


@given(data=st.data())
def test_two_records_that_are_swapped_are_both_named(data: st.DataObject) -> None:
    first = indices(data, most=1)
    second = indices(data, least=first + 1)
    lines = all_lines()
    lines[first], lines[second] = lines[second], lines[first]
    found = verified(in_files(lines))
    assert fault_of(found) == ("swapped", first + 1)
    assert found.fault is not None
    assert found.fault.what.startswith(f"record {first + 1} is in another place: ")
    assert f"record {second + 1} in " in found.fault.what


@given(data=st.data())
def test_a_copy_of_a_record_is_named_wherever_it_is_put(data: st.DataObject) -> None:
    original, place = indices(data), data.draw(st.integers(0, len(all_lines())))
    lines = all_lines()
    lines.insert(place, lines[original])
    assert fault_of(verified(in_files(lines))) == ("duplicate", original + 1)


@given(data=st.data())
def test_a_record_that_is_put_between_two_others_is_found(data: st.DataObject) -> None:
    place = indices(data, least=1)
    lines = all_lines()
    forged = rewritten(lines[place], fields={"call_id": "forged"})
    lines.insert(place, forged)
    assert fault_of(verified(in_files(lines))) == ("duplicate", place + 1)


@given(data=st.data(), garbage=st.binary(max_size=40).filter(lambda text: b"\n" not in text))
def test_a_line_that_is_no_record_is_found(data: st.DataObject, garbage: bytes) -> None:
    place = data.draw(st.integers(0, len(all_lines())))
    lines = all_lines()
    lines.insert(place, garbage + b"\n")
    assert fault_of(verified(in_files(lines))) == ("changed", place + 1)


@given(data=st.data(), changed=st.sampled_from(["fields", "at", "instance", "prev"]))
def test_a_record_that_is_rewritten_with_a_fitting_checksum_is_named(data: st.DataObject, changed: str) -> None:
    place = indices(data, most=2)
    lines = all_lines()
    value: dict[str, Any] = {"fields": {}, "at": "2020-01-01T00:00:00.000000Z", "instance": "other", "prev": "1" * 64}
    lines[place] = rewritten(lines[place], **{changed: value[changed]})
    found = verified(in_files(lines))
    assert fault_of(found) == ("rewritten", place + 1)
    assert found.fault is not None
    assert found.fault.what.startswith(f"record {place + 1} was written anew: ")
    assert found.fault.file == next(
        file_name(number) for number, _ in enumerate(FILES, 1) if place < sum(map(len, FILES[:number]))
    )


def test_of_the_last_two_records_it_is_said_that_one_was_rewritten() -> None:
    lines = all_lines()
    lines[-2] = rewritten(lines[-2], fields={})
    found = verified(in_files(lines))
    count = len(lines)
    assert fault_of(found) == ("rewritten", count - 1)
    assert found.fault is not None
    assert found.fault.what.startswith(f"record {count - 1} (")
    assert f" or {count} (" in found.fault.what


@given(data=st.data())
def test_a_log_that_is_rewritten_from_some_record_on_is_found_by_any_later_head(data: st.DataObject) -> None:
    place = indices(data)
    lines = all_lines()
    for index in range(place, len(lines)):
        prev = head_of(lines[index - 1], 0).partition(":")[2] if index else "0" * 64
        lines[index] = rewritten(lines[index], prev=prev, instance="forger")
    files = in_files(lines)
    assert verified(files).is_sound
    later = indices(data, least=place)
    assert fault_of(verified(files, HEADS[later])) == ("head_missing", later + 1)
    if place:
        earlier = data.draw(st.integers(0, place - 1))
        found = verified(files, HEADS[earlier])
        assert (found.fault, found.given, found.after_given) == (None, earlier + 1, len(lines) - earlier - 1)


@pytest.mark.parametrize(
    ("gone", "kind", "words"),
    [
        ({0}, "start_missing", "missing, with file 1: the log begins with audit-000002.jsonl line 1"),
        ({0, 1}, "start_missing", "missing, with files 1 to 2: the log begins with audit-000003.jsonl line 1"),
        ({1}, "file_missing", "missing, with file 2, before audit-000003.jsonl line 1"),
    ],
)
def test_a_file_that_is_removed_is_named(gone: set[int], kind: str, words: str) -> None:
    found = verified([None if number in gone else lines for number, lines in enumerate(FILES)])
    first = sum(len(FILES[number]) for number in range(min(gone))) + 1
    assert fault_of(found) == (kind, first)
    assert found.fault is not None
    assert found.fault.what.endswith(words)


def test_the_last_file_is_missed_only_with_a_head() -> None:
    assert verified(FILES[:-1]).is_sound
    found = verified(FILES[:-1], HEADS[-1])
    left = sum(map(len, FILES[:-1]))
    assert found.fault is not None
    assert found.fault.what == f"record {len(HEADS)}, whose head was given, is missing: the log ends with record {left}"
    assert fault_of(verified([], HEADS[-1])) == ("head_missing", len(HEADS))


def test_a_fault_and_a_head_that_is_not_there_are_both_told() -> None:
    found = verified([FILES[0][1:]], HEADS[-1])
    assert fault_of(found) == ("missing", 1)
    assert found.fault is not None
    assert found.fault.what.endswith("; the record whose head was given is not there either")


@pytest.mark.parametrize("as_printed", [True, False])
def test_a_head_that_fits_tells_how_many_came_after_it(as_printed: bool) -> None:
    head = HEADS[4] if as_printed else HEADS[4].partition(":")[2]
    found = verified(FILES, head)
    count = len(HEADS)
    assert (found.is_sound, found.given, found.after_given) == (True, 5, count - 5)
    assert found.unproven == (
        f"whether more records came after record {count} and were cut off, or those after the given head rewritten",
    )


@pytest.mark.parametrize("text", ["", "abc", "5:abc", "x:" + "0" * 64, "0" * 63, "-1:" + "0" * 64])
def test_a_text_that_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(HeadError) as raised:
        verified(FILES, text)
    assert str(raised.value) == (
        f"'{text[:80]}' is no head of an audit\n"
        "  where: head\n"
        "  mend:  give what was printed: a number, a colon and 64 hexadecimal digits, or these digits alone"
    )


def test_a_log_that_is_being_written_is_sound(folder: Path, open_audit: Callable[..., Audit]) -> None:
    audit = open_audit()
    for number in range(3):
        audit.append("started", {"call_id": f"c{number}"})
        audit.append("ended", {"call_id": f"c{number}"}) if number else None
        assert audit.verify().is_sound
    assert audit.verify().open_calls == {"c0": 1}
    assert audit.verify().to_dict() == {
        "sound": True,
        "records": 5,
        "files": 1,
        "head": str(audit.head),
        "fault": None,
        "open_calls": {"c0": 1},
        "lost": 0,
        "torn": 0,
        "given_head": None,
        "after_given_head": None,
        "unproven": [*audit.verify().unproven],
    }
