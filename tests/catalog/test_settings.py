"""Settings come from command line, environment and cyrene.toml, in this order, with every fault at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.settings import Settings, SettingsError, find_settings_file, limits_for, read_settings


def _write(folder: Path, text: str) -> Path:
    path = folder / "cyrene.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def _refused(path: Path | None, env: dict[str, str], overrides: dict[str, object] | None = None) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read_settings(path, env, overrides)
    return caught.value


def test_the_defaults_are_the_documented_ones() -> None:
    settings = read_settings(None, {})
    assert settings.model_dump() == {
        "host": {"state_dir": None, "store_url": None, "audit": True},
        "hooks": {"enabled": ()},
        "danger": {"low": "allow", "medium": "allow", "high": "confirm", "undeclared": "medium"},
        "serve": {"host": "127.0.0.1", "port": 8420, "allowed_hosts": ()},
        "model": {"base_url": None, "model": None, "api_key": None, "profile": None},
        "tools": {
            "smart_select": True, "followup_ai_reply": True, "rule_prompt_enabled": True, "loose_image_tool": False,
            "async_execute": False, "allow": ("*",), "deny": (), "select": "strict", "names": None,
        },
        "chat": {
            "max_tool_rounds": 10, "repeat_guard": True, "repeat_limit": 3, "empty_output_retries": 1, "turn_s": 300,
            "wait_s": 30, "concurrency": 8, "result_chars": 20_000,
        },
        "limits": {
            "load_s": 30, "init_s": 30, "start_s": 30, "stop_s": 10, "health_timeout_s": 5, "kill_grace_s": 2,
            "idle_s": 60, "max_duration_s": 600, "memory_mb": 1024, "cpu_seconds": None, "open_files": 256,
            "concurrency": 64, "queue_size": 256, "stop_total_s": 30, "health_every_s": 30,
        },
    }  # fmt: skip


def test_command_line_goes_before_environment_before_file_before_default(tmp_path: Path) -> None:
    path = _write(tmp_path, '[danger]\nlow = "deny"\nmedium = "deny"\nhigh = "deny"\n')
    env = {"CYRENE_DANGER__MEDIUM": "confirm", "CYRENE_DANGER__HIGH": "confirm"}
    danger = read_settings(path, env, {"danger.high": "allow"}).danger
    assert (danger.low, danger.medium, danger.high, danger.undeclared) == ("deny", "confirm", "allow", "medium")


@pytest.mark.parametrize(
    ("variable", "text", "table", "key", "value"),
    [
        ("CYRENE_TOOLS__SMART_SELECT", "false", "tools", "smart_select", False),
        ("CYRENE_TOOLS__SELECT", "lenient", "tools", "select", "lenient"),
        ("CYRENE_TOOLS__NAMES", '"qualified"', "tools", "names", "qualified"),
        ("CYRENE_TOOLS__DENY", '["a.*", "b.c"]', "tools", "deny", ("a.*", "b.c")),
        ("CYRENE_SERVE__PORT", "0", "serve", "port", 0),
        ("CYRENE_SERVE__HOST", "::1", "serve", "host", "::1"),
        ("CYRENE_CHAT__TURN_S", "1.5", "chat", "turn_s", 1.5),
        ("CYRENE_MODEL__MODEL", "4.1", "model", "model", "4.1"),
        ("CYRENE_MODEL__API_KEY", "12345", "model", "api_key", "12345"),
        ("CYRENE_MODEL__API_KEY", '"1"\nx = 2', "model", "api_key", '"1"\nx = 2'),
        ("CYRENE_MODEL__API_KEY", '{"$env" = "KEY"}', "model", "api_key", {"$env": "KEY"}),
        ("CYRENE_MODEL__API_KEY", "[" * 9999, "model", "api_key", "[" * 9999),
        ("CYRENE_MODEL__API_KEY", "9" * 5000, "model", "api_key", "9" * 5000),
        ("CYRENE_HOST__STATE_DIR", "2026-01-01", "host", "state_dir", "2026-01-01"),
    ],
)
def test_the_text_of_a_variable_is_a_toml_value_or_plain_text(
    variable: str, text: str, table: str, key: str, value: object
) -> None:
    assert getattr(getattr(read_settings(None, {variable: text}), table), key) == value
    assert getattr(getattr(read_settings(None, {}, {f"{table}.{key}": text}), table), key) == value


def test_other_variables_of_ours_are_no_settings() -> None:
    env = {"CYRENE_PLUGINS": "x", "CYRENE_CONFIG": "x", "CYRENE_SLOW": "3", "CYRENE_TEST_REQUIRE": "a", "PATH": "/"}
    assert read_settings(None, env) == read_settings(None, {})


def test_every_fault_of_every_source_is_told_at_once(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        """port = 3
# smart_selct = 1
[tools]
smart_selct = true
allow = [
  "smart_selct",
  3,
]
concurrency = 9
[tool]
x = 1
[chat]
turn_s = inf
max_tool_rounds = 2.5
[danger]
high = "alow"
model = 3
""",
    )
    env = {"CYRENE_SERV__PORT": "2", "CYRENE_SERVE__PORT": "many", "CYRENE_CHAT__REPEAT": "1"}
    error = _refused(path, env, {"chat.result_chars": "-3"})
    assert {(fault.what, fault.where, fault.mend) for fault in error.faults} == {
        ("unknown key 'port'", "cyrene.toml line 1, port", "put it under [serve]"),
        (
            "unknown key 'smart_selct' in [tools]", "cyrene.toml line 4, tools.smart_selct",
            "did you mean 'smart_select'?",
        ),
        ("2. value of 'allow' must be a string, not 3", "cyrene.toml line 5, tools.allow", "write a string"),
        ("unknown key 'concurrency'", "cyrene.toml line 9, tools.concurrency", "put it under [chat] or [limits]"),
        ("unknown table [tool]", "cyrene.toml line 10, tool", "did you mean 'tools'?"),
        (
            "'turn_s' must be a finite number, not Infinity", "cyrene.toml line 13, chat.turn_s",
            "write another value, or leave it out for the default 300",
        ),
        (
            "'max_tool_rounds' must be a whole number, not 2.5", "cyrene.toml line 14, chat.max_tool_rounds",
            "write another value, or leave it out for the default 10",
        ),
        (
            "'high' must be 'allow', 'confirm' or 'deny', not 'alow'", "cyrene.toml line 16, danger.high",
            "did you mean 'allow'?",
        ),
        ("unknown key 'model'", "cyrene.toml line 17, danger.model", "put it under [model]"),
        ("unknown table [serv]", "environment variable CYRENE_SERV__PORT", "did you mean 'serve'?"),
        (
            "'port' must be a whole number, not 'many'", "environment variable CYRENE_SERVE__PORT",
            "write another value, or leave it out for the default 8420",
        ),
        ("unknown key 'repeat' in [chat]", "environment variable CYRENE_CHAT__REPEAT", "did you mean 'repeat_limit'?"),
        (
            "'result_chars' must be greater than 0, not -3", "--set or overrides, chat.result_chars",
            "write another value, or leave it out for the default 20000",
        ),
    }  # fmt: skip
    assert error.what.startswith("13 faults, the first: ")


@pytest.mark.parametrize(
    ("key", "value", "mend"),
    [
        ("danger", {"high": "allow"}, "name table and key, such as 'danger.low' or 'danger.medium' or 'danger.high'"),
        ("high", "allow", "name table and key, such as 'danger.high'"),
        ("loud", True, "name table and key, such as 'danger.high'"),
    ],
)
def test_an_override_that_names_no_setting_says_how_to_name_one(key: str, value: object, mend: str) -> None:
    error = _refused(None, {}, {key: value})
    assert str(error) == f"'{key}' is no setting\n  where: --set or overrides\n  mend:  {mend}"


def test_a_fault_is_told_in_four_parts(tmp_path: Path) -> None:
    error = _refused(_write(tmp_path, "[serve]\nport = 65536\n"), {})
    assert str(error) == (
        "'port' must be at most 65535, not 65536\n"
        "  where: cyrene.toml line 2, serve.port\n"
        "  mend:  write another value, or leave it out for the default 8420"
    )


def test_a_table_that_is_none_is_told(tmp_path: Path) -> None:
    error = _refused(_write(tmp_path, "tools = 3\n"), {"CYRENE_TOOLS__SELECT": "strict"})
    assert (error.what, error.where) == ("'tools' must be a table, not 3", "cyrene.toml line 1, tools")


def test_a_key_whose_spelling_hides_its_line_is_told_without_one(tmp_path: Path) -> None:
    error = _refused(_write(tmp_path, '[tools]\n"sel\\u0065kt" = 3\n'), {})
    assert (error.what, error.where) == ("unknown key 'selekt' in [tools]", "cyrene.toml, tools.selekt")


def test_a_wrong_key_of_a_secret_is_not_shown(tmp_path: Path) -> None:
    error = _refused(_write(tmp_path, "[model]\napi_key = 12345678\n"), {})
    assert "12345678" not in str(error)
    assert (error.what, error.where) == (
        "the value must be a string or a reference to a secret",
        "cyrene.toml line 2, model.api_key",
    )
    assert "hunter22" not in repr(read_settings(None, {"CYRENE_MODEL__API_KEY": "hunter22"}))


@pytest.mark.parametrize(
    ("text", "what", "where", "mend"),
    [
        (
            "[tools]\nselect = strict\n", "cyrene.toml is no valid TOML: Invalid value, column 10",
            "cyrene.toml line 2", "write key = value, with text in double quotes",
        ),
        (
            "[tools]\nselect = 1\nselect = 2\n", "cyrene.toml is no valid TOML: Cannot overwrite a value, column 11",
            "cyrene.toml line 3", "remove one of the two",
        ),
        (
            "x = " + "[" * 9999, "cyrene.toml is no valid TOML: maximum recursion depth exceeded",
            "cyrene.toml", "write key = value, with text in double quotes",
        ),
        (
            '[tools]\nselect = """', "cyrene.toml is no valid TOML: Unterminated string",
            "cyrene.toml line 2", "write key = value, with text in double quotes",
        ),
    ],
)  # fmt: skip
def test_a_syntax_fault_is_told_with_its_line(tmp_path: Path, text: str, what: str, where: str, mend: str) -> None:
    error = _refused(_write(tmp_path, text), {"CYRENE_TOOLS__SELEKT": "1"})
    syntax, other = error.faults
    assert (syntax.what.split(" while ")[0].split(" in ")[0], syntax.where, syntax.mend) == (what, where, mend)
    assert other.where == "environment variable CYRENE_TOOLS__SELEKT"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path, "")
    path.write_bytes(b'[host]\nstate_dir = "\xff"\n')
    error = _refused(path, {})
    assert (error.what, error.where) == ("cyrene.toml is not UTF-8 text", "cyrene.toml line 2")
    assert _refused(tmp_path, {}).what == f"'{tmp_path}' is a folder"


def test_a_file_with_a_byte_order_mark_and_windows_line_breaks_is_read(tmp_path: Path) -> None:
    path = _write(tmp_path, "")
    path.write_bytes(b"\xef\xbb\xbf[serve]\r\nport = 1\r\n")
    assert read_settings(path, {}).serve.port == 1


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path, "[serve]\nport = 1\n")
    path.chmod(0o666)
    assert _refused(path, {}).mend == f"chmod go-w '{path}'"


def test_the_file_is_found_at_the_given_path_then_the_variable_then_beside_plugins_json(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    for path in (tmp_path / "given.toml", tmp_path / "variable.toml", tmp_path / "cyrene.toml", beside / "cyrene.toml"):
        path.touch()
    env = {"CYRENE_CONFIG": "variable.toml"}
    plugins = beside / "plugins.json"

    def find(given: str | None, env: dict[str, str], plugins_file: Path | None) -> Path | None:
        return find_settings_file(Path(given) if given else None, env, plugins_file=plugins_file, cwd=tmp_path)

    assert find("given.toml", env, plugins) == tmp_path / "given.toml"
    assert find(None, env, plugins) == tmp_path / "variable.toml"
    assert find(None, {}, plugins) == beside / "cyrene.toml"
    assert find(None, {}, None) == tmp_path / "cyrene.toml"
    assert find(None, {}, tmp_path / "elsewhere" / "plugins.json") is None


def test_a_path_that_was_given_and_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        find_settings_file(Path("gone.toml"), {}, plugins_file=None, cwd=tmp_path)
    assert caught.value.what == f"'{tmp_path / 'gone.toml'}' does not exist"
    assert caught.value.mend == "correct --config, or the path given to Host.open"
    with pytest.raises(SettingsError) as caught:
        find_settings_file(None, {"CYRENE_CONFIG": "gone.toml"}, plugins_file=None, cwd=tmp_path)
    assert caught.value.mend == "correct or unset the environment variable CYRENE_CONFIG"


def test_the_state_folder_is_the_platform_s_or_starts_beside_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path, '[host]\nstate_dir = "state"\n')
    assert read_settings(path, {}).state_folder() == tmp_path / "state"
    assert read_settings(path, {}).folder == tmp_path
    assert read_settings(path, {"CYRENE_HOST__STATE_DIR": "~/x"}).state_folder() == Path("~/x").expanduser()
    default = read_settings(None, {}).state_folder()
    assert default.is_absolute()
    assert default.name == "cyrene"


def test_reading_settings_does_not_pay_for_the_platform_s_folders() -> None:
    script = (
        "import sys, cyrene_host.catalog.settings as s; s.read_settings(None, {}); print('platformdirs' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "False\n"


def test_limits_of_a_plugin_are_its_own_and_those_of_the_host_for_the_rest() -> None:
    settings = read_settings(None, {"CYRENE_LIMITS__INIT_S": "7", "CYRENE_LIMITS__CPU_SECONDS": "9"})
    own: dict[str, Any] = {"name": "x", "limits": {"load_s": 1, "cpu_seconds": None, "stop_s": 10}}
    limits = limits_for(PluginEntry.model_validate(own), settings)
    assert (limits.load_s, limits.init_s, limits.cpu_seconds, limits.stop_s, limits.start_s) == (1, 7, None, 10, 30)
    assert limits_for(PluginEntry(name="y"), settings).cpu_seconds == 9


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().serve.port = 1  # type: ignore[misc]
