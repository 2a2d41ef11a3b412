"""What a plugin does to its own process harms nobody else, costs its caller one error, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host
from cyrene_sdk import ErrorKind, ToolResult

HostWith = Callable[..., Any]
Slow = Callable[[float], float]

linux = pytest.mark.skipif(sys.platform != "linux", reason="what leaves its process group is found on Linux only")


async def until(is_so: Callable[[], bool], limit_s: float) -> None:
    async with asyncio.timeout(limit_s):
        while not is_so():  # noqa: ASYNC110 - of processes and files nobody tells
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def steady_calls(host: Host, stop: asyncio.Event) -> list[ToolResult]:
    results = []
    while not stop.is_set():
        results.append(await host.call("steady", {"number": len(results)}))
        await asyncio.sleep(0.02)
    return results


@pytest.mark.parametrize(
    ("tool", "kind", "told"),
    [
        ("exits", ErrorKind.WORKER_CRASHED, "exit status 7"),
        ("segfaults", ErrorKind.WORKER_CRASHED, "signal SIGSEGV"),
        ("loops", ErrorKind.TIMEOUT, "no answer within 0.3 s"),
        ("keeps_the_interpreter", ErrorKind.TIMEOUT, "no answer within 0.3 s"),
        ("ignores_signals_and_hangs", ErrorKind.TIMEOUT, "no answer within 0.3 s"),
    ],
)
async def test_a_worker_that_crashes_or_hangs_costs_one_error_and_the_next_call_works(
    host_with: HostWith, slow: Slow, tool: str, kind: ErrorKind, told: str
) -> None:
    async with host_with() as host:
        stop = asyncio.Event()
        steady = asyncio.create_task(steady_calls(host, stop))
        before = (await host.call("pid")).data
        async with asyncio.timeout(slow(3)):
            result = await host.call(tool)
            after = await host.call("echo", {"text": "works"})
        stop.set()
        others = await steady

    assert (result.error_kind, result.plugin, result.attempts) == (kind, "harmful", 1)
    assert told in result.error
    assert "plugin 'harmful'" in result.error
    assert after.output == "works"
    assert not is_alive(before)
    assert [other.error for other in others if not other.success] == []
    assert len(others) > 1


@pytest.mark.parametrize("tool", ["forks_and_returns", "forks_and_waits", "forks_in_a_thread"])
async def test_a_fork_that_returns_answers_once_and_its_child_is_gone(
    host_with: HostWith, tmp_path: Path, slow: Slow, tool: str
) -> None:
    async with host_with() as host:
        result = await host.call(tool, {"folder": str(tmp_path)})
        after = [await host.call("echo", {"text": str(number)}) for number in range(20)]
        await until((tmp_path / "child").exists, slow(2))
        child = int((tmp_path / "child").read_text())
        await until(lambda: not is_alive(child), slow(2))

    assert result.success, result.error
    assert result.data > 0
    assert [answer.output for answer in after] == [str(number) for number in range(20)]


async def test_a_library_may_fork_its_own_children(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("uses_multiprocessing", deadline_s=7)
        after = await host.call("echo", {"text": "works"})

    assert result.data == 6, result.error
    assert after.output == "works"


@linux
async def test_children_in_groups_of_their_own_are_swept_with_the_worker(
    host_with: HostWith, tmp_path: Path, slow: Slow
) -> None:
    async with host_with() as host:
        result = await host.call("starts_children_and_hangs", {"folder": str(tmp_path)})
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        await until(lambda: not any(is_alive(pid) for pid in pids), slow(3))
        after = await host.call("echo", {"text": "works"})

    assert result.error_kind == ErrorKind.TIMEOUT
    assert len(pids) == 3
    assert after.output == "works"


async def test_a_hundred_megabytes_of_output_cost_nothing_but_time(
    host_with: HostWith, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="cyrene.plugin.harmful"):
        async with host_with() as host:
            result = await host.call("prints", {"megabytes": 100})

    assert result.output == "printed", result.error
    logged = sum(len(record.getMessage()) for record in caplog.records if record.name == "cyrene.plugin.harmful")
    assert 200_000 < logged < 263_000
    assert "it printed more than 262144 bytes; the rest is only counted" in caplog.text
    assert "it printed 104857600 bytes in all" in caplog.text


async def test_memory_beyond_the_limit_is_an_error_of_the_call(host_with: HostWith) -> None:
    async with host_with(limits={"memory_mb": 512}) as host:
        fits = await host.call("needs_memory", {"megabytes": 10})
        result = await host.call("needs_memory", {"megabytes": 600})
        after = await host.call("echo", {"text": "works"})

    assert fits.data == 10 * 1024 * 1024
    assert result.error_kind == ErrorKind.RESOURCE_EXCEEDED
    assert "limits.memory_mb is 512" in result.error
    assert after.output == "works"


async def test_files_beyond_the_limit_are_the_tools_own_error(host_with: HostWith) -> None:
    async with host_with(limits={"open_files": 64}) as host:
        result = await host.call("opens_files")
        after = await host.call("echo", {"text": "works"})

    assert result.error_kind == ErrorKind.TOOL_ERROR
    assert "OSError" in result.error
    assert "Too many open files" in result.error
    assert after.output == "works"


async def test_a_file_beyond_the_limit_is_the_tools_own_error_and_the_scratch_folder_is_emptied(
    host_with: HostWith, harmful_folder: Path
) -> None:
    async with host_with() as host:
        result = await host.call("writes_a_large_file")
        scratch = Path((await host.call("scratch")).output)
        assert (scratch / "left.txt").exists()

    assert result.error_kind == ErrorKind.TOOL_ERROR
    assert "File too large" in result.error
    assert scratch.parent.parent == harmful_folder / "state" / "scratch"
    assert not scratch.parent.exists()


async def test_a_worker_sees_only_the_variables_that_it_may(
    host_with: HostWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_SECRET", "canary-0123456789")
    async with host_with() as host:
        result = await host.call("environment")

    allowed = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR", "PYTHONUNBUFFERED", "CYRENE_HOST_PROCESS"}
    assert set(result.data) <= allowed
    assert result.data["HOME"].startswith(str(Path(result.data["TMPDIR"]).parent))


async def test_what_a_tool_changes_of_its_process_stays_there(host_with: HostWith) -> None:
    folder, mask = Path.cwd(), os.umask(0o022)
    os.umask(mask)
    async with host_with() as host:
        changed = await host.call("changes_its_process")
        after = await host.call("echo", {"text": "works"})

    assert (changed.output, after.output) == ("changed", "works")
    assert Path.cwd() == folder
    assert os.umask(mask) == mask


@pytest.mark.parametrize(
    "text",
    [
        "\x00\x00\x00\x05nojso",
        "\xff\xff\xff\xff",
        '\x00\x00\x00\x21{"k":"end","id":999999,"fields":{}}'[:37],
        "\x00\x00\x00\x02[]",
    ],
    ids=["no JSON", "4 GB announced", "an unknown id", "no object"],
)
async def test_a_worker_that_breaks_the_protocol_costs_one_error_at_most(
    host_with: HostWith, slow: Slow, text: str
) -> None:
    async with host_with() as host:
        async with asyncio.timeout(slow(5)):
            result = await host.call("speaks_out_of_turn", {"text": text})
            after = await host.call("echo", {"text": "works"})

    assert result.success or (result.error_kind == ErrorKind.WORKER_CRASHED and "protocol" in result.error)
    assert after.output == "works"


async def test_a_worker_killed_from_outside_is_replaced(host_with: HostWith, slow: Slow) -> None:
    async with host_with() as host:
        pid = (await host.call("pid")).data
        os.kill(pid, 9)
        async with asyncio.timeout(slow(3)):
            result = await host.call("echo", {"text": "works"})
            if not result.success:
                assert (result.error_kind, result.retryable) == (ErrorKind.WORKER_CRASHED, True)
                result = await host.call("echo", {"text": "works"})
        again = (await host.call("pid")).data

    assert result.output == "works"
    assert again != pid
