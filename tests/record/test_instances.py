"""Which hosts are alive on one state directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyrene_host.record.instances import HostKind, Instances, StateDirError, StateInUseError

HOST = """
import pathlib, subprocess, sys
from cyrene_host.record.instances import Instances
claimed = Instances(pathlib.Path(sys.argv[1])).claim(sys.argv[2])
if len(sys.argv) > 3:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
print(claimed.id, flush=True)
sys.stdin.readline()
"""


class Process:
    """A host in a process of its own."""

    def __init__(self, folder: Path, kind: HostKind, *more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, folder, kind, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.id = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(30)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Process]]:
    """Hosts to be ended."""
    started: list[Process] = []
    yield started
    for host in started:
        host.close()


@pytest.mark.parametrize(
    ("first", "second"), [("resident", "resident"), ("resident", "command"), ("command", "resident")]
)
def test_a_host_that_must_be_alone_refuses_and_is_refused_by_its_pid(
    tmp_path: Path, hosts: list[Process], first: HostKind, second: HostKind
) -> None:
    hosts.append(Process(tmp_path, first))
    pid = hosts[0].process.pid
    with pytest.raises(StateInUseError) as error:
        Instances(tmp_path).claim(second)

    role = "a host serves" if first == "resident" else "a command runs"
    assert error.value.pid == pid
    assert str(error.value) == (
        f"{role} with this state directory already: process {pid}\n"
        f"  where: {tmp_path}\n"
        f"  mend:  use that one, stop it (`kill {pid}`), or set another `[host] state_dir`"
    )


def test_commands_run_beside_one_another_and_in_one_process_too(tmp_path: Path, hosts: list[Process]) -> None:
    hosts.append(Process(tmp_path, "command"))
    instances = Instances(tmp_path)
    first, second = instances.claim("command"), instances.claim("command")
    assert [host.id for host in instances.living()] == [hosts[0].id, first.id, second.id]
    first.release()
    first.release()
    assert (instances.alive(first.id), instances.alive(second.id)) == (False, True)
    second.release()


def test_two_residents_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    first = Instances(tmp_path).claim("resident")
    with pytest.raises(StateInUseError) as error:
        Instances(tmp_path).claim("resident")
    assert error.value.pid == os.getpid()
    first.release()
    Instances(tmp_path).claim("resident").release()


def test_the_claim_of_a_killed_host_is_taken_over_and_its_file_removed(tmp_path: Path, hosts: list[Process]) -> None:
    hosts.append(Process(tmp_path, "resident"))
    instances = Instances(tmp_path)
    assert instances.alive(hosts[0].id)
    hosts[0].kill()
    assert not instances.alive(hosts[0].id)
    assert instances.living() == []

    mine = instances.claim("resident")
    assert [file.name for file in (tmp_path / "hosts").iterdir()] == [f"{mine.id}.json"]
    mine.release()
    assert list((tmp_path / "hosts").iterdir()) == []


def test_a_child_that_outlives_its_host_does_not_keep_the_claim(tmp_path: Path, hosts: list[Process]) -> None:
    hosts.append(Process(tmp_path, "resident", "with a child"))
    hosts[0].kill()
    Instances(tmp_path).claim("resident").release()


def test_a_host_tells_where_it_serves(tmp_path: Path) -> None:
    instances = Instances(tmp_path)
    mine = instances.claim("resident")
    mine.publish("http://127.0.0.1:8420")
    mine.publish("http://[::1]:1")
    (living,) = instances.living()
    assert (living.id, living.pid, living.kind, living.url) == (mine.id, os.getpid(), "resident", "http://[::1]:1")
    with pytest.raises(StateInUseError, match=r"already at http://\[::1\]:1: process"):
        instances.claim("command")
    file = tmp_path / "hosts" / f"{mine.id}.json"
    assert set(json.loads(file.read_text())) == {"id", "pid", "kind", "started_at", "url"}
    assert file.stat().st_mode & 0o777 == 0o600
    mine.release()


def test_a_living_host_whose_file_is_damaged_still_counts(tmp_path: Path) -> None:
    instances = Instances(tmp_path)
    mine = instances.claim("command")
    (tmp_path / "hosts" / f"{mine.id}.json").write_text("{")
    assert instances.alive(mine.id)
    with pytest.raises(StateInUseError) as error:
        instances.claim("command")
    assert error.value.pid == 0
    assert "kill" not in str(error.value)
    mine.release()
    instances.claim("resident").release()


@pytest.mark.parametrize("instance", ["", "../../etc/passwd", "0" * 32, "x" * 5000])
def test_an_id_that_no_host_has_is_dead(tmp_path: Path, instance: str) -> None:
    assert not Instances(tmp_path).alive(instance)
    assert list(tmp_path.iterdir()) == []


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert Instances(tmp_path / "state").living() == []
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StateDirError) as error:
        Instances(tmp_path / "state").claim("command")
    assert str(error.value) == (
        "the state directory cannot be used: Not a directory\n"
        f"  where: {tmp_path / 'state' / 'hosts'}\n"
        "  mend:  make it writable for this user, with room on its disk, or set another `[host] state_dir`"
    )


def test_the_id_of_a_state_directory_is_made_once(tmp_path: Path) -> None:
    first = Instances(tmp_path / "a").host_id()
    assert Instances(tmp_path / "a").host_id() == first
    assert Instances(tmp_path / "b").host_id() != first
    assert (tmp_path / "a" / "host-id").stat().st_mode & 0o777 == 0o600


def test_a_damaged_id_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "host-id").write_text("\n")
    with pytest.raises(StateDirError) as error:
        Instances(tmp_path).host_id()
    assert error.value.where == str(tmp_path / "host-id")
    assert (tmp_path / "host-id").read_text() == "\n"
