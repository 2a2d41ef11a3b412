"""`cyrene doctor`: works where nothing else does, and never with a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.runtimes.leftovers import MARKER, own_marker

linux = pytest.mark.skipif(sys.platform != "linux", reason="these are means of Linux")

Run = Callable[..., Any]


def wrong(ran: Any) -> list[str]:
    return [symptom["about"] for symptom in ran.document["symptoms"] if symptom["level"] == "wrong"]


def test_a_healthy_host_is_exit_0_and_knows_what_to_type_next(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert f"ok    state: {greeter.folder / 'state'}" in ran.out
    assert f"ok    plugins.json: {greeter.folder / 'plugins.json'}" in ran.out
    assert "note  plugin 'greeter': not described yet\n        mend:  `cyrene check greeter` looks at it" in ran.out
    assert ran.out.splitlines()[-1].startswith("Nothing is wrong. Next: `cyrene health`")


def test_it_imports_no_plugin(greeter: Any, cyrene: Run) -> None:
    mark = greeter.folder / "imported"
    greeter.plugin("greeter", f"from pathlib import Path\nPath({str(mark)!r}).touch()\n")
    cyrene("doctor")
    assert not mark.exists()


def test_everything_broken_at_once_is_told_all_at_once(workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "plugins.json").write_text("[{")
    (workshop.folder / "plugins.json").chmod(0o600)
    (workshop.folder / "cyrene.toml").write_text("[danger\n")
    (workshop.folder / "cyrene.toml").chmod(0o600)
    (workshop.folder / "state").write_text("a file")
    ran = cyrene("doctor", "--json", "--set", "host.state_dir=state")
    assert ran.code == 1
    assert {"plugins.json", "cyrene.toml"} <= set(wrong(ran))
    assert all(symptom["mend"] for symptom in ran.document["symptoms"] if symptom["level"] == "wrong")


def test_a_state_directory_that_cannot_be_written_is_told(workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "state").write_text("a file")
    ran = cyrene("doctor", "--json")
    assert (ran.code, wrong(ran)) == (1, ["state"])


def test_a_missing_plugins_json_is_a_note_and_a_given_one_is_wrong(workshop: Any, cyrene: Run) -> None:
    assert "note  plugins.json: there is none in" in cyrene("doctor").out
    ran = cyrene("doctor", "--plugins", "nowhere.json", "--json")
    assert ran.code == 1
    assert "plugins.json" in wrong(ran)


def test_each_entry_and_what_became_of_it_is_told(greeter: Any, cyrene: Run) -> None:
    cyrene("tools")  # describes the greeter once
    greeter.list("gone", {"name": "odd", "wat": 1, "tols": {}})
    ran = cyrene("doctor", "--json")
    assert wrong(ran) == ["plugin 'gone'", "plugin 'odd'", "plugin 'odd'"]
    notes = [symptom["what"] for symptom in ran.document["symptoms"] if symptom["level"] == "note"]
    assert "'greeter' was listed here once, or in another plugins.json, and is not now" in notes


def test_two_distributions_that_offer_one_name_are_told(workshop: Any, cyrene: Run) -> None:
    for name in ("first", "second"):
        info = workshop.folder / "site" / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[cyrene.plugins]\nsame = {name}:Plugin\n")
    workshop.list()
    sys.path.append(str(workshop.folder / "site"))
    ran = cyrene("doctor", "--json")
    assert wrong(ran) == ["entry points"]
    told = next(symptom for symptom in ran.document["symptoms"] if symptom["level"] == "wrong")
    assert told["what"] == "'same' is offered by several distributions: first, second"


def test_a_missing_package_is_told_by_name(greeter: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.metadata.requires", lambda _: ["pydantic>=2.11", "no-such-package[x]>=1; python_version>'3'"]
    )
    ran = cyrene("doctor")
    assert ran.code == 1
    assert "WRONG packages: missing: no-such-package\n        mend:  pip install no-such-package" in ran.out


def test_a_package_that_cannot_be_imported_leaves_the_rest_of_the_answer(
    greeter: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cyrene_host.cli.diagnosis", raising=False)
    monkeypatch.setitem(sys.modules, "cyrene_host.catalog.catalog", None)
    ran = cyrene("doctor")
    assert ran.code == 1
    assert "WRONG plugins: cannot be looked at" in ran.out
    assert "ok    python: " in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_a_folder_that_is_gone_is_a_symptom_and_no_traceback(workshop: Any, cyrene: Run) -> None:
    gone = workshop.folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    ran = cyrene("doctor")
    os.chdir(Path(workshop.folder))
    assert ran.code == 1
    assert "looking at it failed: FileNotFoundError" in ran.out
    assert "Traceback" not in ran.out + ran.err


def told(ran: Any, about: str) -> list[str]:
    return [symptom["what"] for symptom in ran.document["symptoms"] if symptom["about"] == about]


@linux
def test_what_really_confines_a_worker_here_is_tried_out_and_told(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("doctor", "--json")
    start, ends, limits, *_ = told(ran, "isolation")
    assert start.startswith("each plugin has a worker, forked from the keeper, in a session of its own, on ")
    assert ends == "a worker ends with its host, and all that it starts ends with it (parent-death signal, subreaper)"
    assert limits == "limits.memory_mb and limits.open_files take effect"
    as_root = any("run as root" in what for what in told(ran, "isolation"))
    assert as_root == (os.getuid() == 0)


def test_settings_and_plugins_that_are_set_up_here_do_not_change_what_is_tried_out(greeter: Any, cyrene: Run) -> None:
    greeter.list("greeter", {"name": "witness", "import": "nothing"})
    forbidding = ("--set", "danger.low=deny", "--set", 'tools.deny=["*"]')
    assert len(told(cyrene("doctor", "--json", *forbidding), "isolation")) >= 3


def test_a_machine_where_no_worker_can_be_started_is_told(
    greeter: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    greeter.list()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    ran = cyrene("doctor", "--json")
    assert (ran.code, wrong(ran)) == (1, ["isolation"])
    (what,) = told(ran, "isolation")
    assert what.startswith("no worker can be started here: ")
    assert "/nowhere/python" in what


def test_each_interpreter_that_an_entry_names_is_run(greeter: Any, cyrene: Run) -> None:
    bare = greeter.folder / "bare"
    venv.create(bare, with_pip=False)
    newer = greeter.folder / "newer"
    newer.write_text('#!/bin/sh\necho \'["3.14.0", "9.0.0", 99]\'\n')
    newer.chmod(0o700)
    code = {"path": "plugins/greeter", "import": "cyrene_greeter"}
    names = {"own": sys.executable, "bare": "bare", "newer": "newer", "absent": "nowhere"}
    greeter.list(*({"name": name, "python": python, **code} for name, python in names.items()))
    ran = cyrene("doctor", "--json")
    assert wrong(ran) == ["python of bare", "python of newer", "python of absent"]
    assert told(ran, "python of own")[0].startswith("Python 3.")
    assert "has no cyrene-sdk that can be used: ModuleNotFoundError" in told(ran, "python of bare")[0]
    assert "cyrene-sdk 9.0.0" in told(ran, "python of newer")[0]
    assert "it speaks contract 99, which this host does not" in told(ran, "python of newer")[0]
    assert "cannot be started: No such file or directory" in told(ran, "python of absent")[0]


@linux
def test_what_a_killed_host_has_left_is_told_and_not_touched(greeter: Any, cyrene: Run) -> None:
    state = greeter.folder / "state"
    assert told(cyrene("doctor", "--json"), "leftovers") == ["no host has left anything behind"]
    gone = subprocess.Popen(["true"])
    gone.wait()
    (state / "scratch" / f"{gone.pid}-1-abcd").mkdir(parents=True)
    digest = own_marker(state).rpartition(":")[2]
    with subprocess.Popen(["sleep", "60"], env={MARKER: f"{gone.pid}:1:{digest}"}) as left:
        ran = cyrene("doctor", "--json")
        assert left.poll() is None
        left.kill()
    assert ran.code == 0
    (what,) = told(ran, "leftovers")
    assert what == (
        f"a host that was killed has left the processes {left.pid} and 1 scratch folders below '{state / 'scratch'}'"
    )
