"""`cyrene call`: arguments, output, exit codes, approval at a terminal, Ctrl-C, and an end that nothing delays."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

TROUBLE = '''
    import asyncio
    import threading
    import time
    from pathlib import Path

    from cyrene_sdk import BasePlugin, Image, PluginMetadata, ToolResult, tool


    class TroublePlugin(BasePlugin):
        meta = PluginMetadata(name="trouble", version="1.0.0")

        def stop(self) -> None:
            (self.host.data_dir / "stopped").touch()

        @tool(danger_level="low")
        async def fail(self) -> str:
            """Fail."""
            return str(1 / 0)

        @tool(danger_level="low", timeout_ms=100)
        async def slow(self) -> str:
            """Sleep."""
            await asyncio.sleep(60)
            return "at last"

        @tool(danger_level="low")
        async def draw(self) -> ToolResult:
            """Draw."""
            return ToolResult(success=True, images=[Image(url="https://example.org/cat.png")])

        @tool(danger_level="low")
        async def steer(self) -> str:
            """Steer the terminal."""
            return "\\x1b[31mred\\x1b[0m"

        @tool(danger_level="low", timeout_ms=60000)
        async def wait(self, mark: str) -> str:
            """Wait."""
            Path(mark).write_text("begun")
            await asyncio.sleep(60)
            return "at last"

        @tool(danger_level="low", timeout_ms=100)
        def stuck(self) -> str:
            """Block a thread that no one can end."""
            threading.Thread(target=time.sleep, args=(60,), daemon=False).start()
            time.sleep(60)
            return "at last"

        @tool(danger_level="low", timeout_ms=60000)
        async def block(self, mark: str) -> str:
            """Block the event loop."""
            Path(mark).write_text("begun")
            time.sleep(60)
            return "at last"

        @tool(danger_level="low")
        async def count(self, numbers: list[int], deep: dict[str, bool], name: str) -> str:
            """Tell the arguments."""
            return repr((numbers, deep, name))
'''


@pytest.fixture
def trouble(workshop: Any) -> Any:
    """A workshop with a plugin that makes all kinds of trouble."""
    workshop.plugin("trouble", TROUBLE)
    workshop.list("trouble")
    return workshop


def test_the_output_alone_is_on_stdout_and_prints_of_plugins_are_not(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("call", "greet", "name=Ada")
    assert (ran.code, ran.out, ran.err) == (0, "你好 Ada\n", "INFO cyrene.plugin.greeter: greeting\n")


def test_a_tool_is_called_by_its_id_too(greeter: Any, cyrene: Run) -> None:
    assert cyrene("call", "greeter.greet", "name=").out == "你好 \n"


def test_values_are_typed_by_the_schema(trouble: Any, cyrene: Run) -> None:
    ran = cyrene("call", "count", "numbers=[1, 2]", 'deep={"a": true}', "name=7")
    assert (ran.code, ran.out) == (0, "([1, 2], {'a': True}, '7')\n")


def test_an_equals_sign_in_a_value_stays(greeter: Any, cyrene: Run) -> None:
    assert cyrene("call", "greet", "name=a=b").out == "你好 a=b\n"


def test_arguments_may_be_one_json_object(greeter: Any, cyrene: Run) -> None:
    assert cyrene("call", "greet", "--args", '{"name": "Ada", "times": 2}').out == "你好 Ada你好 Ada\n"


def test_a_dash_reads_the_json_object_from_stdin(greeter: Any, cyrene: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO('{"name": "开拓者"}'.encode())))
    assert cyrene("call", "greet", "--args", "-").out == "你好 开拓者\n"


@pytest.mark.parametrize(
    ("words", "what", "mend"),
    [
        (("Ada",), "'Ada' is no argument", "write it as key=value"),
        (("=Ada",), "'=Ada' is no argument", "write it as key=value"),
        (('{"name":"Ada"}',), "'{\"name\":\"Ada\"}' is no argument", "write --args '{\"name\":\"Ada\"}'"),
        (("name=a", "name=b"), "the argument 'name' is given twice", "write a list as name='[\"…\", \"…\"]'"),
        (
            ("name=a", "--args", "{}"),
            "arguments are given twice, by --args and as 'name=a'",
            "keep --args, or write all as key=value",
        ),
    ],
)  # fmt: skip
def test_what_is_no_argument_is_wrong_use(
    words: tuple[str, ...], what: str, mend: str, greeter: Any, cyrene: Run
) -> None:
    ran = cyrene("call", "greet", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"{what}\n  where: command line\n  mend:  {mend}\n"


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (("greeter.nothing",), 2, "unknown_tool"),
        (("greet", "nmae=x"), 2, "invalid_arguments"),
        (("greet", "times=0"), 2, "invalid_arguments"),
        (("greet", "--args", '{"a": NaN}'), 2, "invalid_arguments"),
        (("erase", "what=all"), 1, "approval_required"),
        (("erase", "what=all", "--set", "danger.high=deny"), 1, "denied"),
    ],
)  # fmt: skip
def test_each_kind_of_error_has_its_exit_code(
    words: tuple[str, ...], code: int, kind: str, greeter: Any, cyrene: Run
) -> None:
    ran = cyrene("call", *words, "--json")
    assert (ran.code, ran.document["error_kind"]) == (code, kind)
    told = cyrene("call", *words)
    assert (told.code, told.out) == (code, "")
    assert "  mend:  " in told.err
    assert "Traceback" not in told.err


def test_a_failing_tool_is_told_once_and_without_traceback(trouble: Any, cyrene: Run) -> None:
    ran = cyrene("call", "fail")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("division by zero") == 1
    assert ran.err.startswith("plugin 'trouble': tool 'fail': ")
    assert "Traceback" in cyrene("call", "fail", "--debug").err


def test_a_deadline_ends_the_call(trouble: Any, cyrene: Run) -> None:
    cyrene("tools")  # describes the plugin, which the deadline does not count
    started = time.monotonic()
    ran = cyrene("call", "wait", f"mark={trouble.folder / 'mark'}", "--timeout", "3", "--json")
    assert (ran.code, ran.document["error_kind"]) == (1, "timeout")
    assert time.monotonic() - started < 20


def test_an_image_is_told_of(trouble: Any, cyrene: Run) -> None:
    ran = cyrene("call", "draw")
    assert (ran.code, ran.out, ran.err) == (0, "", "an image (image/png): https://example.org/cat.png\n")


def test_only_the_called_plugin_is_started(trouble: Any, cyrene: Run) -> None:
    mark = trouble.folder / "other-started"
    trouble.plugin(
        "other",
        f"""
        from pathlib import Path
        from cyrene_sdk import BasePlugin, PluginMetadata

        class OtherPlugin(BasePlugin):
            meta = PluginMetadata(name="other", version="1.0.0")

            def start(self, host):
                Path({str(mark)!r}).touch()
        """,
    )
    trouble.list("trouble", "other")
    assert cyrene("call", "trouble.draw").code == 0
    assert not mark.exists()
    assert cyrene("health").code == 0
    assert mark.exists()


def test_a_tool_known_by_a_dotted_id_is_found_where_no_manifest_is_kept_yet(workshop: Any, cyrene: Run) -> None:
    workshop.plugin(
        "dots",
        '''
        from cyrene_sdk import BasePlugin, PluginMetadata, tool

        class DotsPlugin(BasePlugin):
            meta = PluginMetadata(name="dots", version="1.0.0")

            @tool(id="weather.now", danger_level="low")
            async def now(self) -> str:
                """Tell."""
                return "sunny"
        ''',
    )
    workshop.list("dots")
    assert cyrene("call", "weather.now").out == "sunny\n"


def test_yes_approves_a_dangerous_call(greeter: Any, cyrene: Run) -> None:
    ran = cyrene("call", "erase", "what=all", "--yes")
    assert (ran.code, ran.out) == (0, "erased all\n")


SPAWN = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def at_a_terminal(workshop: Any, *words: str, answer: bytes = b"") -> tuple[int, str]:
    """Run `cyrene` at a terminal, type `answer` once it asks, and return exit code and screen."""
    process = subprocess.Popen(
        [sys.executable, "-c", SPAWN, sys.executable, "-m", "cyrene_host.cli", *words],
        cwd=workshop.folder, env=workshop.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    shown, typed = b"", not answer
    end = threading.Timer(45, process.kill)  # leaving the block waits for the process
    end.start()
    with process, process.stdin, process.stdout:
        while part := process.stdout.read(65536):
            shown += part
            if not typed and b"[y/N]" in shown:
                process.stdin.write(answer)
                typed = True
    end.cancel()
    return process.returncode, shown.decode()


def test_a_person_sees_the_whole_call_and_may_say_yes(greeter: Any) -> None:
    hidden = "all\u202e\u200b\U000e0041\x1b[2J"
    code, shown = at_a_terminal(greeter, "call", "erase", f"what={hidden}", answer=b"y\n")
    assert code == 0
    assert "tool:   greeter.erase" in shown
    assert "plugin: greeter" in shown
    assert "danger: high" in shown
    assert r'"what": "all\u202e\u200b\udb40\udc41\u001b[2J"' in shown
    assert "erased all" in shown


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"maybe\n", b"\x04"])
def test_everything_but_a_clear_yes_is_a_no(answer: bytes, greeter: Any) -> None:
    code, shown = at_a_terminal(greeter, "call", "erase", "what=all", answer=answer)
    assert code == 1
    assert "the person who was asked refused the call" in shown
    assert "erased" not in shown


def test_ctrl_c_at_the_question_is_exit_130(greeter: Any) -> None:
    code, shown = at_a_terminal(greeter, "call", "erase", "what=all", answer=b"\x03")
    assert code == 130
    assert "erased" not in shown


def test_output_is_cleaned_for_a_terminal_and_unchanged_for_a_pipe(trouble: Any, cyrene: Run) -> None:
    assert cyrene("call", "steer").out == "\x1b[31mred\x1b[0m\n"
    code, shown = at_a_terminal(trouble, "call", "steer")
    assert (code, shown.strip()) == (0, "red")


def interrupted(workshop: Any, tool: str, limit_s: float) -> tuple[int, float]:
    """Call a tool that waits, send SIGINT once it has begun; return exit code and the seconds that the end took."""
    mark = workshop.folder / "mark"
    os.mkfifo(mark)
    process = subprocess.Popen(
        [sys.executable, "-m", "cyrene_host.cli", "call", tool, f"mark={mark}"],
        cwd=workshop.folder, env=workshop.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert mark.read_text() == "begun"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=limit_s)
    assert out == b""
    assert err.endswith(b"interrupted\n")
    assert b"Traceback" not in err
    return process.returncode, time.monotonic() - began


@pytest.mark.parametrize("tool", ["wait", "block"])
def test_ctrl_c_is_exit_130_also_where_a_tool_blocks_the_loop(
    tool: str, trouble: Any, slow: Callable[[float], float]
) -> None:
    code, seconds = interrupted(trouble, tool, slow(30))
    assert code == 130
    assert seconds < slow(15)
    assert (trouble.folder / "state" / "data" / "trouble" / "stopped").exists() == (tool == "wait")


def test_a_thread_that_hangs_does_not_keep_the_command_from_ending(trouble: Any) -> None:
    started = time.monotonic()
    ran = trouble.process("call", "stuck", "--json")
    assert (ran.code, ran.document["error_kind"]) == (1, "timeout")
    assert time.monotonic() - started < 30


def test_a_tool_of_a_disabled_plugin_says_how_to_enable_it(greeter: Any, cyrene: Run) -> None:
    cyrene("tools")  # describes the greeter once
    greeter.list({"name": "greeter", "enabled": False})
    ran = cyrene("call", "greet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "plugin 'greeter': it is disabled\n  mend:  `cyrene plugins enable greeter`\n"


def test_an_unknown_tool_is_looked_for_among_the_plugins_that_cannot_be_used(workshop: Any, cyrene: Run) -> None:
    workshop.list("nowhere")
    ran = cyrene("call", "forecast")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("  mend:  `cyrene tools` lists all, and names the plugins that cannot be used\n")
