"""Changing a running host: what did not change works on, what changed is replaced, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host, HostStateError
from cyrene_host.catalog.plugins_file import PluginsFileError
from cyrene_sdk import ToolResult

Until = Callable[..., Any]
Ground = Any


@contextlib.asynccontextmanager
async def called_throughout(host: Host, tool: str = "steady_do") -> AsyncIterator[list[ToolResult]]:
    """Call a tool of a plugin that nothing is changed of, all the time; no call may fail, and its worker stays."""
    results: list[ToolResult] = []
    is_over = False

    async def calling() -> None:
        while not is_over:
            results.append(await host.call(tool))
            await asyncio.sleep(0.005)

    task = asyncio.create_task(calling())
    try:
        yield results
    finally:
        is_over = True
        await task
    assert results
    assert [result.error for result in results if not result.success] == []
    assert len({result.data["pid"] for result in results}) == 1


def two(ground: Ground) -> None:
    for name in ("steady", "other"):
        ground.plugin(name)
    ground.list("steady", "other")


async def test_a_reload_without_a_change_restarts_nothing(ground: Ground) -> None:
    two(ground)

    async with ground.open() as host:
        pids = [report.pid for report in host.plugins.list()]
        changes = await host.reload()
        assert [report.pid for report in host.plugins.list()] == pids

    assert changes.to_dict() == {"unchanged": ["steady", "other"], "changed": [], "added": [], "removed": []}


@pytest.mark.parametrize("what", ["config", "limits", "secret", "code", "override"])
async def test_only_what_changed_is_restarted_and_is_as_it_is_now(ground: Ground, what: str) -> None:
    two(ground)
    secret = ground.folder / "word"
    secret.write_text("first word")
    entry = {"name": "other", "config": {"word": {"$file": "word"}}}
    ground.list("steady", entry)

    async with ground.open() as host:
        before = await host.call("other_do")
        async with called_throughout(host):
            if what == "config":
                ground.list("steady", {**entry, "config": {"word": "second word"}})
            elif what == "limits":
                ground.list("steady", {**entry, "limits": {"memory_mb": 900}})
            elif what == "override":
                ground.list("steady", {**entry, "tools": {"other_do": {"enabled": False}}})
            elif what == "secret":
                secret.write_text("second word")
            else:
                ground.plugin("other", version="2.0.0")
            changes = await host.reload()
        after = await host.call("other_do")
        report = host.plugins.get("other")

    assert changes.changed == ("other",)
    assert changes.unchanged == ("steady",)
    if what == "override":
        assert after.error_kind == "denied"
        return
    assert after.success, after.error
    assert after.data["pid"] != before.data["pid"]
    assert after.data["word"] == ("second word" if what == "config" else "***")
    assert report.version == after.data["version"] == ("2.0.0" if what == "code" else "1.0.0")


async def test_the_defaults_of_all_limits_may_change_with_cyrene_toml(ground: Ground) -> None:
    ground.plugin("one")
    ground.file.write_text('[{"name": "one"}]')
    ground.file.chmod(0o600)
    settings = ground.folder / "cyrene.toml"
    settings.write_text("[limits]\nconcurrency = 5\n")

    async with ground.open(config=settings) as host:
        pid = host.plugins.get("one").pid
        settings.write_text("[limits]\nconcurrency = 6\n")
        changes = await host.reload()
        assert host.plugins.get("one").pid not in (pid, None)

    assert changes.changed == ("one",)


async def test_added_plugins_start_and_removed_ones_stop(ground: Ground) -> None:
    two(ground)
    ground.plugin("third")

    async with ground.open() as host:
        async with called_throughout(host):
            ground.list("third", "steady")
            changes = await host.reload()
        names = [report.name for report in host.plugins.list()]
        gone = await host.call("other_do")
        new = await host.call("third_do")

    assert changes.to_dict() == {"unchanged": ["steady"], "changed": [], "added": ["third"], "removed": ["other"]}
    assert names == ["third", "steady"]
    assert gone.error_kind == "unknown_tool"
    assert new.success
    assert "other stop" in ground.log


async def test_calls_under_way_finish_before_their_plugin_is_replaced(ground: Ground, until: Until) -> None:
    two(ground)

    async with ground.open() as host:
        under_way = asyncio.create_task(host.call("other_wait"))
        await until(lambda: ground.has("other", "waits"))
        ground.list("steady", {"name": "other", "config": {"word": "new"}})
        reload = asyncio.create_task(host.reload())
        await until(lambda: host.plugins.get("other").state == "stopping")
        ground.order("other", "go")
        result = await under_way
        await reload
        after = await host.call("other_do")

    assert result.output == "waited", result.error
    assert after.data["word"] == "new"


@pytest.mark.parametrize("text", ["[{", '{"plugin": []}', "7"])
async def test_a_plugins_json_that_cannot_be_read_changes_nothing(ground: Ground, text: str) -> None:
    two(ground)

    async with ground.open() as host:
        pids = [report.pid for report in host.plugins.list()]
        ground.file.write_text(text)
        with pytest.raises(PluginsFileError):
            await host.reload()
        assert [report.pid for report in host.plugins.list()] == pids
        assert (await host.call("other_do")).success


async def test_a_syntax_error_is_told_with_line_and_column(ground: Ground) -> None:
    two(ground)

    async with ground.open() as host:
        ground.file.write_text('[\n{"name": }]')
        with pytest.raises(PluginsFileError) as raised:
            await host.reload()

    assert "line 2" in str(raised.value)
    assert "column 10" in str(raised.value)


async def test_disable_stops_and_enable_starts_again_over_a_restart_of_the_host(ground: Ground) -> None:
    two(ground)

    async with ground.open() as host, called_throughout(host):
        off = await host.plugins.disable("other")
        refused = await host.call("other_do")
    async with ground.open() as host:
        still_off = host.plugins.get("other")
        async with called_throughout(host):
            on = await host.plugins.enable("other")
            result = await host.call("other_do")

    assert (off.state, still_off.state, on.state) == ("disabled", "disabled", "started")
    assert refused.error_kind == "plugin_unavailable"
    assert result.success
    assert ground.file.read_text().count("enabled") == 0


async def test_what_depends_on_a_disabled_plugin_is_incompatible_until_it_is_enabled(ground: Ground) -> None:
    ground.plugin("lower")
    ground.plugin("upper", needs={"lower": "1"})
    ground.list("upper", "lower")

    async with ground.open() as host:
        await host.plugins.disable("lower")
        off = host.plugins.get("upper")
        await host.plugins.enable("lower")
        on = host.plugins.get("upper")

    assert (off.state, on.state) == ("incompatible", "started")
    assert "'lower', which is disabled" in off.error.what
    assert ground.log.index("upper stop") < ground.log.index("lower stop")


async def test_a_restart_replaces_one_worker_and_no_other(ground: Ground) -> None:
    two(ground)

    async with ground.open() as host:
        before = host.plugins.get("other").pid
        async with called_throughout(host):
            report = await host.plugins.restart("other")
        result = await host.call("other_do")

    assert report.state == "started"
    assert report.pid not in (before, None)
    assert result.data["pid"] == report.pid


async def test_a_plugin_whose_import_is_mended_works_after_a_restart(ground: Ground) -> None:
    ground.plugin("other", source="import a_module_that_is_not_there\n")
    ground.list("other")

    async with ground.open() as host:
        broken = host.plugins.get("other")
        ground.plugin("other")
        mended = await host.plugins.restart("other")
        result = await host.call("other_do")

    assert (broken.state, mended.state) == ("failed", "started")
    assert result.success


async def test_a_secret_that_is_there_by_now_unblocks_its_plugin(ground: Ground) -> None:
    ground.plugin("other")
    ground.list({"name": "other", "config": {"word": {"$file": "word"}}})

    async with ground.open() as host:
        blocked = host.plugins.get("other")
        (ground.folder / "word").write_text("canary-0123456789")
        await host.reload()
        result = await host.call("other_do")

    assert blocked.state == "blocked"
    assert result.data["word"] == "***"


async def test_a_failed_plugin_with_on_failure_abort_does_not_end_a_running_host(ground: Ground) -> None:
    two(ground)

    async with ground.open() as host:
        ground.order("other", "start", "raise")
        ground.list("steady", {"name": "other", "on_failure": "abort"})
        async with called_throughout(host):
            await host.reload()
        assert host.plugins.get("other").state == "failed"


async def test_changes_at_the_same_time_come_one_after_the_other(ground: Ground) -> None:
    two(ground)

    async with ground.open() as host:
        async with called_throughout(host):
            await asyncio.gather(
                host.reload(),
                host.plugins.restart("other"),
                host.plugins.disable("other"),
                host.reload(),
                host.plugins.enable("other"),
                host.plugins.restart("other"),
            )
        report = host.plugins.get("other")
        result = await host.call("other_do")

    assert report.state == "started"
    assert result.data["pid"] == report.pid


async def test_a_closed_host_changes_nothing_and_says_so(ground: Ground) -> None:
    two(ground)
    async with ground.open() as host:
        pass

    for change in (host.reload, lambda: host.plugins.restart("other"), lambda: host.plugins.disable("other")):
        with pytest.raises(HostStateError, match="the host is not open"):
            await change()
    async with ground.open() as again:
        assert again.plugins.get("other").state == "started"


@pytest.mark.timeout(120)
async def test_thirty_changes_in_a_row_leave_nothing_behind(ground: Ground, until: Until) -> None:
    two(ground)

    async with ground.open() as host:
        async with called_throughout(host):
            for number in range(3):  # what is made once, such as the pool of threads, is there then
                await change(host, ground, number)
            await host.call("steady_do")
            before = counted()
            for number in range(30):
                await change(host, ground, number)
            await until(lambda: all(now <= then for now, then in zip(counted(), before, strict=True)))
        assert len(list((ground.folder / "state" / "scratch").glob("*/*"))) == 2


async def change(host: Host, ground: Ground, number: int) -> None:
    if number % 3 == 0:
        await host.plugins.restart("other")
    else:
        ground.list("steady", {"name": "other", "config": {"word": f"word {number}"}})
        assert (await host.reload()).changed == ("other",)
    assert (await host.call("other_do")).success


def counted() -> tuple[int, int, int, int]:
    """Descriptors, threads, tasks and child processes of this process, with all below."""
    gc.collect()
    return (
        len(list(Path("/proc/self/fd").iterdir())),
        threading.active_count(),
        len(asyncio.all_tasks()),
        len(below(os.getpid())),
    )


def below(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *below(child)]
    return found
