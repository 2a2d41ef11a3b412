"""The command as a whole: help, options, wrong use, exit codes, errors without tracebacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import __version__
from cyrene_host.cli import main
from cyrene_host.cli.options import TAKES_VALUE

Run = Callable[..., Any]
COMMANDS = (
    *("plugins", "tools", "call", "executions", "approvals", "health", "why"),
    *("new", "check", "doctor", "manifest", "audit"),
)


def test_without_arguments_the_help_is_printed_and_all_is_fine(cyrene: Run) -> None:
    bare, asked = cyrene(), cyrene("--help")
    assert bare.code == asked.code == 0
    assert bare.out == asked.out
    assert bare.err == ""


def test_the_help_names_every_command_and_every_option(cyrene: Run) -> None:
    shown = cyrene("--help").out
    assert [command for command in COMMANDS if f"\n  {command} " not in shown] == []
    assert [option for option in TAKES_VALUE if option not in shown] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own(command: str, cyrene: Run) -> None:
    ran = cyrene(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: cyrene {command}")


def test_the_installed_command_is_main() -> None:
    (command,) = entry_points(group="console_scripts", name="cyrene")
    assert command.load() is main


def test_the_version_is_shown(cyrene: Run) -> None:
    assert cyrene("--version").out == f"cyrene {__version__}\n"
    assert cyrene("--version", "--json").document == {"version": __version__}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tols",), "no such command 'tols'\n  where: command line, cyrene\n  mend:  did you mean 'tools'?\n"),
        (("xyz",), "no such command 'xyz'\n  where: command line, cyrene\n  mend:  `cyrene --help` shows its use\n"),
        (
            ("tools", "--qualifed"),
            "no such option: --qualifed\n  where: command line, cyrene tools\n  mend:  did you mean '--qualified'?\n",
        ),
        (
            ("tools", "--jsn"),
            "no such option: --jsn\n  where: command line, cyrene tools\n  mend:  did you mean '--json'?\n",
        ),
        (
            ("call", "hello", "--value", "3"),
            """no such option: --value
  where: command line, cyrene call
  mend:  `cyrene call --help` shows its use
""",
        ),
        (
            ("manifest", "biuld"),
            "no such command 'biuld'\n  where: command line, cyrene manifest\n  mend:  did you mean 'build'?\n",
        ),
        (
            ("call",),
            """missing argument 'NAME'
  where: command line, cyrene call
  mend:  `cyrene call --help` shows its use
""",
        ),
        (
            ("tools", "--plugins"),
            "'--plugins' needs a value\n  where: command line\n  mend:  `cyrene --help` shows it\n",
        ),
        (
            ("tools", "--set", "danger=deny"),
            """'danger=deny' is no setting
  where: command line, --set
  mend:  write --set table.key=value, such as --set danger.high=deny
""",
        ),
    ],
)  # fmt: skip
def test_wrong_use_is_exit_2_and_says_what_was_meant(arguments: tuple[str, ...], said: str, cyrene: Run) -> None:
    ran = cyrene(*arguments)
    assert (ran.code, ran.out, ran.err) == (2, "", said)


def test_an_option_of_cyrene_may_stand_before_or_after_the_command(greeter: Any, cyrene: Run) -> None:
    after = cyrene("tools", "--plugins", "plugins.json", "--json")
    assert after.code == 0
    assert after.document == cyrene("--json", "--plugins=plugins.json", "tools").document


def test_what_follows_two_dashes_is_no_option(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("call", "greet", "--", "--json")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "'--json' is no argument")


def test_a_setting_of_the_command_line_holds(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("tools", "--set", "danger.high=deny")
    assert "high (deny)" in ran.out


def test_a_faulty_setting_of_the_command_line_is_exit_2(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("tools", "--set", "danger.high=dny")
    assert ran.code == 2
    assert "where: --set or overrides, danger.high" in ran.err
    assert "did you mean 'deny'?" in ran.err


def test_a_plugins_json_that_is_given_and_absent_is_exit_2(workshop: Any, cyrene: Run) -> None:
    ran = cyrene("tools", "--plugins", "nowhere.json")
    assert (ran.code, ran.out) == (2, "")
    assert "nowhere.json' does not exist" in ran.err


def test_every_fault_of_a_file_is_told_and_the_first_is_the_json_error(workshop: Any, cyrene: Run) -> None:
    (workshop.folder / "cyrene.toml").write_text('[danger]\nhigh = "no"\n[tols]\n')
    (workshop.folder / "cyrene.toml").chmod(0o600)
    ran = cyrene("tools", "--json")
    assert ran.code == 2
    assert "[tols]" in ran.err
    assert "'high' must be" in ran.err
    assert ran.document["error"]["where"] == "cyrene.toml line 2, danger.high"


def test_an_unexpected_error_is_a_sentence_with_an_id_and_no_traceback(
    greeter: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cyrene_host.host.listing.Listing.tools", lambda *_, **__: 1 / 0)
    ran = cyrene("tools")
    assert (ran.code, ran.out) == (1, "")
    assert re.match(r"Cyrene itself failed: ZeroDivisionError: division by zero \[err_[0-9a-f]{8}\]\n", ran.err)
    assert "mend:  run it again with --debug" in ran.err
    assert "Traceback" not in ran.err
    assert "Traceback" in cyrene("tools", "--debug").err


def test_a_missing_package_is_named(greeter: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cyrene_host.cli.health", raising=False)
    monkeypatch.setitem(sys.modules, "cyrene_host.cli.waiting", None)
    ran = cyrene("health")
    assert ran.code == 1
    assert ran.err.startswith("a package that Cyrene needs is missing: 'cyrene_host.cli.waiting'\n")
    assert "`cyrene doctor`" in ran.err


def test_debug_shows_the_whole_log(greeter: Any, cyrene: Run) -> None:
    quiet, loud = cyrene("call", "greet"), cyrene("call", "greet", "--debug")
    assert "INFO cyrene.plugins: " not in quiet.err
    assert "INFO cyrene.plugins: plugin 'greeter' is started" in loud.err
    assert quiet.out == loud.out


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_chinese_is_written_in_every_locale(locale: str, greeter: Any) -> None:
    surroundings = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = greeter.process("call", "greet", "name=开拓者", **surroundings)
    assert (ran.code, ran.out) == (0, "你好 开拓者\n")


@pytest.mark.parametrize(
    ("words", "code"), [(["tools"], 1), (["tools", "--json"], 1), (["wat", "--json"], 1), (["call", "greet"], 1)]
)
def test_a_reader_that_has_gone_is_no_error_message(words: list[str], code: int, greeter: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "cyrene_host.cli", *words],
        cwd=greeter.folder, env=greeter.environment, stdout=writing, stderr=subprocess.PIPE, timeout=30, check=False,
    )  # fmt: skip
    os.close(writing)
    assert ended.returncode == code
    assert b"BrokenPipe" not in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_command_line_that_is_no_text_is_refused_and_not_a_crash(greeter: Any) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "cyrene_host.cli", "call", "greet", b"name=\xff\xfe"],
        cwd=greeter.folder, env=greeter.environment, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("closed", ["1", "2", "0"])
def test_a_stream_that_is_closed_from_the_start_is_done_without(closed: str, tmp_path: Path) -> None:
    script = f'"$0" -m cyrene_host.cli --version {closed}>&-'
    ended = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, check=False, cwd=tmp_path)

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_page_of_the_commands_has_a_heading_for_each() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## `cyrene (\w+)", page, re.MULTILINE))
    assert headings == set(COMMANDS)
