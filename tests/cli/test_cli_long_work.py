"""Calls that run long or wait for a person, from the command line: in one process and across several."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cyrene_host.cli.ids import full_id
from cyrene_host.cli.options import WrongUseError
from cyrene_host.record.instances import Instances

Run = Callable[..., Any]

WORKS = '''
    import asyncio
    from pathlib import Path

    from cyrene_sdk import BasePlugin, PluginMetadata, Report, complex_tool, tool

    SIGNS = Path(__file__).parent


    class WorksPlugin(BasePlugin):
        meta = PluginMetadata(name="works", version="1.0.0")

        def start(self, host):
            self.host = host

        @complex_tool(danger_level="low")
        async def dig(self, report: Report, stubborn: bool = False) -> str:
            """Dig until told to go on."""
            report(0.25, "\\x1b[2Jpart 1\\nof 4 [red]:smile:")
            (SIGNS / "begun").touch()
            try:
                await self.told_to_go_on()
            except asyncio.CancelledError:
                (SIGNS / "stopped").touch()
                if not stubborn:
                    raise
                await self.told_to_go_on()
            report(0.75, "part 3")
            return "dug"

        async def told_to_go_on(self):
            while not (SIGNS / "go").exists():
                await asyncio.sleep(0.01)

        @tool(danger_level="high")
        async def erase(self, what: str) -> str:
            """Erase."""
            with (SIGNS / "erased").open("a") as ledger:
                ledger.write(what)
            return f"erased {what}"

        @tool(danger_level="low")
        async def talk(self) -> str:
            """Talk to the person."""
            await self.host.send_message("hello\\x1b[2J\\nyou")
            colour = await self.host.ask("Which colour?", {"enum": ["red", "green"]})
            return f"told {colour}"
'''


@pytest.fixture(params=["process", "inline"])
def works(workshop: Any, request: pytest.FixtureRequest) -> Any:
    """A workshop with a plugin that works for long, in each runtime."""
    return made(workshop, str(request.param))


@pytest.fixture
def one(workshop: Any) -> Any:
    """The same, in one runtime: for what no runtime sees."""
    return made(workshop, "inline")


def made(workshop: Any, runtime: str) -> Any:
    workshop.plugin("works", WORKS)
    workshop.list({"name": "works", "runtime": runtime, "limits": {"kill_grace_s": 30}})
    return workshop


def sign(workshop: Any, name: str) -> Path:
    found: Path = workshop.folder / "plugins" / "works" / name
    return found


def wait_for(is_so: Callable[[], object], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)  # of files and processes nobody tells


def started(workshop: Any, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "cyrene_host.cli", *words], cwd=workshop.folder, env=workshop.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


SPAWN = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def at_a_terminal(
    workshop: Any, *words: str, once: bytes = b"", then: Callable[[], bytes] = bytes, limit_s: float = 60
) -> tuple[int, str]:
    """Run `cyrene` at a terminal; once it shows some bytes do something, and type what that returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", SPAWN, sys.executable, "-m", "cyrene_host.cli", *words],
        cwd=workshop.folder, env={**workshop.environment, "TERM": "xterm"}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    shown, is_done = b"", not once
    end = threading.Timer(limit_s, process.kill)
    end.start()
    with process, process.stdin, process.stdout:
        while part := process.stdout.read(65536):
            shown += part
            if not is_done and once in shown:
                is_done = True
                process.stdin.write(then())
    end.cancel()
    return process.returncode, shown.decode()


HOSTILE = r"\u001b[2Jpart 1\nof 4 [red]:smile:"


def test_a_bar_with_the_message_is_drawn_at_a_terminal_and_gone_before_the_output(
    works: Any, slow: Callable[[float], float]
) -> None:
    def go_on() -> bytes:
        sign(works, "go").touch()
        return b""

    code, shown = at_a_terminal(works, "call", "dig", once=b" 25%", then=go_on, limit_s=slow(60))
    assert code == 0
    assert "works.dig" in shown
    assert HOSTILE in shown
    assert "\x1b[2Jpart" not in shown
    assert "[progress" not in shown
    above, _, below = shown.rpartition("\x1b[2K")  # the terminal's "erase the line"
    assert "25%" in above
    assert below.strip("\r\n") == "dug"


def test_progress_is_told_in_lines_where_nothing_can_be_drawn(
    works: Any, cyrene: Run, slow: Callable[[float], float]
) -> None:
    process = started(works, "call", "dig")
    assert process.stderr is not None
    first = process.stderr.readline().decode()
    sign(works, "go").touch()
    out, _ = process.communicate(timeout=slow(30))
    assert first == f"works.dig: 25% {HOSTILE}\n"
    assert (process.returncode, out) == (0, b"dug\n")
    told = cyrene("call", "dig", "--json")
    assert (told.document["output"], told.err) == ("dug", "")


def test_ctrl_c_cancels_the_execution_and_waits_for_its_end(
    works: Any, cyrene: Run, slow: Callable[[float], float]
) -> None:
    process = started(works, "call", "dig")
    wait_for(sign(works, "begun").exists, slow(30))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=slow(30))
    (execution,) = cyrene("executions", "list", "--json").document
    assert (process.returncode, out) == (130, b"")
    assert err.decode().endswith(f"execution '{execution['id']}' is cancelled\ninterrupted\n")
    assert (execution["state"], execution["result"]["error_kind"]) == ("cancelled", "cancelled")
    assert sign(works, "stopped").exists()


def test_a_second_ctrl_c_leaves_at_once(one: Any, slow: Callable[[float], float]) -> None:
    process = started(one, "call", "dig", "stubborn=true")
    wait_for(sign(one, "begun").exists, slow(30))
    process.send_signal(signal.SIGINT)
    wait_for(sign(one, "stopped").exists, slow(4))
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=slow(30))
    assert process.returncode == 130
    assert time.monotonic() - began < slow(2.5)


def test_a_detached_call_outlives_its_terminal_and_is_followed_from_a_new_process(
    works: Any, slow: Callable[[float], float]
) -> None:
    code, shown = at_a_terminal(works, "call", "dig", "--detach", limit_s=slow(60))
    assert code == 0
    execution_id = shown.split()[0]
    log = works.folder / "state" / "logs" / f"{execution_id}.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600

    running = works.process("executions", "show", execution_id, "--json", limit_s=slow(30)).document
    assert (running["state"], running["progress"]) == ("running", 0.25)
    plain = works.process("executions", "show", execution_id, limit_s=slow(30))
    assert f"  message:   {HOSTILE}\n" in plain.out
    assert f"  log:       {log}\n" in plain.out
    assert works.process("health", limit_s=slow(60)).code == 0  # commands run beside one another

    sign(works, "go").touch()
    followed = works.process("executions", "show", execution_id, "--follow", limit_s=slow(30))
    assert followed.code == 0
    assert followed.out.startswith(f"{execution_id}: completed\n")
    assert followed.out.endswith("  output:\n    dug\n")


def test_a_simple_tool_can_be_detached_too(one: Any, cyrene: Run, slow: Callable[[float], float]) -> None:
    begun = one.process("call", "talk", "--detach", "--json", limit_s=slow(30))
    assert begun.code == 0
    ended = cyrene("executions", "show", begun.document["id"], "--follow")
    assert (ended.code, ended.out[-24:]) == (0, "  output:\n    told None\n"[-24:])
    log = one.folder / "state" / "logs" / f"{begun.document['id']}.log"
    wait_for(lambda: "works: hello" in log.read_text(), slow(10))


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (("works.dgi",), 2, "there is no tool 'works.dgi'"),
        (("dig", "stubborn=perhaps"), 2, "the arguments of 'dig' do not fit"),
        (("erase", "what=all"), 1, "waits for a person's approval"),
        (("dig", "--plugins", "nowhere.json"), 2, "nowhere.json"),
    ],
)  # fmt: skip
def test_a_detached_call_that_cannot_begin_is_told_in_the_foreground(
    words: tuple[str, ...], code: int, what: str, one: Any, slow: Callable[[float], float]
) -> None:
    ran = one.process("call", *words, "--detach", limit_s=slow(30))
    assert (ran.code, ran.out) == (code, "")
    assert what in ran.err
    assert "  mend:  " in ran.err
    assert [*(one.folder / "state").glob("logs/*")] == []


def test_a_detached_call_beside_a_host_that_serves_is_refused(one: Any, slow: Callable[[float], float]) -> None:
    claim = Instances(one.folder / "state").claim("resident", uuid4().hex)
    try:
        ran = one.process("call", "dig", "--detach", limit_s=slow(30))
    finally:
        claim.release()
    assert (ran.code, ran.out) == (1, "")
    assert f"process {os.getpid()}" in ran.err


def test_an_execution_is_cancelled_from_another_process(
    works: Any, cyrene: Run, slow: Callable[[float], float]
) -> None:
    execution_id = works.process("call", "dig", "--detach", limit_s=slow(30)).out.strip()
    cancelled = cyrene("executions", "cancel", execution_id[:9])
    assert (cancelled.code, cancelled.out) == (0, f"'{execution_id}' is cancelled\n")
    assert sign(works, "stopped").exists()
    again = cyrene("executions", "cancel", execution_id)
    assert again.out == f"'{execution_id}' had ended before: it is cancelled\n"
    assert cyrene("executions", "list", "--state", "running", "--json").document == []


def test_an_execution_whose_process_is_killed_is_interrupted_for_who_follows_it(
    one: Any, slow: Callable[[float], float]
) -> None:
    process = started(one, "call", "dig")
    wait_for(sign(one, "begun").exists, slow(30))
    (running,) = one.process("executions", "--json", limit_s=slow(30)).document
    follower = started(one, "executions", "show", running["id"], "--follow")
    assert follower.stderr is not None
    assert follower.stderr.readline().startswith(b"works.dig: 25%")
    process.kill()
    try:
        out, _ = follower.communicate(timeout=slow(30))
    finally:
        follower.kill()
    process.communicate(timeout=slow(30))
    assert follower.returncode == 1
    assert out.startswith(f"{running['id']}: interrupted\n".encode())


def test_a_call_that_waits_is_approved_once_from_another_process(
    works: Any, cyrene: Run, slow: Callable[[float], float]
) -> None:
    asked = works.process("call", "erase", "what=a\u202eb\x1b[2J", limit_s=slow(30))
    (waiting,) = cyrene("approvals", "list", "--json").document["approvals"]
    assert (asked.code, asked.out) == (1, "")
    assert f"`cyrene approvals approve {waiting['id']}`" in asked.err
    assert "it expires in " in asked.err
    assert (waiting["tool_id"], waiting["danger"], waiting["principal"]) == ("works.erase", "high", "local")
    assert 0 < waiting["expires_in_s"] <= 300
    listed = cyrene("approvals", "list").out
    assert r'"what": "a\u202eb\u001b[2J"' in listed
    assert f"{waiting['id']}: waits, and expires in " in listed

    assert cyrene("approvals", "approve", waiting["id"]).code == 2  # nobody is there to be asked
    assert not sign(works, "erased").exists()
    approved = works.process("approvals", "approve", waiting["id"][:9], "--yes", limit_s=slow(30))
    assert (approved.code, approved.out) == (0, "erased a\u202eb\x1b[2J\n")
    again = cyrene("approvals", "approve", waiting["id"], "--yes")
    assert again.code == 1
    assert "was approved by 'cli:" in again.err
    assert sign(works, "erased").read_text() == "a\u202eb\x1b[2J"
    assert cyrene("approvals").err == "nothing waits for a person\n"


@pytest.mark.parametrize(("answer", "code"), [(b"\n", 1), (b"y\n", 0)])
def test_a_person_at_the_terminal_sees_the_call_before_it_is_approved(
    answer: bytes, code: int, one: Any, cyrene: Run, slow: Callable[[float], float]
) -> None:
    cyrene("call", "erase", "what=all")
    (waiting,) = cyrene("approvals", "list", "--json").document["approvals"]
    ended, shown = at_a_terminal(
        one, "approvals", "approve", waiting["id"], once=b"[y/N]", then=lambda: answer, limit_s=slow(60)
    )
    assert ended == code
    assert '"what": "all"' in shown.partition("[y/N]")[0]
    assert sign(one, "erased").exists() == (code == 0)
    assert len(cyrene("approvals", "list", "--json").document["approvals"]) == code


def test_a_refused_call_says_why_and_never_runs(one: Any, cyrene: Run) -> None:
    cyrene("call", "erase", "what=all")
    (waiting,) = cyrene("approvals", "list", "--json").document["approvals"]
    denied = cyrene("approvals", "deny", waiting["id"], "--reason", "not today")
    assert (denied.code, denied.out) == (0, f"'{waiting['id']}' is denied: 'works.erase' does not run\n")
    shown = cyrene("executions", "show", waiting["execution_id"], "--json").document
    assert (shown["state"], shown["result"]["error_kind"]) == ("failed", "denied")
    assert "not today" in shown["result"]["error"]
    (decided,) = cyrene("approvals", "list", "--all", "--json").document["approvals"]
    assert (decided["state"], decided["decided_by"].partition(":")[0]) == ("denied", "cli")
    assert not sign(one, "erased").exists()


def test_a_changed_definition_is_shown_with_the_difference_and_accepted_by_the_tool_id(
    one: Any, cyrene: Run, slow: Callable[[float], float]
) -> None:
    cyrene("call", "erase", "what=all")
    (waiting,) = cyrene("approvals", "list", "--json").document["approvals"]
    assert cyrene("approvals", "approve", waiting["id"], "--yes").code == 0
    one.plugin("works", WORKS.replace('"""Erase."""', '"""Erase all, \\x1b[2J quietly."""'))

    listed = one.process("approvals", limit_s=slow(30))
    assert listed.out.startswith("works.erase: its definition has changed since 'cli:")
    assert '  -  "description": "Erase.",\n' in listed.out
    assert r"""  +  "description": "Erase all, \u001b[2J quietly.",""" in listed.out.replace("\\\\", "\\")
    assert one.process("call", "erase", "what=more", "--yes", limit_s=slow(30)).code == 1

    assert one.process("approvals", "approve", "works.erase", limit_s=slow(30)).code == 2
    wrong = one.process("approvals", "approve", "works.erse", "--yes", limit_s=slow(30))
    assert (wrong.code, "did you mean 'works.erase'?" in wrong.err) == (2, True)
    accepted = one.process("approvals", "approve", "works.erase", "--yes", limit_s=slow(30))
    assert (accepted.code, accepted.out.startswith("'works.erase' is accepted")) == (0, True)
    assert one.process("call", "erase", "what=more", "--yes", limit_s=slow(30)).out == "erased more\n"


def test_a_plugin_talks_to_the_person_at_the_terminal(works: Any, slow: Callable[[float], float]) -> None:
    code, shown = at_a_terminal(
        works, "call", "talk", once=b"Type one of: red, green", then=lambda: b"blue\ngreen\n", limit_s=slow(60)
    )
    assert code == 0
    assert r"works: hello\u001b[2J\nyou" in shown
    assert "Plugin 'works' asks: Which colour?" in shown
    assert "That does not fit." in shown
    assert shown.endswith("told green\r\n")


def test_a_plugin_is_told_none_where_nobody_is_at_a_terminal(works: Any, cyrene: Run) -> None:
    ran = cyrene("call", "talk")
    assert (ran.code, ran.out) == (0, "told None\n")
    assert ran.err == "works: hello\\u001b[2J\\nyou\n"


def test_a_simple_call_loads_neither_the_database_nor_the_bar(greeter: Any, slow: Callable[[float], float]) -> None:
    script = (
        "import sys; from cyrene_host.cli.program import run; code = run(['call', 'greet']);"
        "print(code, sorted({'sqlalchemy', 'rich'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=greeter.folder, env=greeter.environment, capture_output=True,
        timeout=slow(30), check=True,
    )  # fmt: skip
    assert ended.stdout.decode().endswith("0 []\n")


def test_reading_makes_no_database(one: Any, cyrene: Run) -> None:
    assert cyrene("executions").err == "there are no executions yet\n"
    assert cyrene("approvals").err == "nothing waits for a person\n"
    unknown = cyrene("executions", "show", "exe_1")
    assert unknown.code == 2
    assert unknown.err.startswith("there is no execution 'exe_1'\n  where: execution id\n")
    assert not (one.folder / "state" / "cyrene.db").exists()


def test_a_state_that_there_is_not_is_answered_with_the_nearest(one: Any, cyrene: Run) -> None:
    ran = cyrene("executions", "list", "--state", "runing")
    assert (ran.code, "did you mean 'running'?" in ran.err) == (2, True)


KNOWN = ["exe_0123456789abcdef", "exe_0123ffffffffffff", "exe_8888888888888888"]


@pytest.mark.parametrize("word", ["exe_8888888888888888", "exe_8", "888"])
def test_an_id_is_known_by_its_beginning(word: str) -> None:
    assert full_id(word, KNOWN, "execution") == "exe_8888888888888888"


@pytest.mark.parametrize(
    ("word", "what", "mend"),
    [
        ("exe_0123", f"'exe_0123' may be 2 executions: {KNOWN[0]}, {KNOWN[1]}", "write more of it"),
        ("exe_8888888888888887", "there is no execution 'exe_8888888888888887'", f"did you mean '{KNOWN[2]}'?"),
        ("", "there is no execution ''", "`cyrene executions list` shows those that there are"),
    ],
)  # fmt: skip
def test_an_id_that_means_none_or_several_is_answered_with_what_was_meant(word: str, what: str, mend: str) -> None:
    with pytest.raises(WrongUseError) as caught:
        full_id(word, KNOWN, "execution")
    assert (caught.value.what, caught.value.mend) == (what, mend)
