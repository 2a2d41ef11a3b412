"""What a killed host left is found by its mark, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyrene_host.runtimes.leftovers import (
    MARKER,
    find_left_scratch,
    find_leftovers,
    own_marker,
    own_scratch,
    reap_leftovers,
    remove_left_scratch,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found by their environment on Linux")

SLEEPS = [sys.executable, "-I", "-S", "-c", "import time; print(flush=True); time.sleep(60)"]
FORKS = (
    "import os, time\nprint(flush=True)\nfor _ in range(5):\n    os.fork()\nos.setsid() if 0 else None\ntime.sleep(60)"
)


class Marked:
    """Processes with a mark in their environment, ended with the test."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, mark: str | None, argv: list[str] = SLEEPS) -> subprocess.Popen[bytes]:
        environment = {} if mark is None else {MARKER: mark}
        process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)
        self.started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process


@pytest.fixture
def marked() -> Iterator[Marked]:
    made = Marked()
    yield made
    for process in made.started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def dead_marker(state_dir: Path) -> str:
    """The mark of a host that is gone: this process's, started at another time."""
    pid, _, digest = own_marker(state_dir).split(":")
    return f"{pid}:1:{digest}"


def test_what_a_dead_host_left_is_ended_and_counted(tmp_path: Path, marked: Marked) -> None:
    left = [marked.start(dead_marker(tmp_path)) for _ in range(3)]

    assert sorted(find_leftovers(tmp_path)) == sorted(process.pid for process in left)
    assert reap_leftovers(tmp_path) == 3
    assert [process.wait(5) for process in left] == [-9] * 3
    assert reap_leftovers(tmp_path) == 0


def test_what_forks_meanwhile_is_ended_too(tmp_path: Path, marked: Marked) -> None:
    marked.start(dead_marker(tmp_path), [sys.executable, "-I", "-S", "-c", FORKS])

    assert reap_leftovers(tmp_path) >= 1
    assert find_leftovers(tmp_path) == []


def test_what_belongs_to_a_living_host_another_state_directory_or_nobody_is_left_alone(
    tmp_path: Path, marked: Marked
) -> None:
    others = [
        marked.start(own_marker(tmp_path)),
        marked.start(dead_marker(tmp_path / "other")),
        marked.start(None),
        *(marked.start(mark) for mark in ("", "nonsense", "::", "x:1:" + own_marker(tmp_path).split(":")[2])),
    ]

    assert find_leftovers(tmp_path) == []
    assert reap_leftovers(tmp_path) == 0
    assert [process.poll() for process in others] == [None] * len(others)


def test_the_same_state_directory_by_another_spelling_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)

    assert own_marker(tmp_path / "link") == own_marker(tmp_path)


def test_scratch_folders_of_dead_hosts_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    own = own_scratch(tmp_path)
    left = own.with_name(f"{os.getpid()}-1-abcdef01")
    for folder in (own, left):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    (own.parent / "no host's").mkdir()

    assert find_left_scratch(tmp_path) == [left]
    remove_left_scratch(tmp_path)
    assert own_scratch(tmp_path).parent == own.parent
    assert sorted(entry.name for entry in own.parent.iterdir()) == sorted([own.name, "no host's"])


def test_without_a_scratch_folder_there_is_nothing_to_remove(tmp_path: Path) -> None:
    remove_left_scratch(tmp_path)

    assert find_left_scratch(tmp_path) == []
