"""plugins.json is read with every fault at once; a fault inside an entry leaves the others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.faults import FileFault
from cyrene_host.catalog.plugins_file import (
    EntryFault,
    PluginsFile,
    PluginsFileError,
    find_plugins_file,
    read_plugins_file,
)
from cyrene_sdk.types import DangerLevel

POSIX = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def _write(folder: Path, content: object) -> Path:
    path = folder / "plugins.json"
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def _read(folder: Path, content: object) -> PluginsFile:
    return read_plugins_file(_write(folder, content))


def _refused(folder: Path, content: object) -> PluginsFileError:
    with pytest.raises(PluginsFileError) as caught:
        _read(folder, content)
    return caught.value


def _faults(folder: Path, **keys: Any) -> list[tuple[str, str, str | None]]:
    """The faults of one entry `x` as (pointer inside the entry, what, mend)."""
    read = _read(folder, [{"name": "x", **keys}])
    assert bool(read.faults) != bool(read.entries)
    return [(fault.pointer.removeprefix("/0"), fault.what, fault.mend) for fault in read.faults]


def test_an_entry_has_the_documented_defaults(folder: Path) -> None:
    read = _read(folder, {"plugins": [{"name": "hello"}]})
    (entry,) = read.entries
    assert dict(entry) | {"limits": None} == {
        "name": "hello", "import_": None, "path": None, "class_": None, "python": None, "mcp": None, "enabled": True,
        "config": {}, "runtime": "process", "activation": "eager", "on_failure": "continue", "trust": "listed",
        "tools": {}, "limits": None, "pin": None, "permissions": None,
    }  # fmt: skip
    assert dict(entry.limits) == {
        "load_s": 30, "init_s": 30, "start_s": 30, "stop_s": 10, "health_timeout_s": 5, "kill_grace_s": 2,
        "idle_s": 60, "max_duration_s": 600, "memory_mb": 1024, "cpu_seconds": None, "open_files": 256,
        "concurrency": 64, "queue_size": 256,
    }  # fmt: skip
    assert (read.faults, read.entry_points, read.notes) == ((), "listed", ())


def test_every_key_is_read(folder: Path) -> None:
    keys: dict[str, Any] = {
        "name": "my-hello_2",
        "import": "cyrene_hello.plugin",
        "class": "HelloPlugin",
        "path": "plugins/hello",
        "python": ".venv",
        "enabled": False,
        "config": {"key": {"$env": "KEY"}, "deep": [1, {"a": None}]},
        "activation": "lazy",
        "on_failure": "abort",
        "trust": "full",
        "tools": {"*": {"enabled": False}, "hello": {"danger_level": "high", "alias": "hi-1", "triggers": ["/x/"]}},
        "limits": {"load_s": 0.5, "cpu_seconds": None},
        "pin": {"version": "1.0", "sha256": "0" * 64},
        "permissions": {"network": True, "read": ["a"], "write": [], "exec": False},
    }
    (entry,) = _read(folder, [keys]).entries
    assert (entry.import_, entry.class_, entry.path) == ("cyrene_hello.plugin", "HelloPlugin", "plugins/hello")
    assert entry.config == keys["config"]
    assert entry.tools["hello"].danger_level is DangerLevel.HIGH
    assert entry.tools["hello"].triggers == ("/x/",)
    assert entry.limits.model_fields_set == {"load_s", "cpu_seconds"}
    assert entry.permissions is not None
    assert entry.permissions.read == ("a",)


def test_an_mcp_server_is_a_program_or_a_url(folder: Path) -> None:
    read = _read(
        folder,
        [
            {"name": "a", "mcp": {"command": "mcp-files", "args": ["--root", "."], "env": {"KEY": {"$env": "KEY"}}}},
            {"name": "b", "mcp": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}}},
        ],
    )
    assert read.faults == ()
    program, remote = (entry.mcp for entry in read.entries)
    assert program is not None
    assert remote is not None
    assert (program.command, program.args, program.env) == ("mcp-files", ("--root", "."), {"KEY": {"$env": "KEY"}})
    assert (remote.url, remote.headers) == ("https://example.org/mcp", {"Authorization": "Bearer x"})


def test_an_entry_knows_its_place_and_secrets_are_not_in_its_repr(folder: Path) -> None:
    text = '{"plugins": [\n {"name": "a"},\n\n {"name": "b",\n  "config": {"key": "hunter22"}}]}'
    read = _read(folder, text)
    assert [entry.where for entry in read.entries] == [
        "plugins.json line 2, /plugins/0",
        "plugins.json line 4, /plugins/1",
    ]
    assert "hunter22" not in repr(read.entries)


def test_struct_is_another_spelling_of_class(folder: Path) -> None:
    read = _read(
        folder,
        [
            {"name": "a", "import": "m", "struct": "A"},
            {"name": "b", "import": "m", "struct": "A", "class": "A"},
            {"name": "c", "import": "m", "struct": "A", "class": "B"},
        ],
    )
    assert [entry.class_ for entry in read.entries] == ["A", "A"]
    (fault,) = read.faults
    assert str(fault) == (
        "plugin 'c': 'struct' is another spelling of 'class', and the two differ\n"
        "  where: plugins.json line 16, /2/struct\n"
        "  mend:  keep one of them"
    )


def test_every_fault_of_a_file_is_told_at_once_and_the_others_go_on(folder: Path) -> None:
    text = """{
  "plugins": [
    { "name": "good", "import": "cyrene_good" },
    { "name": "bad", "runtim": "inline",
      "limits": { "init_s": 0, "ini_s": 1 },
      "enabled": "yes",
      "config": { "key": { "$env": "A", "b": 1 } } },
    { "name": "worse", "tools": { "hello": { "danger_level": "hihg" } } },
    "hello",
    { "name": "also-good" }
  ]
}"""
    read = _read(folder, text)
    assert [entry.name for entry in read.entries] == ["good", "also-good"]
    assert [(fault.name, fault.line, fault.pointer) for fault in read.faults] == [
        ("bad", 7, "/plugins/1/config/key"),
        ("bad", 6, "/plugins/1/enabled"),
        ("bad", 5, "/plugins/1/limits/init_s"),
        ("bad", 5, "/plugins/1/limits/ini_s"),
        ("bad", 4, "/plugins/1/runtim"),
        ("worse", 8, "/plugins/2/tools/hello/danger_level"),
        ("entry-4", 9, "/plugins/3"),
    ]
    assert all(isinstance(fault, EntryFault) and fault.mend for fault in read.faults)
    together = read.faults_by_plugin()
    assert list(together) == ["bad", "worse", "entry-4"]
    assert together["bad"].faults == read.faults[:5]
    assert together["bad"].what == "5 faults, the first: a reference to a secret has no other key, but this has 'b'"
    assert str(together["worse"]) == (
        "plugin 'worse': 'danger_level' must be 'low', 'medium' or 'high', not 'hihg'\n"
        "  where: plugins.json line 8, /plugins/2/tools/hello/danger_level\n"
        "  mend:  did you mean 'high'?"
    )


@pytest.mark.parametrize(
    ("keys", "pointer", "what", "mend"),
    [
        ({"runtim": "x"}, "/runtim", "unknown key 'runtim'", "did you mean 'runtime'?"),
        ({"Config": {}}, "/Config", "unknown key 'Config'", "did you mean 'config'?"),
        ({"pin": {"q": 1}}, "/pin/q", "unknown key 'q'", "known keys: version, sha256"),
        ({"tools": {"a": {"timeout": 1}}}, "/tools/a/timeout", "unknown key 'timeout'", "did you mean 'timeout_ms'?"),
        (
            {"enabled": "yes"}, "/enabled", "'enabled' must be true or false, not 'yes'",
            "write another value, or leave it out for the default true",
        ),
        ({"limits": 3}, "/limits", "'limits' must be an object, not 3", "write an object"),
        ({"config": [1]}, "/config", "'config' must be an object, not a list", "write an object"),
        ({"import": 3}, "/import", "'import' must be a string, not 3", "write a string"),
        (
            {"permissions": {"read": "a"}}, "/permissions/read", "'read' must be a list, not 'a'",
            "write a list",
        ),
        (
            {"permissions": {"read": ["a", 3]}}, "/permissions/read/1", "2. value of 'read' must be a string, not 3",
            "write a string",
        ),
        (
            {"limits": {"memory_mb": 1.5}}, "/limits/memory_mb", "'memory_mb' must be a whole number, not 1.5",
            "write another value, or leave it out for the default 1024",
        ),
        (
            {"limits": {"queue_size": -1}}, "/limits/queue_size", "'queue_size' must be at least 0, not -1",
            "write another value, or leave it out for the default 256",
        ),
        ({"runtime": "thread"}, "/runtime", "'runtime' must be 'process' or 'inline', not 'thread'",
         "write 'process' or 'inline'"),
        ({"path": ""}, "/path", "'path' must be a string that is not empty, not ''",
         "write a string that is not empty"),
        ({"python": "x" * 90 + "y", "trust": "y" * 90}, "/trust",
         f"'trust' must be 'listed' or 'full', not '{'y' * 78}…", "write 'listed' or 'full'"),
        (
            {"tools": {"a": {"alias": "say hi"}}}, "/tools/a/alias", "'alias' is no tool name: 'say hi'",
            "use 1 to 64 letters, digits, '_' and '-'",
        ),
        (
            {"tools": {"*": {"alias": "hi"}}}, "/tools", "'alias' under '*' would name every tool alike",
            "move it to one tool",
        ),
        (
            {"pin": {"sha256": "abc"}}, "/pin/sha256", "'sha256' is no SHA-256 digest",
            "write 64 hexadecimal digits in lower case",
        ),
        (
            {"import": "git.yeij.top/AskaEth/Cyrene-Plugins/my-hello"}, "/import",
            "'import' is a Go import path or a file: 'git.yeij.top/AskaEth/Cyrene-Plugins/my-hello'",
            "give the Python module, such as 'my_hello'",
        ),
        (
            {"import": "github.com"}, "/import", "'import' is a Go import path or a file: 'github.com'",
            "give the Python module, such as 'cyrene_hello'",
        ),
        (
            {"import": "a.b:C"}, "/import", "'import' is no Python module: 'a.b:C'",
            'give the Python module: "import": "a.b", "class": "C"',
        ),
        (
            {"import": "os; x"}, "/import", "'import' is no Python module: 'os; x'",
            "give the Python module: a dotted name such as 'cyrene_hello'",
        ),
        (
            {"import": "a..b"}, "/import", "'import' is no Python module: 'a..b'",
            "give the Python module: a dotted name such as 'cyrene_hello'",
        ),
        (
            {"import": "a.import"}, "/import", "'import' is no Python module: 'a.import'",
            "give the Python module: a dotted name such as 'cyrene_hello'",
        ),
        (
            {"class": "a.B"}, "/class", "the class is no Python identifier: 'a.B'",
            "give the class's name, such as 'HelloPlugin'",
        ),
        (
            {"struct": "&Hello{}"}, "/struct", "the class is no Python identifier: '&Hello{}'",
            "give the class's name, such as 'HelloPlugin'",
        ),
        (
            {"python": ".venv", "runtime": "inline"}, "/runtime",
            "'python' means another process, but 'runtime' is 'inline'", "remove 'runtime' or 'python'",
        ),
        (
            {"mcp": {"command": "x"}, "runtime": "inline"}, "/runtime",
            "'mcp' means another process, but 'runtime' is 'inline'", "remove 'runtime' or 'mcp'",
        ),
        (
            {"mcp": {"command": "x"}, "import": "a", "struct": "B"}, "/mcp", "'mcp' is instead of 'import', 'class'",
            "keep 'mcp' or the Python code, or make two entries",
        ),
        (
            {"mcp": {}}, "/mcp", "an MCP server needs exactly one of 'command' and 'url'", "keep one of the two",
        ),
        (
            {"mcp": {"command": "a", "url": "http://b"}}, "/mcp",
            "an MCP server needs exactly one of 'command' and 'url'", "keep one of the two",
        ),
        (
            {"mcp": {"url": "http://b", "args": ["x"]}}, "/mcp",
            "'args' and 'env' belong to 'command', 'headers' to 'url'", "remove the keys of the other one",
        ),
        (
            {"mcp": {"command": "a", "headers": {"x": "y"}}}, "/mcp",
            "'args' and 'env' belong to 'command', 'headers' to 'url'", "remove the keys of the other one",
        ),
        (
            {"mcp": {"url": "file:///etc"}}, "/mcp/url", "'url' is no HTTP address: 'file:///etc'",
            "begin it with https:// or http://",
        ),
        (
            {"mcp": {"command": "a", "env": {"KEY": 3}}}, "/mcp/env/KEY",
            "the value must be a string or a reference to a secret", 'write "…" or {"$env": "NAME"}',
        ),
        (
            {"mcp": {"command": "a", "env": {"KEY": {"$env": 3}}}}, "/mcp/env/KEY",
            "'$env' must be a name, as a string that is not empty", "give the name",
        ),
    ],
)  # fmt: skip
def test_a_fault_of_an_entry_says_what_where_and_how_to_mend(
    folder: Path, keys: dict[str, Any], pointer: str, what: str, mend: str
) -> None:
    assert _faults(folder, **keys) == [(pointer, what, mend)]


def test_a_wrong_value_that_may_be_a_secret_is_not_shown(folder: Path) -> None:
    (fault,) = _faults(folder, mcp={"command": "a", "env": "hunter22"})
    assert fault[:2] == ("/mcp/env", "'env' must be an object, not this value")


@pytest.mark.parametrize("path", ["../outside", "/etc", "a/../../b", "link", "nul\0"])
def test_a_path_never_leads_out_of_the_folder(folder: Path, path: str) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(folder)
    (fault,) = _faults(inside, path=path)
    assert fault[0] == "/path"
    assert fault[1].startswith("'path' leads out of the folder of plugins.json: ")


def test_a_link_inside_the_folder_may_be_followed(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to(folder / "real")
    assert _read(folder, [{"name": "x", "path": "link"}, {"name": "y", "path": "."}]).faults == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("My Hello", "did you mean 'my-hello'? "), ("a.b", "did you mean 'a-b'? "), ("-a", "did you mean 'a'? "),
     ("你好", ""), ("", "")],
)  # fmt: skip
def test_a_name_that_no_tool_id_can_begin_with_is_refused_with_the_rule(folder: Path, name: str, hint: str) -> None:
    (fault,) = _read(folder, [{"name": name}]).faults
    assert fault.what == f"'{name}' is no plugin name"
    rule = "use up to 48 lower-case letters, digits, '-' and '_', beginning with a letter or digit"
    assert fault.mend == hint + rule


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"import": "cyrene_weather"}, "weather"),
        ({"import": "acme.Weather"}, "weather"),
        ({"path": "plugins/my-notes/"}, "my-notes"),
        ({"path": "plugins/notes", "import": "acme"}, "notes"),
    ],
)
def test_a_name_that_is_left_out_is_derived(folder: Path, keys: dict[str, str], name: str) -> None:
    assert [entry.name for entry in _read(folder, [keys]).entries] == [name]


def test_a_name_that_cannot_be_derived_is_asked_for(folder: Path) -> None:
    (fault,) = _read(folder, [{"class": "A"}]).faults
    assert (fault.name, fault.pointer, fault.line) == ("entry-1", "/0/name", 2)
    assert fault.what == "key 'name' is missing"
    assert fault.mend == ("add 'name': the plugin's name in this host: lower-case letters, digits, `-` and `_`")


def test_a_misspelt_key_is_not_told_again_as_a_missing_one(folder: Path) -> None:
    (fault,) = _read(folder, [{"nmae": "hello"}]).faults
    assert fault.what == "unknown key 'nmae'"
    assert fault.mend == "did you mean 'name'?"


def test_a_key_given_twice_blocks_only_its_entry(folder: Path) -> None:
    read = _read(folder, '[\n{"name": "a",\n"limits": {"init_s": 1,\n"init_s": 2}},\n{"name": "b"}]')
    assert [entry.name for entry in read.entries] == ["b"]
    (fault,) = read.faults
    assert (fault.name, fault.pointer, fault.line) == ("a", "/0/limits/init_s", 4)
    assert fault.what == "key 'init_s' is given twice, first on line 3"


def test_two_entries_alike_are_one(folder: Path) -> None:
    read = _read(folder, '[{"name": "a", "import": "m", "class": "A"},\n{"name": "a", "import": "m", "struct": "A"}]')
    assert [entry.where for entry in read.entries] == ["plugins.json line 1, /0"]
    assert read.faults == ()
    assert read.notes == ("plugin 'a' is listed twice alike, on lines 1 and 2: the two are one",)


def test_two_entries_on_one_line_are_placed_once(folder: Path) -> None:
    read = _read(folder, '[{"name": "a"}, {"name": "a"}]')
    assert read.notes == ("plugin 'a' is listed twice alike, on line 1: the two are one",)


def test_a_second_entry_that_says_otherwise_is_left_to_the_catalog(folder: Path) -> None:
    read = _read(folder, '[{"name": "a", "import": "one"},\n{"name": "a", "import": "two"}]')
    assert [entry.import_ for entry in read.entries] == ["one"]
    assert [(entry.import_, entry.where) for entry in read.repeated] == [("two", "plugins.json line 2, /1")]
    assert read.faults == ()


def test_a_second_entry_does_not_stand_in_for_a_faulty_first(folder: Path) -> None:
    read = _read(folder, '[{"name": "a", "x": 1},\n{"name": "a"}]')
    assert read.entries == ()
    assert [fault.line for fault in read.faults] == [1, 2]


@pytest.mark.parametrize(
    ("content", "pointer", "what", "mend"),
    [
        ("3", "", "plugins.json must be a list of plugins, or an object with them", 'write {"plugins": []}'),
        ({"plugin": []}, "/plugin", "unknown key 'plugin'", "did you mean 'plugins'?"),
        ({"plugins": {}}, "/plugins", "'plugins' must be a list, not an object",
         "write another value, or leave it out for the default []"),
        ({"entry_points": "al"}, "/entry_points", "'entry_points' must be 'listed' or 'all', not 'al'",
         "did you mean 'all'?"),
        ({"name": "hello"}, "/name", "unknown key 'name'", 'put the entry into a list: {"plugins": [{"name": …}]}'),
        ('{"plugins": [], "plugins": []}', "/plugins", "key 'plugins' is given twice, first on line 1",
         "remove one of the two"),
    ],
)  # fmt: skip
def test_a_fault_of_the_top_level_refuses_the_file(
    folder: Path, content: object, pointer: str, what: str, mend: str
) -> None:
    (fault,) = _refused(folder, content).faults
    assert isinstance(fault, FileFault)
    assert (fault.pointer, fault.what, fault.mend) == (pointer, what, mend)


def test_a_refused_file_tells_the_faults_of_its_entries_too(folder: Path) -> None:
    error = _refused(folder, '{"plugin": 1,\n"plugins": [{"name": "a", "x": 1}]}')
    assert [fault.what for fault in error.faults] == ["unknown key 'plugin'", "unknown key 'x'"]
    assert error.what == "2 faults, the first: unknown key 'plugin'"
    assert str(error).count("  where: plugins.json line ") == 2


def test_a_syntax_fault_refuses_the_file(folder: Path) -> None:
    error = _refused(folder, '{"plugins": [\n {"name": "a"},\nhello]}')
    assert str(error) == (
        "plugins.json is no valid JSON: expecting value\n"
        "  where: plugins.json line 3, column 1\n"
        "  mend:  put a JSON value here"
    )


@POSIX
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_refused_with_all_its_faults(folder: Path, mode: int) -> None:
    path = _write(folder, {"plugin": []})
    path.chmod(mode)
    with pytest.raises(PluginsFileError) as caught:
        read_plugins_file(path)
    distrust, unknown = caught.value.faults
    assert str(distrust) == (
        f"'{path}' may be written by others than its owner (mode {mode:04o}), so it is not trusted\n"
        f"  where: {path}\n"
        f"  mend:  chmod go-w '{path}'"
    )
    assert unknown.what == "unknown key 'plugin'"


@POSIX
def test_a_file_that_others_may_write_is_refused_though_nothing_else_is_wrong(folder: Path) -> None:
    path = _write(folder, [{"name": "hello"}])
    path.chmod(0o666)
    with pytest.raises(PluginsFileError) as caught:
        read_plugins_file(path)
    assert len(caught.value.faults) == 1


@POSIX
def test_a_file_that_others_may_write_tells_its_syntax_fault_too(folder: Path) -> None:
    path = _write(folder, "[")
    path.chmod(0o666)
    with pytest.raises(PluginsFileError) as caught:
        read_plugins_file(path)
    assert len(caught.value.faults) == 2


def test_what_is_no_readable_file_is_refused(folder: Path) -> None:
    with pytest.raises(PluginsFileError, match="does not exist"):
        read_plugins_file(folder / "absent.json")
    with pytest.raises(PluginsFileError) as caught:
        read_plugins_file(folder)
    assert caught.value.what == f"'{folder}' is a folder"
    large = _write(folder, "[" + " " * 1_048_576 + "]")
    with pytest.raises(PluginsFileError) as caught:
        read_plugins_file(large)
    assert caught.value.what == f"'{large}' is larger than 1,048,576 bytes"
    loop = folder / "loop.json"
    loop.symlink_to(loop)
    with pytest.raises(PluginsFileError, match="cannot be read: Too many levels of symbolic links"):
        read_plugins_file(loop)


@POSIX
def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "plugins.json")
    with pytest.raises(PluginsFileError, match="is no regular file"):
        read_plugins_file(folder / "plugins.json")


def test_the_file_is_found_at_the_given_path_then_the_variable_then_the_current_folder(folder: Path) -> None:
    for name in ("given.json", "variable.json", "plugins.json"):
        (folder / name).write_text("[]", encoding="utf-8")
    env = {"CYRENE_PLUGINS": "variable.json"}
    assert find_plugins_file(Path("given.json"), env, folder) == folder / "given.json"
    assert find_plugins_file(None, env, folder) == folder / "variable.json"
    assert find_plugins_file(None, {"CYRENE_PLUGINS": ""}, folder) == folder / "plugins.json"
    assert find_plugins_file(None, {}, folder / "elsewhere") is None


def test_a_path_that_was_given_and_is_absent_is_an_error(folder: Path) -> None:
    with pytest.raises(PluginsFileError) as caught:
        find_plugins_file(Path("gone.json"), {}, folder)
    path = folder / "gone.json"
    mend = "correct --plugins, or the path given to Host.open"
    assert str(caught.value) == f"'{path}' does not exist\n  where: {path}\n  mend:  {mend}"
    with pytest.raises(PluginsFileError) as caught:
        find_plugins_file(None, {"CYRENE_PLUGINS": "gone.json"}, folder)
    assert caught.value.mend == "correct or unset the environment variable CYRENE_PLUGINS"


def test_reading_imports_nothing_that_an_entry_names(folder: Path) -> None:
    (folder / "marked_plugin.py").write_text("raise SystemExit", encoding="utf-8")
    _read(folder, [{"name": "x", "import": "marked_plugin", "path": "."}])
    assert "marked_plugin" not in sys.modules


def test_an_entry_without_a_file_can_be_made(folder: Path) -> None:
    entry = PluginEntry(name="hello")
    assert (entry.name, entry.where) == ("hello", "")
