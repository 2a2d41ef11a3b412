"""The life of plugins in their workers: every state, every stage that fails, and who is not harmed by it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.supervise.supervisor import StartAbortedError

Slow = Callable[[float], float]
Until = Callable[..., Any]
Ground = Any
Pace = Any

SHORT = {"load_s": 5, "init_s": 0.3, "start_s": 0.3, "stop_s": 0.3, "health_timeout_s": 0.3, "kill_grace_s": 0.2}


def states_of(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """The states that a plugin went through, as the log tells them."""
    told = [record.getMessage() for record in caplog.records if record.name == "cyrene.plugins"]
    return [text.split(" is ")[1].split(" (was ")[0] for text in told if text.startswith(f"plugin '{name}' is ")]


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="cyrene.plugins")


async def test_a_plugin_goes_from_discovered_to_stopped_through_every_state(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.plugin("one")
    ground.list("one")

    async with ground.open(start="called") as host:
        assert host.plugins.get("one").state == "discovered"
        result = await host.call("one_do")
        report = host.plugins.get("one")

    assert result.data["pid"] == report.pid != os.getpid()
    assert set(report.stage_ms) == {"load", "init", "start", "tools"}
    assert states_of(caplog, "one") == ["starting", "loaded", "started", "stopping", "stopped"]
    assert ground.log == ["one init", "one start", "one is up", "one stop"]


async def test_side_by_side_starts_are_bounded_and_use_what_is_allowed(ground: Ground) -> None:
    names = [f"p{number}" for number in range(12)]
    most = 2 * (os.cpu_count() or 1)
    for name in names:
        ground.plugin(name)
        ground.order(name, "start", "150")
    ground.list(*names)

    async with ground.open():
        pass

    running, peak = set(), 0
    for line in ground.log:
        name, what = line.split(" ", 1)
        if what == "start":
            running.add(name)
        elif what == "is up":
            running.discard(name)
        peak = max(peak, len(running))
    assert 2 <= peak <= most


async def test_starts_that_hang_do_not_keep_others_waiting(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    hung = [f"hung{number}" for number in range(2 * (os.cpu_count() or 1))]
    for name in (*hung, "good"):
        ground.plugin(name)
    for name in hung:
        ground.order(name, "init", "hang")
    ground.list(*({"name": name, "limits": {**SHORT, "init_s": 5}} for name in hung), "good")

    async with ground.open() as host:
        result = await host.call("good_do")

    assert result.success
    told = [record.getMessage() for record in caplog.records]
    ends = [text.split(" (was")[0] for text in told if " is started (was" in text or " is failed (was" in text]
    assert ends[0] == "plugin 'good' is started"
    assert sorted(ends[1:]) == [f"plugin '{name}' is failed" for name in hung]


@pytest.mark.parametrize("stage", ["init", "start"])
@pytest.mark.parametrize(
    ("order", "cause"),
    [
        ("raise", "'{stage}' raised OSError: no {stage}"),
        ("hang", "'{stage}' did not end within its limit of 0.3 s"),
        ("block", "'{stage}' did not end within its limit of 0.3 s, and its worker was ended"),
    ],
)
async def test_a_stage_that_raises_hangs_or_blocks_in_c_is_failed_at_once_and_harms_nobody(
    ground: Ground, caplog: pytest.LogCaptureFixture, slow: Slow, stage: str, order: str, cause: str
) -> None:
    ground.plugin("bad")
    ground.plugin("good")
    ground.order("bad", stage, order)
    ground.list({"name": "bad", "limits": SHORT}, "good")

    async with ground.open() as host:
        report = host.plugins.get("bad")
        refused = await host.call("bad_do")
        good = await host.call("good_do")
        assert report.pid is None
        assert not host.tools.get("bad_do").is_offered

    assert (report.state, report.stage) == ("failed", stage)
    assert report.error is not None
    assert report.error.what == cause.format(stage=stage)
    assert report.error.plugin == "bad"
    assert report.error.where.startswith(f"stage {stage} of 'bad' 1.0.0, plugins.json line 1, /0")
    assert report.error.mend
    assert refused.error_kind == "plugin_unavailable"
    assert good.success
    assert states_of(caplog, "bad") == ["starting", *(["loaded"] if stage == "start" else []), "failed"]
    was_initialised = stage == "start"
    assert ("bad stop" in ground.log) == (was_initialised and order != "block")


async def test_a_stop_that_hangs_is_ended_at_its_limit_and_the_others_are_stopped_in_reverse(
    ground: Ground, caplog: pytest.LogCaptureFixture, slow: Slow
) -> None:
    for name, needs in (("one", {}), ("two", {"one": "1"}), ("three", {"two": "1"})):
        ground.plugin(name, needs=needs)
    ground.order("two", "stop", "block")
    ground.list("one", {"name": "two", "limits": SHORT}, "three")

    async with ground.open() as host:
        began = time.monotonic()
    took_s = time.monotonic() - began

    assert [line for line in ground.log if line.endswith("stop")] == ["three stop", "two stop", "one stop"]
    states = {report.name: report.state.value for report in host.plugins.list()}
    assert states == {"one": "stopped", "two": "stopping", "three": "stopped"}
    assert "'stop' did not end within its limit of 0.3 s" in caplog.text
    assert took_s < slow(4)


async def test_all_stops_together_keep_within_their_budget(
    ground: Ground, caplog: pytest.LogCaptureFixture, slow: Slow
) -> None:
    names = [f"p{number}" for number in range(5)]
    for name in names:
        ground.plugin(name)
        ground.order(name, "stop", "hang")
    ground.list(*names)

    async with ground.open(overrides={"limits.stop_total_s": 1.0}) as host:
        pids = [host.plugins.get(name).pid for name in names]
        began = time.monotonic()
    took_s = time.monotonic() - began

    assert took_s < slow(4)
    assert "not stopped, the 1 s for all stops are over" in caplog.text
    assert len(pids) == 5
    assert workers_of(ground) == []


async def test_a_lazy_plugin_is_started_by_its_first_call_with_what_it_needs(ground: Ground) -> None:
    ground.plugin("lower")
    ground.plugin("upper", needs={"lower": "1"})
    ground.list({"name": "upper", "activation": "lazy"}, {"name": "lower", "activation": "lazy"})

    async with ground.open() as host:
        assert ground.log == []
        before = [report.state.value for report in host.plugins.list()]
        offered = host.tools.get("upper_do").is_offered
        results = await asyncio.gather(*(host.call("upper_do") for _ in range(5)))
        after = [report.state.value for report in host.plugins.list()]

    assert (before, after, offered) == (["discovered"] * 2, ["started"] * 2, True)
    assert len({result.data["pid"] for result in results}) == 1
    assert ground.log[:4] == ["lower init", "lower start", "lower is up", "upper init"]


async def test_a_plugin_that_must_not_fail_ends_the_start_and_nothing_stays_behind(ground: Ground) -> None:
    ground.plugin("vital")
    ground.plugin("other")
    ground.order("vital", "start", "exit")
    ground.list({"name": "vital", "on_failure": "abort"}, "other")

    with pytest.raises(StartAbortedError) as raised:
        async with ground.open():
            pytest.fail("the host must not open")

    assert raised.value.plugin == "vital"
    assert "exit status 3" in raised.value.what
    assert "other stop" in ground.log
    assert workers_of(ground) == []


async def test_who_leaves_while_the_host_opens_leaves_nothing_behind(ground: Ground, until: Until) -> None:
    ground.plugin("slow")
    ground.order("slow", "start", "hang")
    ground.list("slow")

    async def opening() -> None:
        async with ground.open():
            pytest.fail("the host must not open")

    task = asyncio.create_task(opening())
    await until(lambda: "slow start" in ground.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert workers_of(ground) == []


async def test_a_crash_restarts_at_once_and_further_ones_after_growing_waits_until_it_is_given_up(
    ground: Ground, pace: Pace, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    ground.plugin("frail")
    ground.plugin("steady")
    ground.list("frail", "steady")

    async with ground.open() as host:
        pids = []
        for _ in range(4):
            await until(lambda: host.plugins.get("frail").state == "started")
            pids.append((await host.call("frail_do")).data["pid"])
            crashed = await host.call("frail_exit")
            assert crashed.error_kind == "worker_crashed"
            assert "exit status 7" in crashed.error
            assert (await host.call("steady_do")).success
        await until(lambda: host.plugins.get("frail").state == "failed")
        report = host.plugins.get("frail")
        refused = await host.call("frail_do")

    assert pace.slept == [0, 1, 2]
    assert len(set(pids)) == 4
    assert refused.error_kind == "plugin_unavailable"
    assert report.error is not None
    assert "it is not started any more after 3 restarts within 5 minutes; last: " in report.error.what
    assert "exit status 7" in report.error.what
    assert "cyrene plugins restart frail" in report.error.mend
    assert states_of(caplog, "frail")[-3:] == ["restarting", "started", "failed"]


@pytest.mark.parametrize("how", ["hang", "kill"])
async def test_a_hang_or_a_kill_from_outside_restarts_it_and_the_next_call_works(
    ground: Ground, how: str, slow: Slow, caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    ground.plugin("frail")
    ground.list("frail")

    async with ground.open() as host:
        before = (await host.call("frail_do")).data["pid"]
        if how == "hang":
            assert (await host.call("frail_hang")).error_kind == "timeout"
        else:
            os.kill(before, signal.SIGKILL)
            await until(lambda: host.plugins.get("frail").state == "restarting")
        async with asyncio.timeout(slow(5)):
            after = await host.call("frail_do")
        report = host.plugins.get("frail")

    assert after.success, after.error
    assert after.data["pid"] != before
    assert (report.state, report.restarts, report.error) == ("started", 1, None)
    assert states_of(caplog, "frail")[:5] == ["starting", "loaded", "started", "restarting", "started"]


async def test_a_call_in_the_wait_between_restarts_answers_at_once_with_when_it_is_tried_again(
    ground: Ground, pace: Pace, until: Until, slow: Slow
) -> None:
    ground.plugin("frail")
    ground.list("frail")

    async with ground.open() as host:
        await host.call("frail_exit")
        await host.call("frail_do")
        pace.hold()
        await host.call("frail_exit")
        await until(lambda: pace.slept == [0, 1])
        async with asyncio.timeout(slow(1)):
            refused = await host.call("frail_do")
        report = host.plugins.get("frail")
        pace.go()
        await until(lambda: host.plugins.get("frail").state == "started")
        again = await host.call("frail_do")

    assert (refused.error_kind, refused.retryable) == ("plugin_unavailable", True)
    assert "it is restarting" in refused.error
    assert "it is tried again in 1 s" in refused.error
    assert "health" not in refused.error, "it was lost in a call"
    assert "mend:  its author has to look: the plugin's log has what it printed" in refused.error
    assert report.retry_at == pytest.approx(time.time() + 1, abs=slow(5))
    assert again.success


async def test_a_worker_that_exits_in_start_every_time_is_failed_and_calls_answer_at_once(
    ground: Ground, pace: Pace, slow: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    ground.plugin("bad")
    ground.order("bad", "start", "exit")
    ground.list("bad")

    async with ground.open() as host:
        report = host.plugins.get("bad")
        async with asyncio.timeout(slow(0.5)):
            refused = await host.call("bad_do")

    assert pace.slept == [0, 1, 2]
    assert ground.log.count("bad start") == 4
    assert report.state == "failed"
    assert "its worker ended during 'start': " in report.error.what
    assert "exit status 3" in report.error.what
    assert refused.error_kind == "plugin_unavailable"
    assert "it is not started any more after 3 restarts" in refused.error
    assert caplog.text.count("it is started again in") == 3


async def test_a_restart_that_raises_in_start_is_failed_at_once(ground: Ground, pace: Pace, until: Until) -> None:
    ground.plugin("frail")
    ground.list("frail")

    async with ground.open() as host:
        ground.order("frail", "start", "raise")
        await host.call("frail_exit")
        await until(lambda: host.plugins.get("frail").state == "failed")
        report = host.plugins.get("frail")

    assert report.error.what == "'start' raised OSError: no start"
    assert pace.slept == [0]


async def given_up(ground: Ground, until: Until, **entry: Any) -> None:
    """Have the plugin `frail` given up by a host that is closed then."""
    ground.plugin("frail")
    ground.order("frail", "start", "exit")
    ground.list({"name": "frail", **entry})
    async with ground.open() as host:
        assert host.plugins.get("frail").state == "failed"
    (ground.folder / "plugins" / "frail.start").unlink()


async def test_a_plugin_that_was_given_up_stays_so_over_a_restart_of_the_host(
    ground: Ground, pace: Pace, until: Until
) -> None:
    await given_up(ground, until)
    starts = len(ground.log)

    async with ground.open() as host:
        report = host.plugins.get("frail")
        refused = await host.call("frail_do")

    assert report.state == "failed"
    assert "it is not started any more" in report.error.what
    assert refused.error_kind == "plugin_unavailable"
    assert len(ground.log) == starts


async def test_a_person_who_restarts_it_resets_it_for_good(ground: Ground, pace: Pace, until: Until) -> None:
    await given_up(ground, until)

    async with ground.open() as host:
        report = await host.plugins.restart("frail")
        result = await host.call("frail_do")
    async with ground.open() as host:
        later = host.plugins.get("frail")

    assert (report.state, report.error) == ("started", None)
    assert result.success
    assert later.state == "started"


@pytest.mark.parametrize("how", ["version", "config"])
async def test_another_version_or_config_resets_it(ground: Ground, pace: Pace, until: Until, how: str) -> None:
    await given_up(ground, until)
    if how == "version":
        ground.plugin("frail", version="1.0.1")
    else:
        ground.list({"name": "frail", "config": {"word": "other"}})

    async with ground.open() as host:
        report = host.plugins.get("frail")

    assert (report.state, report.error) == ("started", None)


async def test_three_failed_health_checks_in_a_row_restart_it_and_a_good_one_between_forgives(
    ground: Ground, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    ground.plugin("frail")
    ground.list("frail")

    async with ground.open() as host:
        before = host.plugins.get("frail").pid
        for outcome in ("raise", "raise", "", "raise", "raise"):
            ground.order("frail", "health", outcome)
            (report,) = await host.health()
            assert report.state == ("degraded" if outcome else "started")
        assert host.plugins.get("frail").pid == before
        assert (await host.call("frail_do")).success
        (report,) = await host.health()
        ground.order("frail", "health", "")
        await until(lambda: host.plugins.get("frail").state == "started")
        after = host.plugins.get("frail").pid

    assert after != before
    assert "3 health checks in a row failed, the last: 'health' raised OSError: no health" in caplog.text
    assert states_of(caplog, "frail")[3:] == [
        *("degraded", "started", "degraded", "restarting", "started", "stopping", "stopped"),
    ]


async def test_health_checks_run_side_by_side_each_with_its_own_limit(ground: Ground, slow: Slow) -> None:
    hung = [f"hung{number}" for number in range(4)]
    for name in (*hung, "good"):
        ground.plugin(name)
    for name in hung:
        ground.order(name, "health", "hang")
    ground.list(*({"name": name, "limits": {**SHORT, "health_timeout_s": 0.5}} for name in hung), "good")

    async with ground.open() as host:
        began = time.monotonic()
        reports = {report.name: report for report in await host.health()}
        took_s = time.monotonic() - began

    assert took_s < 4 * 0.5
    assert reports["good"].state == "started"
    assert all(reports[name].state == "degraded" for name in hung)
    assert reports["hung0"].error.what == "'health' did not end within its limit of 0.5 s"


async def test_a_busy_plugin_that_gives_no_answer_is_not_unhealthy(ground: Ground, until: Until) -> None:
    ground.plugin("busy")
    ground.order("busy", "health", "hang")
    ground.list({"name": "busy", "limits": SHORT})

    async with ground.open() as host:
        call = asyncio.create_task(host.call("busy_wait"))
        await until(lambda: ground.has("busy", "waits"))
        states = [(await host.health())[0].state for _ in range(4)]
        ground.order("busy", "go")
        result = await call

    assert states == ["started"] * 4
    assert result.output == "waited"


async def test_a_host_asks_for_health_by_itself(ground: Ground, until: Until) -> None:
    ground.plugin("frail")
    ground.list("frail")

    async with ground.open(overrides={"limits.health_every_s": 0.1}) as host:
        before = host.plugins.get("frail").pid
        ground.order("frail", "health", "raise")
        await until(lambda: host.plugins.get("frail").state == "degraded")
        await until(lambda: host.plugins.get("frail").restarts == 1)
        ground.order("frail", "health", "")
        await until(lambda: host.plugins.get("frail").state == "started")

        assert host.plugins.get("frail").pid not in (before, None)


async def test_a_plugin_that_is_told_to_restart_while_it_starts_starts_once_more_and_no_worker_stays(
    ground: Ground, until: Until, slow: Slow
) -> None:
    ground.plugin("slow")
    ground.order("slow", "start", "hang")
    ground.list("slow")

    async with ground.open(start="called") as host:
        call = asyncio.create_task(host.call("slow_do"))
        await until(lambda: "slow start" in ground.log)
        ground.order("slow", "start", "")
        async with asyncio.timeout(slow(15)):  # not the 30 s that `start` may take
            report = await host.plugins.restart("slow")
        result = await call
        again = await host.call("slow_do")
        workers = workers_of(ground)

    assert report.state == "started"
    assert result.success or result.error_kind == "plugin_unavailable"
    assert again.data["pid"] == report.pid
    assert workers == [report.pid]


async def test_a_plugin_that_is_disabled_in_the_wait_between_restarts_stays_down(
    ground: Ground, pace: Pace, until: Until
) -> None:
    ground.plugin("frail")
    ground.list("frail")

    async with ground.open() as host:
        await host.call("frail_exit")
        await host.call("frail_do")
        pace.hold()
        await host.call("frail_exit")
        await until(lambda: pace.slept == [0, 1])
        report = await host.plugins.disable("frail")
        pace.go()
        await asyncio.sleep(0.1)

        assert (report.state, workers_of(ground)) == ("disabled", [])
        again = await host.plugins.enable("frail")
        assert workers_of(ground) == [again.pid]


async def test_a_dependent_comes_back_when_what_it_needs_does(ground: Ground) -> None:
    ground.plugin("lower")
    ground.plugin("upper", needs={"lower": "1"})
    ground.order("lower", "start", "raise")
    ground.list("upper", "lower")

    async with ground.open() as host:
        refused = host.plugins.get("upper")
        ground.order("lower", "start", "")
        await host.plugins.restart("lower")
        report = host.plugins.get("upper")
        result = await host.call("upper_do")

    assert refused.state == "incompatible"
    assert refused.error.what == "it needs the plugin 'lower', which is failed: 'start' raised OSError: no start"
    assert (report.state, report.error) == ("started", None)
    assert result.success


async def test_a_state_directory_without_room_for_a_plugin_fails_it_and_not_the_host(
    ground: Ground, tmp_path: Path
) -> None:
    ground.plugin("one")
    ground.list("one")
    async with ground.open():
        pass
    for name in ("data", "scratch"):
        folder = tmp_path / "state" / name
        if folder.exists():
            folder.joinpath("one").rmdir() if name == "data" else None
            folder.rmdir()
        folder.write_text("a file")
        async with ground.open() as host:
            report = host.plugins.get("one")
            refused = await host.call("one_do")
        folder.unlink()

        assert report.state == "failed"
        assert "that the state directory can be written" in report.error.mend
        assert refused.error_kind == "plugin_unavailable"


def workers_of(ground: Ground) -> list[int]:
    """The pids of all processes that work in the ground's scratch folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str((entry / "cwd").readlink()).startswith(str(ground.folder / "state" / "scratch")):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
