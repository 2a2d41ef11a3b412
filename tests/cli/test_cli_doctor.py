"""`cyrene doctor`: works where nothing else does, and never with a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
