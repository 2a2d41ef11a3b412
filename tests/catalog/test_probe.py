"""A plugin is described by an interpreter of its own, and whatever it does there the host gets an answer in time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cyrene_host.catalog import probe as probe_module
from cyrene_host.catalog.probe import ProbeError, interpreter_of, probe
from cyrene_host.catalog.sources import Source

MakeSource = Callable[..., Source]

PLUGIN = """
from cyrene_sdk import BasePlugin, PluginMetadata, tool

class Weather(BasePlugin):
    meta = PluginMetadata(name="weather", version="1.0.0")

    def init(self, config): raise AssertionError

    @tool
    def forecast(self, city: str) -> str:
        "Tell the weather."
        return city
"""


@pytest.fixture
def source_of(tmp_path: Path) -> MakeSource:
    """Return a function that writes a module and names it as a plugin's source."""

    def made(text: str, *, python: Path | None = None) -> Source:
        (tmp_path / "probed.py").write_text(text)
        return Source("path", "probed", None, tmp_path, None, None, "plugins.json line 3, /0", python=python)

    return made


@pytest.fixture
def answering(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that makes an interpreter whose program is the given text; FD is where it answers."""

    def made(text: str) -> Path:
        script = tmp_path / "python"
        script.write_text(f"#!{sys.executable}\nimport os, sys\nFD = int(sys.argv[-1])\n{text}\n")
        script.chmod(0o700)
        return script

    return made


def refused(source: Source, limit_s: float = 20) -> ProbeError:
    with pytest.raises(ProbeError) as caught:
        probe("weather", source, limit_s)
    return caught.value


def is_running(pid: str) -> bool:
    """Whether a process is there and has not ended; one that ended may wait for init to read its end."""
    try:
        return Path("/proc", pid, "stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_plugin_is_described_without_import_or_init_in_the_host(source_of: MakeSource) -> None:
    manifest = probe("weather", source_of(PLUGIN), 20)

    assert manifest["metadata"]["name"] == "weather"
    assert [tool["name"] for tool in manifest["tools"]] == ["forecast"]
    assert "probed" not in sys.modules


def test_a_plugin_that_fails_to_import_is_told_in_four_parts(source_of: MakeSource, tmp_path: Path) -> None:
    error = refused(source_of("raise ImportError('no libweather')"))

    assert str(error) == (
        "plugin 'weather': module 'probed' failed to import: ImportError: no libweather\n"
        f"  where: {tmp_path}/probed.py line 1\n"
        "  mend:  mend the plugin's code or install what it imports; `cyrene check` runs the same import"
    )
    assert error.stage == "load"
    assert error.trace.rstrip().endswith("ImportError: no libweather")


def test_an_error_without_a_place_has_that_of_the_entry(source_of: MakeSource) -> None:
    error = refused(source_of(PLUGIN + "\n    def tools(self): return None\n"))

    assert (error.stage, error.where) == ("tools", "plugins.json line 3, /0")


def test_a_plugin_that_ends_its_interpreter_is_told_with_what_it_printed_last(source_of: MakeSource) -> None:
    error = refused(source_of("import os, sys\nprint('no licence', file=sys.stderr, flush=True)\nos._exit(3)"))

    assert str(error) == (
        "plugin 'weather': its interpreter ended while loading it; it printed last: no licence\n"
        "  where: plugins.json line 3, /0\n"
        "  mend:  `cyrene check` runs the same import; limits.load_s in the entry is its limit"
    )


def test_a_plugin_that_loops_at_import_is_ended_at_its_limit(
    source_of: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: Callable[[float], float]
) -> None:
    monkeypatch.setattr(probe_module, "GRACE_S", 0.2)
    source = source_of(f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nwhile True: pass")
    begun = time.monotonic()
    error = refused(source, slow(1.5))

    assert time.monotonic() - begun < slow(5)
    assert error.what.startswith("'load' did not end within its limit of")
    pid = (tmp_path / "pid").read_text()
    assert not Path("/proc", pid).exists()


def test_a_limit_that_the_plugins_own_loop_can_hold_is_told_by_its_stage(source_of: MakeSource) -> None:
    body = "\n    async def metadata(self):\n        import asyncio\n        await asyncio.Event().wait()\n"

    assert refused(source_of(PLUGIN + body), 0.5).what == "'load' did not end within its limit of 0.5 s"


def test_processes_that_the_plugin_starts_are_gone_and_hold_up_no_answer(
    source_of: MakeSource, tmp_path: Path, slow: Callable[[float], float]
) -> None:
    text = f"""
import os, threading
pid = os.fork()
if pid == 0:
    threading.Event().wait()
open({str(tmp_path / "pid")!r}, 'w').write(str(pid))
"""
    begun = time.monotonic()
    manifest = probe("weather", source_of(text + PLUGIN), slow(10))

    assert manifest["metadata"]["name"] == "weather"
    assert time.monotonic() - begun < slow(5)
    pid = (tmp_path / "pid").read_text()
    while is_running(pid):  # killed when the answer comes, but perhaps still on its way out
        assert time.monotonic() - begun < slow(10)


def test_the_plugin_sees_no_variable_of_the_host_but_a_few(
    source_of: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_TOKEN", "secret")
    text = PLUGIN.replace('"1.0.0"', '"1.0.0", keywords=sorted(os.environ)')
    names = probe("weather", source_of("import os\n" + text), 20)["metadata"]["keywords"]

    assert "PATH" in names
    assert set(names) <= {*probe_module.KEPT_VARIABLES, "LC_CTYPE"}


@pytest.mark.parametrize(
    "answer",
    [
        b"no json\n",
        b"[]\n",
        b"{}\n",
        b'{"manifest": 3}\n',
        b'{"error": "x"}\n',
        b"[" * 200_000 + b"\n",
        b"\xff\n",
    ],
    ids=["text", "list", "empty", "number", "error", "deep", "bytes"],
)
def test_an_interpreter_that_answers_something_else_is_told(
    source_of: MakeSource, answering: Callable[[str], Path], answer: bytes
) -> None:
    python = answering(f"sys.stdin.read()\nos.write(FD, {answer[:20]!r} + b'[' * {max(0, len(answer) - 20)})\n")

    assert str(refused(source_of("", python=python))) == (
        "plugin 'weather': its interpreter answered no manifest\n"
        "  where: plugins.json line 3, /0\n"
        "  mend:  use the same cyrene-sdk there as the host has"
    )


def test_an_endless_answer_is_cut_off(
    source_of: MakeSource, answering: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "ANSWER_BYTES", 100_000)
    python = answering("while True: os.write(FD, b'x' * 65536)")

    assert str(refused(source_of("", python=python))) == (
        "plugin 'weather': its manifest has more than 100,000 bytes\n"
        "  where: plugins.json line 3, /0\n"
        "  mend:  shorten its definitions"
    )


def test_an_interpreter_that_reads_no_request_is_told(source_of: MakeSource, answering: Callable[[str], Path]) -> None:
    python = answering("os.close(0)\nsys.exit(3)")

    assert "its interpreter ended while loading it" in refused(source_of("", python=python)).what


def test_an_error_of_another_sdk_needs_not_all_its_parts(
    source_of: MakeSource, answering: Callable[[str], Path]
) -> None:
    python = answering("""os.write(FD, b'{"error": {"what": "too old"}}')""")
    error = refused(source_of("", python=python))

    assert (error.what, error.where) == ("too old", "plugins.json line 3, /0")


def test_an_interpreter_that_cannot_be_started_is_told(source_of: MakeSource, tmp_path: Path) -> None:
    error = refused(source_of("", python=tmp_path / "absent"))

    assert str(error) == (
        f"plugin 'weather': its interpreter '{tmp_path}/absent' cannot be started: "
        f"[Errno 2] No such file or directory: '{tmp_path}/absent'\n"
        "  where: plugins.json line 3, /0\n"
        "  mend:  correct 'python' in the entry: an interpreter or a virtual environment with cyrene-sdk"
    )


def test_no_descriptor_is_left_open(source_of: MakeSource, tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    probe("weather", source_of(PLUGIN), 20)
    refused(source_of("", python=tmp_path / "absent"))

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_interpreter_is_the_hosts_a_file_or_that_of_an_environment(tmp_path: Path) -> None:
    assert interpreter_of(None) == Path(sys.executable)
    assert interpreter_of(tmp_path / "python3.12") == tmp_path / "python3.12"
    assert interpreter_of(tmp_path) == tmp_path / "bin" / "python"


def test_what_a_decorator_refuses_is_told_once_with_its_own_place_and_mend(source_of: MakeSource) -> None:
    error = refused(source_of(PLUGIN.replace("city: str", "city")))

    assert error.what == "parameter 'city' of tool function 'forecast' has no type"
    assert error.where is not None
    assert error.where.startswith("Weather.forecast, ")
    assert error.mend == "write its type, such as `city: str`; it tells the model what to send"
