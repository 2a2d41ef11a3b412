"""Setting up: the lock, `make setup` on an old Python, and tests that need an outside program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECTS = [ROOT / "pyproject.toml", ROOT / "cyrene_sdk" / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]


def _locked() -> dict[str, str]:
    """The text that follows each `name==` of the lock: version, marker and hashes."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    parts = re.split(r"^([\w.-]+)==", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_locked_package_has_a_hash() -> None:
    locked = _locked()
    assert len(locked) > 30
    assert [name for name, rest in locked.items() if "--hash=sha256:" not in rest] == []


def test_the_lock_names_no_index_and_no_folder() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "://" in line or line.startswith(("-", "/", ".")) or " @ " in line] == []


def test_the_lock_satisfies_what_every_distribution_and_the_tools_ask_for() -> None:
    settings = [tomllib.loads(path.read_text(encoding="utf-8")) for path in PROJECTS]
    asked = [Requirement(text) for project in settings for text in project["project"]["dependencies"]]
    asked += [Requirement(text) for text in settings[0]["dependency-groups"]["dev"]]
    asked += [Requirement(text) for project in settings for text in project["build-system"]["requires"]]
    own = {canonicalize_name(project["project"]["name"]) for project in settings}
    locked = {canonicalize_name(name): rest.split()[0] for name, rest in _locked().items()}

    wanted = [requirement for requirement in asked if canonicalize_name(requirement.name) not in own]
    assert [str(r) for r in wanted if not r.specifier.contains(locked.get(canonicalize_name(r.name), "0"))] == []


def test_setup_with_an_old_python_says_which_one_is_needed(
    needs: Callable[[str], str], slow: Callable[[float], float], tmp_path: Path
) -> None:
    for path in (ROOT / "Makefile", ROOT / "requirements.lock", *PROJECTS[:2]):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy2(path, copy)
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit\nexit 1\n', encoding="utf-8")
    old.chmod(0o755)

    ended = subprocess.run(
        [needs("make"), "setup", f"PYTHON={old}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=slow(30), check=False,
    )  # fmt: skip

    assert ended.returncode == 2
    assert f"Cyrene needs Python 3.11 or newer, but '{old}' is Python 3.9.2." in ended.stderr
    assert "mend:  name a newer one: make setup PYTHON=python3.12" in ended.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("required", "exit_code", "told"),
    [("", 0, "SKIPPED [1] {conftest}: 'no-such-program' is not installed"), ("git, no-such-program", 1, "names it")],
)
def test_a_missing_program_skips_with_its_reason_unless_it_is_required(
    required: str, exit_code: int, told: str, slow: Callable[[float], float], tmp_path: Path
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_one.py").write_text("def test_one(needs): needs('no-such-program')\n", encoding="utf-8")

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "CYRENE_TEST_REQUIRE": required},
        cwd=tmp_path, capture_output=True, text=True, timeout=slow(60), check=False,
    )  # fmt: skip

    assert ended.returncode == exit_code
    assert re.search(told.format(conftest=r".*conftest\.py:\d+").replace("[1]", r"\[1\]"), ended.stdout)


def test_the_script_of_the_tests_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
