"""ComplexTools in both runtimes: their progress, their limits, their cancellation, and what they end with."""

from __future__ import annotations

import asyncio
import os
import sys
import venv
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pydantic
import pytest

import cyrene_sdk
from cyrene_host.runtimes.inline import InlineRuntime
from cyrene_host.runtimes.keeper import Keeper
from cyrene_host.runtimes.leftovers import MARKER
from cyrene_host.runtimes.process import ProcessRuntime
from cyrene_host.runtimes.runtime import Runtime
from cyrene_host.runtimes.worker import Plan
from cyrene_sdk import CurrentCall, ErrorKind, PluginConfig, current_call
from cyrene_sdk._worker.faults import Fault
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.progress import Progress, Watch

Until = Callable[..., Any]
Slow = Callable[[float], float]

_numbers = count(1)

PLUGIN = '''
import asyncio
import contextvars
import json
import os
import queue
import socket
import threading
import time
from pathlib import Path

from cyrene_sdk import *

SIGNS = Path(__file__).parent


def sign(name, text=""):
    (SIGNS / f"{name}.new").write_text(text)
    (SIGNS / f"{name}.new").rename(SIGNS / name)


def running(progress, message="", execution_id=""):
    return ToolProgress(execution_id=execution_id, progress=progress, message=message)


def completed(output, execution_id=""):
    result = ToolResult(success=True, output=output)
    return ToolProgress(execution_id=execution_id, status="completed", progress=1, message="done", result=result)


def lies():
    good = {"k": "progress", "execution_id": "e", "progress": 0.6, "message": "m", "status": "running"}
    bad = [{"id": "x"}, {"id": None}, {"id": True}, {"id": 99}, {"id": -1}, {"progress": "1"}, {"progress": None}]
    bad += [{"progress": True}, {"message": 5}, {"status": "odd"}, {"status": []}, {"execution_id": None}]
    low = [{"progress": 0.1, "message": "low"}, {"progress": -(10**400)}]
    for number in range(1, 20):
        for change in [*bad, *low]:
            body = json.dumps({**good, "id": number, **change}).encode()
            yield len(body).to_bytes(4, "big") + body


class Long:
    """A ComplexTool in its long form."""

    def definition(self):
        return ToolDefinition(name=self.name, description="Runs long.", parameters={"type": "object"})

    def complexity(self):
        return ToolComplexity.COMPLEX

    def validate(self, args):
        pass

    def execute(self, args):
        raise AssertionError("a ComplexTool is run by execute_async")

    def cancel(self, execution_id):
        sign("cancelled", execution_id)


class Seed(Long):
    """As the seed describes it: an id of its own, work beside, a channel of progress, and a cancel that ends it."""

    name = "seed"

    def __init__(self):
        self.running = {}

    async def execute_async(self, args):
        execution_id = "own-1"
        channel = asyncio.Queue()
        self.running[execution_id] = asyncio.create_task(self.work(execution_id, channel))
        return channel

    async def work(self, execution_id, channel):
        await channel.put(running(0.5, "half", execution_id))
        sign("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await channel.put(ToolProgress(execution_id=execution_id, status="cancelled", progress=0.5))
            sign("ended", execution_id)

    async def cancel(self, execution_id):
        self.running.pop(execution_id).cancel()


class Generator(Long):
    """An async generator with a plain `cancel`."""

    name = "generator"

    async def execute_async(self, args):
        try:
            yield running(0.1, "one", "own-2")
            sign("began")
            await asyncio.Event().wait()
        finally:
            sign("ended")


class NoId(Generator):
    name = "no_id"

    async def execute_async(self, args):
        yield running(0.1)
        sign("began")
        await asyncio.Event().wait()


class Channel(Long):
    """Plain methods everywhere: a thread of its own, and a queue as the channel."""

    name = "channel"

    def __init__(self):
        self.stopped = threading.Event()

    def execute_async(self, args):
        channel = queue.Queue()
        threading.Thread(target=self.work, args=(channel, args.get("waits")), daemon=True).start()
        return channel

    def work(self, channel, waits):
        channel.put(running(0.25, "a", "own-3"))
        if waits:
            sign("began")
            self.stopped.wait(30)
        channel.put(completed("by channel", "own-3"))

    def cancel(self, execution_id):
        super().cancel(execution_id)
        self.stopped.set()


class Plain(Long):
    """A plain generator."""

    name = "plain"

    def execute_async(self, args):
        try:
            yield running(0.25, threading.current_thread().name)
            while args.get("waits"):
                sign("began")
                yield running(0.5)
            yield completed("by a plain generator")
        finally:
            sign("ended")


class Stays(Long):
    """Neither its cancel nor its task ends it."""

    name = "stays"

    async def execute_async(self, args):
        yield running(0.1)
        sign("began")
        while not (SIGNS / "go").exists():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                pass

    async def cancel(self, execution_id):
        raise RuntimeError("no way to cancel")


class HangsOnCancel(Generator):
    name = "hangs_on_cancel"

    async def cancel(self, execution_id):
        await asyncio.Event().wait()


class Ends(Long):
    """Yields what the arguments say."""

    name = "ends"

    async def execute_async(self, args):
        for report in args["reports"]:
            yield ToolProgress.from_json(report) if isinstance(report, dict) else report


class Works(BasePlugin):
    meta = PluginMetadata(name="works", version="1.0.0")

    def tools(self):
        return [*super().tools(), Seed(), Generator(), NoId(), Channel(), Plain(), Stays(), HangsOnCancel(), Ends()]

    def start(self, host):
        self.host = host
        sign("stage", str(wait_for(asyncio.sleep(0, "waited in start"))))

    @complex_tool
    async def steps(self, report: Report, progress: list) -> str:
        """Report each."""
        for step in progress:
            report(float(step) if step in ("nan", "inf") else step, f"step {step}")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return "done"

    @complex_tool
    async def texts(self, report: Report) -> str:
        """Report a text that is too long and no Unicode."""
        report(0.5, "\\ud800" + "x" * 5_000)
        return "done"

    @complex_tool
    async def floods(self, report: Report, times: int) -> str:
        """Report in a tight loop."""
        for step in range(times):
            report(step / times, str(step))
        return "done"

    @complex_tool
    def floods_from_a_thread(self, report: Report, times: int) -> str:
        """Report in a tight loop."""
        for step in range(times):
            report(step / times, str(step))
        return "done"

    @complex_tool
    async def floods_by_yield(self, times: int):
        """Yield in a tight loop."""
        for step in range(times):
            yield step / times, str(step)
        yield ToolResult(success=True, output="done")

    @complex_tool
    async def rests(self, report: Report, seconds: float) -> str:
        """Report once, and then nothing for a while."""
        report(0.3, "before")
        await asyncio.sleep(seconds)
        return "rested"

    @complex_tool
    async def ticks(self, report: Report, times: int, every_s: float) -> str:
        """Report now and then."""
        for step in range(times):
            report(step / times)
            await asyncio.sleep(every_s)
        return "ticked"

    @complex_tool
    async def blocks(self, report: Report, seconds: float) -> str:
        """Report once, and block the loop."""
        report(0.1, "blocks now")
        await asyncio.sleep(0.05)
        time.sleep(seconds)
        return "awake"

    @complex_tool
    async def dies(self, report: Report) -> str:
        """Report and end the process."""
        report(0.1)
        report(0.7, "last words")
        await asyncio.sleep(0.05)
        os._exit(7)

    @complex_tool
    def notices(self, report: Report) -> str:
        """Report until nobody listens."""
        sign("began")
        try:
            while True:
                report(0.5)
                time.sleep(0.01)
        except asyncio.CancelledError as told:
            sign("ended", str(told))
            raise

    @complex_tool
    def asks_from_a_thread(self) -> str:
        """Wait, in a thread, for the host's answer."""
        return str(wait_for(self.host.ask("who asks?")))

    @tool
    def asks_simply(self) -> str:
        """The same from a simple tool."""
        return str(wait_for(self.host.ask("who asks?")))

    @tool
    def waits_for_ever(self) -> str:
        """Wait for what never comes."""
        sign("began")
        try:
            return str(wait_for(asyncio.Event().wait()))
        except (asyncio.CancelledError, TimeoutError) as error:
            sign("ended", type(error).__name__)
            raise

    @tool
    async def asks(self) -> str:
        """Ask the host."""
        return str(await self.host.ask("who asks?"))

    @tool
    async def asks_outside(self) -> str:
        """Ask the host from what belongs to no call."""
        task = asyncio.get_running_loop().create_task(self.host.ask("who asks?"), context=contextvars.Context())
        return str(await task)

    @complex_tool
    async def lies(self, report: Report) -> str:
        """Write progress to the pipe that is none, falls, or is of no call."""
        report(0.5)
        await asyncio.sleep(0.2)
        for name in os.listdir("/proc/self/fd"):
            try:
                pipe = socket.socket(fileno=os.dup(int(name)))
                if pipe.family == socket.AF_UNIX and pipe.type == socket.SOCK_STREAM and pipe.getpeername() is not None:
                    pipe.setblocking(True)
                    pipe.sendall(b"".join(lies()))
                    pipe.setblocking(False)
            except OSError:
                pass
        await asyncio.sleep(0.2)
        return "lied"

    @complex_tool
    async def cleans_up(self, report: Report) -> str:
        """Take a moment to end well."""
        report(0.5)
        sign("began")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            sign("ended")
'''


class Asked:
    """A host that answers each question with the call that asks."""

    version = "1.0"

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder

    async def ask(self, question: str, schema: Any = None) -> str:
        try:
            return current_call().call_id
        except LookupError:
            return "nobody"


class Ground:
    """A started plugin in one runtime, the reports that came, and the signs that it left."""

    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime = runtime
        self.folder = folder
        self.reports: list[Progress] = []
        self.times: list[float] = []
        self.lost: list[str] = []

    def tell(self, report: Progress) -> None:
        self.reports.append(report)
        self.times.append(asyncio.get_running_loop().time())

    def call(self, tool: str, *, limit_s: float = 20, idle_s: float = 20, **arguments: Any) -> Awaitable[Any]:
        call = CurrentCall(f"call_{next(_numbers)}", execution_id="exe_1")
        return self.runtime.call(tool, arguments, call, limit_s, True, Watch(idle_s, self.tell))

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    @property
    def said(self) -> list[tuple[float, str]]:
        """The reports before the last one, as progress and message."""
        return [(report.progress, report.message) for report in self.reports if report.status == "running"]


@pytest.fixture
def speaks() -> int | None:
    """The SDK contract that the worker says it speaks; None is its own."""
    return None


def interpreter_that_speaks(contract: int, folder: Path) -> Path:
    """Make an environment whose SDK says that it is of an older contract."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    needed = {Path(cyrene_sdk.__file__).parents[1], Path(pydantic.__file__).parents[1]}
    (packages / "needed.pth").write_text("".join(f"{path}\n" for path in needed))
    lines = ["from cyrene_sdk._worker import contract", f"contract.CONTRACT = {contract}"]
    (packages / "sitecustomize.py").write_text("\n".join(lines))
    return folder / "bin" / "python"


@pytest.fixture
def made(tmp_path: Path, speaks: int | None) -> Iterator[Callable[..., Any]]:
    """Return a function that makes a runtime that nothing has started yet."""
    modules, path = set(sys.modules), list(sys.path)
    module = f"works_{next(_numbers)}"
    (tmp_path / f"{module}.py").write_text(PLUGIN)
    code = Code(module, None, str(tmp_path))
    interpreter = interpreter_that_speaks(speaks, tmp_path / "env") if speaks is not None else None

    def make(kind: str, keeper: Keeper, on_lost: Callable[[str, bool], None], grace_s: float) -> Runtime:
        if kind == "inline":
            return InlineRuntime(code, grace_s=grace_s, threads=2)
        plan = Plan("works", code, interpreter, {}, grace_s, 2, tmp_path / "scratch", (MARKER, str(tmp_path)))
        return ProcessRuntime(plan, keeper, on_lost=on_lost)

    yield make
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture(params=["inline", "process"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def ground(made: Any, kind: str, tmp_path: Path, slow: Slow) -> AsyncIterator[Ground]:
    keeper = Keeper({"PATH": os.environ["PATH"], MARKER: str(tmp_path)})
    ground = Ground(None, tmp_path)  # type: ignore[arg-type]  # it comes at once
    runtime = ground.runtime = made(kind, keeper, lambda why, _: ground.lost.append(why), slow(1))
    await runtime.load(slow(20))
    await runtime.init(PluginConfig({}, name="works", version="1.0.0"), slow(20))
    await runtime.start(Asked(tmp_path), slow(20))  # type: ignore[arg-type]  # as much of a host as is asked here
    await runtime.tools(slow(20))
    yield ground
    (tmp_path / "go").touch()
    await runtime.close()
    await keeper.close()


# -- progress


async def test_progress_comes_in_order_and_before_the_outcome(ground: Ground) -> None:
    outcome = await ground.call("ticks", times=4, every_s=0.15)
    before = list(ground.reports)

    assert outcome == {"success": True, "output": "ticked"}
    assert [report.progress for report in before] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [report.status for report in before] == ["running"] * 4 + ["completed"]
    assert {report.execution_id for report in before} == {"exe_1"}


async def test_progress_never_falls_and_what_is_no_number_keeps_it(ground: Ground) -> None:
    for step in (0.5, 0.2, "nan", "inf", None, "x", -1, 7):
        ground.reports.clear()
        await ground.call("steps", progress=[0.4, step])
        assert ground.reports[0].progress == 0.4
        assert [report.progress for report in ground.reports] == sorted(report.progress for report in ground.reports)
    ground.reports.clear()

    await ground.call("ends", reports=[{"progress": 0.4}, {"progress": 0.1, "status": "failed", "error": "no"}])

    assert ground.reports[-1].progress == 0.4


async def test_a_message_is_cut_and_made_unicode(ground: Ground) -> None:
    await ground.call("texts")

    assert ground.reports[0].message == "?" + "x" * 999


@pytest.mark.parametrize("tool", ["floods", "floods_from_a_thread", "floods_by_yield"])
async def test_a_flood_is_told_at_most_ten_times_a_second_and_its_end_is_kept(ground: Ground, tool: str) -> None:
    times = 1_000_000
    late: list[float] = []

    async def beat() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            late.append(loop.time() - before)

    beating = asyncio.create_task(beat())
    outcome = await ground.call(tool, limit_s=120, idle_s=60, times=times)
    beating.cancel()

    assert outcome == {"success": True, "output": "done"}
    took = ground.times[-1] - ground.times[0]
    assert len(ground.reports) <= took / 0.1 + 3
    assert ground.reports[-1].progress == 1.0
    if tool != "floods" or not isinstance(ground.runtime, InlineRuntime):  # what never waits has the loop to itself
        assert max(late) < 1


async def test_the_last_report_before_a_silence_is_told_without_another(ground: Ground, until: Until) -> None:
    task = asyncio.ensure_future(ground.call("generator"))
    await until(lambda: ground.said == [(0.1, "one")])
    task.cancel()
    await asyncio.wait([task])


async def test_without_a_watch_a_complex_tool_runs_to_its_end(ground: Ground) -> None:
    call = CurrentCall("call_x")

    assert await ground.runtime.call("rests", {"seconds": 0.01}, call, 10) == {"success": True, "output": "rested"}


# -- limits


async def test_a_silence_that_is_too_long_ends_it(ground: Ground) -> None:
    outcome = await ground.call("rests", idle_s=0.2, seconds=30)

    assert outcome == Fault(ErrorKind.TIMEOUT, "no progress for 0.2 s (limits.idle_s)", retry="timeout")
    assert ground.said == [(0.3, "before")]
    assert ground.lost == []


async def test_each_report_begins_the_silence_anew(ground: Ground, slow: Slow) -> None:
    assert await ground.call("ticks", idle_s=slow(0.5), times=14, every_s=0.15) == {"success": True, "output": "ticked"}


async def test_reports_do_not_move_the_longest_duration(ground: Ground) -> None:
    outcome = await ground.call("ticks", limit_s=0.5, times=1000, every_s=0.05)

    sentence = "it ran longer than 0.5 s (its timeout_ms, else limits.max_duration_s)"
    assert outcome == Fault(ErrorKind.TIMEOUT, sentence, retry="timeout")


async def test_a_limit_calls_the_tools_own_cancel(ground: Ground) -> None:
    outcome = await ground.call("generator", idle_s=0.2)

    assert outcome.kind is ErrorKind.TIMEOUT
    assert ground.read("cancelled") == "own-2"
    assert ground.has("ended")


@pytest.mark.parametrize("kind", ["process"])
async def test_a_worker_that_blocks_its_loop_is_ended_after_the_silence(ground: Ground, until: Until) -> None:
    outcome = await ground.call("blocks", idle_s=0.3, limit_s=30, seconds=30)

    sentence = "no progress for 0.3 s (limits.idle_s); its worker was ended"
    assert outcome == Fault(ErrorKind.TIMEOUT, sentence, retry="timeout")
    assert ground.said == [(0.1, "blocks now")]
    await until(lambda: ground.lost)


@pytest.mark.parametrize("kind", ["process"])
async def test_a_worker_that_dies_in_the_midst_ends_it_after_its_last_report(ground: Ground) -> None:
    outcome = await ground.call("dies")

    assert outcome.kind is ErrorKind.WORKER_CRASHED
    assert ground.said[-1][0] <= 0.7


@pytest.mark.parametrize("kind", ["process"])
async def test_what_a_worker_tells_wrongly_is_dropped_and_what_falls_is_kept_up(ground: Ground) -> None:
    outcome = await ground.call("lies")

    assert outcome == {"success": True, "output": "lied"}
    assert {report.progress for report in ground.reports} == {0.5, 1.0}
    assert "low" in {report.message for report in ground.reports}
    assert "m" not in {report.message for report in ground.reports[:1]}
    assert ground.lost == []


@pytest.mark.parametrize("kind", ["process"])
@pytest.mark.parametrize("speaks", [1])
async def test_a_worker_with_an_sdk_that_tells_no_progress_runs_to_its_end(ground: Ground) -> None:
    outcome = await ground.call("rests", idle_s=0.1, seconds=0.5)

    assert outcome == {"success": True, "output": "rested"}
    assert ground.reports == []


# -- cancellation


async def cancelled(ground: Ground, until: Until, tool: str, **arguments: Any) -> None:
    """Begin a call, and cancel its caller once the tool is at work."""
    task = asyncio.ensure_future(ground.call(tool, **arguments))
    await until(lambda: ground.has("began"), 20)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize(
    ("tool", "sign", "told"),
    [("seed", "ended", "own-1"), ("generator", "cancelled", "own-2"), ("no_id", "cancelled", "exe_1")],
)
async def test_cancelling_calls_the_tools_cancel_with_the_id_that_it_uses(
    ground: Ground, until: Until, tool: str, sign: str, told: str
) -> None:
    await cancelled(ground, until, tool)

    await until(lambda: ground.has(sign))
    assert ground.read(sign) == told
    assert ground.runtime.abandoned == 0
    assert ground.lost == []


@pytest.mark.parametrize("tool", ["channel", "plain"])
async def test_what_is_plain_everywhere_ends_when_it_is_cancelled(ground: Ground, until: Until, tool: str) -> None:
    await cancelled(ground, until, tool, waits=True)

    assert ground.read("cancelled") == ("own-3" if tool == "channel" else "exe_1")
    assert ground.runtime.abandoned == 0
    assert ground.lost == []


async def test_a_plain_function_notices_its_cancellation_when_it_reports(ground: Ground, until: Until) -> None:
    await cancelled(ground, until, "notices")

    await until(lambda: ground.has("ended"))
    assert ground.read("ended") == "the call was cancelled"
    assert ground.runtime.abandoned == 0
    assert ground.lost == []


async def test_what_ends_well_is_not_cancelled_twice(ground: Ground, until: Until) -> None:
    await cancelled(ground, until, "cleans_up")

    assert ground.has("ended")


async def test_of_calls_without_an_execution_id_only_the_cancelled_one_ends(ground: Ground, until: Until) -> None:
    calls = [CurrentCall(f"call_without_{number}") for number in range(2)]
    arguments = {"times": 12, "every_s": 0.05}
    first, second = (
        asyncio.ensure_future(ground.runtime.call("ticks", dict(arguments), call, 20, True, Watch(20, ground.tell)))
        for call in calls
    )
    await until(lambda: {report.execution_id for report in ground.reports} == {call.call_id for call in calls})

    first.cancel()

    assert await second == {"success": True, "output": "ticked"}
    assert first.cancelled()


async def test_a_cancel_that_hangs_does_not_keep_the_task_from_being_cancelled(ground: Ground, until: Until) -> None:
    await cancelled(ground, until, "hangs_on_cancel")

    assert ground.has("ended")
    assert ground.runtime.abandoned == 0
    assert ground.lost == []


async def test_what_ends_by_nothing_is_given_up(ground: Ground, until: Until) -> None:
    await cancelled(ground, until, "stays")

    if isinstance(ground.runtime, ProcessRuntime):
        await until(lambda: ground.lost)
        assert ground.lost == ["a call did not end when it was cancelled; its worker is replaced"]
    else:
        assert ground.runtime.abandoned == 1
        (ground.folder / "go").touch()
        await until(lambda: ground.runtime.abandoned == 0)


# -- outcomes


@pytest.mark.parametrize("tool", ["channel", "plain"])
async def test_plain_channels_and_generators_are_read_to_their_result(ground: Ground, tool: str) -> None:
    outcome = await ground.call(tool)

    assert outcome == {"success": True, "output": "by channel" if tool == "channel" else "by a plain generator"}
    assert ground.reports[-1][1:] == (1.0, "done", "completed")


@pytest.mark.parametrize(
    ("reports", "outcome"),
    [
        ([{"status": "completed", "result": {"success": True, "output": "a"}}], {"success": True, "output": "a"}),
        ([{"status": "completed", "message": "all of it"}], {"success": True, "output": "all of it"}),
        ([{"status": "completed"}], Fault(ErrorKind.OUTPUT_INVALID, "the execution ended with no result")),
        ([{"progress": 0.5}], Fault(ErrorKind.OUTPUT_INVALID, "the execution ended with no result")),
        ([{"status": "failed", "error": "disk full"}], Fault(ErrorKind.TOOL_ERROR, "disk full")),
        ([{"status": "cancelled", "error": "by the user"}], Fault(ErrorKind.CANCELLED, "by the user")),
        ([{"status": "cancelled"}], Fault(ErrorKind.CANCELLED, "the tool ended it as cancelled")),
        (
            [{"status": "failed", "error": "first"}, {"status": "completed", "message": "second"}],
            Fault(ErrorKind.TOOL_ERROR, "first"),
        ),
        (
            [{"status": "failed", "error": "no", "result": {"success": False, "retryable": True}}],
            {"success": False, "error": "no", "retryable": True},
        ),
    ],
)
async def test_the_last_report_decides_the_outcome(ground: Ground, reports: list[Any], outcome: Any) -> None:
    told = await ground.call("ends", reports=reports)

    assert told == outcome if isinstance(outcome, Fault) else outcome.items() <= told.items()


# -- threads that ask


@pytest.mark.parametrize("tool", ["asks", "asks_from_a_thread", "asks_simply"])
async def test_whoever_answers_a_question_knows_the_call_that_asks(ground: Ground, tool: str) -> None:
    calls = [CurrentCall(f"call_of_{tool}_{number}") for number in range(2)]

    outcomes = await asyncio.gather(*(ground.runtime.call(tool, {}, call, 20) for call in calls))

    assert [outcome["output"] for outcome in outcomes] == [call.call_id for call in calls]  # type: ignore[index]
    assert ground.read("stage") == "waited in start"


async def test_a_question_outside_any_call_has_none(ground: Ground) -> None:
    assert await ground.call("asks_outside") == {"success": True, "output": "nobody"}


async def test_a_thread_that_waits_for_the_loop_is_woken_when_its_call_is_cancelled(
    ground: Ground, until: Until
) -> None:
    await cancelled(ground, until, "waits_for_ever")

    await until(lambda: ground.has("ended"))
    assert ground.read("ended") == "CancelledError"
