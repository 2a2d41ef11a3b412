"""A runner runs a plugin's stages and calls, and nothing that the plugin does comes out but an answer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cyrene_sdk import (
    ArgumentError,
    CurrentCall,
    ErrorKind,
    ModelRetry,
    PluginConfig,
    ProgressStatus,
    ToolComplexity,
    ToolDefinition,
    ToolProgress,
    ToolResult,
    complex_tool,
    current_call,
)
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.faults import Fault, StageError
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.runner import Runner
from cyrene_sdk.errors import DefinitionError
from cyrene_sdk.tools import function_tool

CALL = CurrentCall("call_1", user_id="ada")

_numbers = itertools.count(1)


class Simple:
    """A tool in its long form; subclasses say what it does."""

    name = "simple"

    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self.name, description="A tool.", parameters={"type": "object"})

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.SIMPLE

    def validate(self, args: dict[str, Any]) -> None:
        if args.get("bad"):
            raise ArgumentError("'bad' is bad", path="/bad")

    async def execute(self, args: dict[str, Any]) -> Any:
        return ToolResult(success=True, output=f"{args} for {current_call().user_id}")


class Long(Simple):
    """A ComplexTool that yields what it is made with."""

    name = "long"

    def __init__(self, *reports: ToolProgress) -> None:
        self.reports = reports

    def complexity(self) -> ToolComplexity:
        return ToolComplexity.COMPLEX

    async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
        for report in self.reports:
            yield report

    def cancel(self, execution_id: str) -> None: ...


@pytest.fixture
def runner() -> Runner:
    return Runner(None, grace_s=0.05, threads=2)


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    """Return a function that makes the runner of a plugin class with the given body."""
    modules, path = set(sys.modules), list(sys.path)

    def written(body: str = "", *, head: str = "", threads: int = 4) -> Runner:
        module = f"run_{next(_numbers)}"
        source = f"from cyrene_sdk import *\nimport asyncio, threading\nfrom pydantic import BaseModel\n{head}\n"
        source += "class Made(BasePlugin):\n    meta = PluginMetadata(name='made', version='1.0.0')\n"
        (tmp_path / f"{module}.py").write_text(source + "\n".join(f"    {line}" for line in body.splitlines()) + "\n")
        return Runner(Code(module, None, str(tmp_path)), grace_s=0.05, threads=threads)

    yield written
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


async def result_of(runner: Runner, tool: Any, arguments: dict[str, Any] | None = None, limit_s: float = 10) -> Any:
    return await runner.call(runner.adopt(tool).name, arguments or {}, CALL, limit_s)


async def stage_error(awaited: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        await awaited
    return caught.value


# -- stages


async def test_a_plugin_goes_through_its_stages(write: Callable[..., Runner]) -> None:
    body = """
async def init(self, config): self.seen = [config["unit"]]
def start(self, host): self.seen.append(host)
def stop(self): self.seen.append("stop")
async def health(self): self.seen.append("health")
@tool
def seen_so_far(self) -> list: return self.seen
"""
    runner = write(body)

    metadata = await runner.load(5)
    await runner.init(PluginConfig({"unit": "C"}), 5)
    await runner.start("the host", 5)  # type: ignore[arg-type]
    listing = await runner.tools(5)
    await runner.health(5)
    await runner.stop(5)
    outcome = await runner.call("seen_so_far", {}, CALL, 5)

    assert (metadata.name, metadata.version) == ("made", "1.0.0")
    assert [definition.name for definition in listing.definitions] == ["seen_so_far"]
    assert listing.faults == {}
    assert isinstance(outcome, dict)
    assert outcome["data"] == ["C", "the host", "health", "stop"]
    assert runner.abandoned == 0


async def test_a_plugin_whose_calls_take_every_thread_is_well_and_can_be_stopped(write: Callable[..., Runner]) -> None:
    body = """
def stop(self): end.set()
@tool
def wait(self) -> str:
    begun.set()
    return f"ended: {end.wait(10)}"
"""
    runner = write(body, head="begun, end = threading.Event(), threading.Event()", threads=1)
    await runner.load(5)
    await runner.tools(5)
    call = asyncio.create_task(runner.call("wait", {}, CALL, 20))
    [module] = [module for name, module in sys.modules.items() if name.startswith("run_")]
    assert await asyncio.to_thread(module.begun.wait, 10)

    await runner.health(5)
    await runner.stop(5)

    assert await call == {"success": True, "output": "ended: True"}


async def test_plain_methods_run_in_a_thread_and_may_return_awaitables(write: Callable[..., Runner]) -> None:
    body = """
def metadata(self):
    self.thread = threading.current_thread()
    return self.later()
async def later(self):
    return PluginMetadata(name=str(self.thread is threading.main_thread()), version="1.0.0")
"""
    assert (await write(body).load(5)).name == "False"


@pytest.mark.parametrize(
    ("stage", "method"),
    [
        ("init", "init(self, config)"),
        ("start", "start(self, host)"),
        ("health", "health(self)"),
        ("stop", "stop(self)"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_stage_that_raises_says_which_and_why(
    write: Callable[..., Runner], stage: str, method: str, kind: str
) -> None:
    runner = write(f"{kind} {method}:\n    raise KeyboardInterrupt('no\\nkey')")
    await runner.load(5)
    argument = {"init": [PluginConfig()], "start": [None]}.get(stage, [])

    error = await stage_error(getattr(runner, stage)(*argument, 5))

    assert str(error) == (
        f"'{stage}' raised KeyboardInterrupt: no\nkey\n  mend:  mend the plugin's code, or what it says is missing"
    )
    assert (error.stage, error.timed_out) == (stage, False)
    assert "KeyboardInterrupt: no" in error.trace


@pytest.mark.parametrize(
    ("stage", "method", "limit"),
    [
        ("load", "metadata(self)", "load_s"),
        ("init", "init(self, config)", "init_s"),
        ("start", "start(self, host)", "start_s"),
        ("tools", "tools(self)", "start_s"),
        ("health", "health(self)", "health_timeout_s"),
        ("stop", "stop(self)", "stop_s"),
    ],
)
async def test_a_stage_that_does_not_end_names_its_limit(
    write: Callable[..., Runner], stage: str, method: str, limit: str
) -> None:
    runner = write(f"async def {method}:\n    await asyncio.Event().wait()")
    if stage != "load":
        await runner.load(5)
    argument = {"init": [PluginConfig()], "start": [None]}.get(stage, [])

    error = await stage_error(getattr(runner, stage)(*argument, 0.02 if stage != "load" else 0.2))

    assert error.what.startswith(f"'{stage}' did not end within its limit of 0.")
    assert error.mend == f"find what it waits for, or raise limits.{limit} in the entry"
    assert (error.stage, error.timed_out) == (stage, True)


async def test_an_import_that_fails_is_the_load_stages_error(write: Callable[..., Runner]) -> None:
    error = await stage_error(write(head="raise ImportError('x')").load(5))

    assert error.stage == "load"
    assert error.what.endswith("failed to import: ImportError: x")


async def test_an_error_in_four_parts_keeps_them(write: Callable[..., Runner]) -> None:
    body = "def init(self, config):\n    raise CyreneError('no key', where='config', mend='give one')"
    runner = write(body, head="from cyrene_sdk.errors import CyreneError")
    await runner.load(5)

    error = await stage_error(runner.init(PluginConfig(), 5))

    assert str(error) == "no key\n  where: config\n  mend:  give one"
    assert "CyreneError" in error.trace


async def test_a_configuration_that_does_not_fit_is_told_with_pointers_and_without_values(
    write: Callable[..., Runner],
) -> None:
    runner = write("config = Settings", head="class Settings(BaseModel):\n    port: int\n    host: str")
    assert not runner.checks_config
    await runner.load(5)
    assert runner.checks_config

    error = await stage_error(runner.init(PluginConfig({"port": "s3cret"}), 5))

    assert [pointer for pointer, _ in error.pointers] == ["/port", "/host"]
    assert "s3cret" not in str(error)


async def test_a_plugin_without_a_model_leaves_its_configuration_unchecked(write: Callable[..., Runner]) -> None:
    runner = write()
    await runner.load(5)

    assert not runner.checks_config


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("def metadata(self): return {'name': 'x'}", "metadata() returned a dict, not a PluginMetadata"),
        ("async def tools(self): return 'abc'", "tools() returned a str, not a list of tools"),
        ("def tools(self): return None", "tools() returned a NoneType, not a list of tools"),
        (
            "def tools(self): return [Half()]",
            "tool 1 (Half) has no 'execute', 'validate', 'complexity'",
        ),
        ("def tools(self): return [Odd()]", "definition() of tool 1 returned a dict, not a ToolDefinition"),
    ],
)
async def test_a_plugin_that_returns_something_else_is_told_what(
    write: Callable[..., Runner], body: str, what: str
) -> None:
    head = """
class Half:
    def definition(self): return {}
class Odd(Half):
    def execute(self, args): ...
    def validate(self, args): ...
    def complexity(self): return "simple"
"""
    runner = write(body, head=head)

    async def list_tools() -> None:
        await runner.load(5)
        await runner.tools(5)

    error = await stage_error(list_tools())

    assert error.what == what
    assert error.mend


async def test_of_two_tools_with_one_name_the_first_is_called(write: Callable[..., Runner]) -> None:
    head = """
class Twin:
    def __init__(self, text): self.text = text
    def definition(self): return ToolDefinition(name="twin")
    def execute(self, args): return self.text
    def validate(self, args): ...
    async def complexity(self): return "simple"
"""
    runner = write("def tools(self): return (Twin('first'), Twin('second'))", head=head)
    await runner.load(5)
    listing = await runner.tools(5)

    assert len(listing.definitions) == 2
    assert await runner.call("twin", {}, CALL, 5) == {"success": True, "output": "first"}


async def test_tools_whose_parts_disagree_or_are_no_json_are_listed_with_a_fault(write: Callable[..., Runner]) -> None:
    head = """
class Odd:
    def __init__(self, said, does, **fields): self.said, self.does, self.fields = said, does, fields
    def definition(self): return ToolDefinition(complexity=self.said, **self.fields)
    def execute(self, args): return "ran"
    def validate(self, args): ...
    def complexity(self): return self.does
deep = {}
for _ in range(5000): deep = {"allOf": [deep]}
"""
    body = """
def tools(self): return [
    Odd("simple", "complex", name="liar"),
    Odd("complex", "complex", name="half"),
    Odd("simple", "simple", name="infinite", parameters={"maximum": float("inf")}),
    Odd("simple", "simple", name="deep", parameters=deep),
    Odd("simple", "simple", name="bytes", examples=[{"a": b"x"}]),
    Odd("simple", "simple", name="fine"),
    Odd("simple", "simple", name="half a \\ud800"),
]"""
    runner = write(body, head=head)
    await runner.load(5)
    listing = await runner.tools(5)

    names = [definition.name for definition in listing.definitions]
    assert names == ["liar", "half", "infinite", "deep", "bytes", "fine", "half a ?"]
    refused = "its definition is refused: "
    assert listing.faults.pop("deep").startswith(refused)
    assert listing.faults == {
        "liar": "complexity() says 'complex', its definition says 'simple'",
        "half": "it is complex but has no execute_async and cancel",
        "infinite": f"{refused}the number at '/parameters/maximum' is NaN or infinite, no JSON",
        "bytes": f"{refused}the value at '/examples/0/a' is of type 'bytes', which is no JSON",
        "half a ?": f"{refused}the text at '/name' holds a lone surrogate, which is no Unicode text",
    }


async def test_the_definition_takes_the_complexity_that_it_leaves_open(runner: Runner) -> None:
    assert runner.adopt(Long()).complexity is ToolComplexity.COMPLEX


async def test_describing_takes_metadata_tools_and_config_schema_without_init(write: Callable[..., Runner]) -> None:
    body = """
config = Settings
def init(self, config): raise AssertionError
def start(self, host): raise AssertionError
@tool
def hello(self, name: str) -> str: return name
"""
    manifest = await write(body, head="class Settings(BaseModel):\n    port: int").describe(5)

    assert manifest["sdk_contract"] == CONTRACT
    assert manifest["metadata"]["name"] == "made"
    assert [definition["name"] for definition in manifest["tools"]] == ["hello"]
    assert manifest["config_schema"]["properties"]["port"]["type"] == "integer"
    assert "tool_faults" not in manifest


async def test_describing_leaves_out_what_is_not_there_and_keeps_faults(write: Callable[..., Runner]) -> None:
    head = """
class Liar:
    def definition(self): return ToolDefinition(name="liar", complexity="simple")
    def execute(self, args): ...
    def validate(self, args): ...
    def complexity(self): return "complex"
"""
    body = "config_schema = None\ndef tools(self): return [Liar()]"
    manifest = await write(body, head=head).describe(5)

    assert manifest["tool_faults"] == {"liar": "complexity() says 'complex', its definition says 'simple'"}
    assert "config_schema" not in manifest


# -- tools without a plugin


def test_a_tool_without_a_plugin_has_to_answer_at_once(runner: Runner) -> None:
    class Late(Simple):
        async def definition(self) -> ToolDefinition:  # type: ignore[override]
            return ToolDefinition()

    class Later(Simple):
        async def complexity(self) -> ToolComplexity:  # type: ignore[override]
            return ToolComplexity.SIMPLE

    for tool in (Late(), Later()):
        with pytest.warns(RuntimeWarning, match="never awaited"), pytest.raises(TypeError, match="must answer at once"):
            runner.adopt(tool)  # type: ignore[arg-type]


def test_a_tool_without_a_plugin_whose_parts_disagree_is_refused(runner: Runner) -> None:
    class Liar(Simple):
        def definition(self) -> ToolDefinition:
            return ToolDefinition(name="liar", complexity=ToolComplexity.COMPLEX)

    with pytest.raises(DefinitionError) as refused:
        runner.adopt(Liar())

    assert str(refused.value) == (
        "tool 'liar': complexity() says 'simple', its definition says 'complex'\n  mend:  mend its definition"
    )


async def test_a_name_taken_before_is_replaced(runner: Runner) -> None:
    def greet() -> str:
        return "first"

    runner.adopt(function_tool(greet))

    assert await result_of(runner, function_tool(lambda: "second", name="greet")) == {
        "success": True,
        "output": "second",
    }


# -- calls


async def test_a_call_gives_the_tool_its_arguments_and_its_call(runner: Runner) -> None:
    assert await result_of(runner, Simple(), {"a": 1}) == {"success": True, "output": "{'a': 1} for ada"}


async def test_a_plain_tool_runs_in_a_thread_that_knows_its_call(runner: Runner) -> None:
    class Plain(Simple):
        def execute(self, args: dict[str, Any]) -> Any:  # type: ignore[override]
            return [current_call().call_id, threading.current_thread() is threading.main_thread()]

    assert (await result_of(runner, Plain()))["data"] == ["call_1", False]


async def test_a_plain_function_is_a_tool_too(runner: Runner) -> None:
    def whose(greeting: str, call: CurrentCall) -> str:
        return f"{greeting} {call.user_id}"

    assert await result_of(runner, function_tool(whose), {"greeting": "hi"}) == {"success": True, "output": "hi ada"}


async def test_validate_comes_before_the_execution_and_can_be_left_out(runner: Runner) -> None:
    ran: list[str] = []

    class Watched(Simple):
        def validate(self, args: dict[str, Any]) -> None:
            ran.append("validate")
            raise ModelRetry("no")

        async def execute(self, args: dict[str, Any]) -> str:
            ran.append("execute")
            return "done"

    name = runner.adopt(Watched()).name

    assert await runner.call(name, {}, CALL, 5) == Fault(ErrorKind.INVALID_ARGUMENTS, "no", reason="tool")
    assert await runner.call(name, {}, CALL, 5, False) == {"success": True, "output": "done"}
    assert ran == ["validate", "execute"]


async def test_validate_alone_agrees_or_says_why_not(runner: Runner) -> None:
    name = runner.adopt(Simple()).name

    assert await runner.validate(name, {}, CALL, 5) is None
    assert await runner.validate(name, {"bad": 1}, CALL, 5) == Fault(
        ErrorKind.INVALID_ARGUMENTS, "'bad' is bad", reason="tool", path="/bad"
    )
    assert await runner.validate("absent", {}, CALL, 5) is None


async def test_validate_alone_knows_its_call_and_has_a_limit(runner: Runner) -> None:
    class Slow(Simple):
        async def validate(self, args: dict[str, Any]) -> None:  # type: ignore[override]
            assert current_call().call_id == "call_1"
            await asyncio.Event().wait()

    name = runner.adopt(Slow()).name

    assert await runner.validate(name, {}, CALL, 0.02) == Fault(
        ErrorKind.TIMEOUT, "'validate' gave no answer within 0.02 s", retry="timeout"
    )


async def test_an_unknown_tool_is_told_with_those_there_are(runner: Runner) -> None:
    assert await runner.call("absent", {}, CALL, 5) == Fault(
        ErrorKind.UNKNOWN_TOOL, "the plugin has no tool 'absent' (it has none)"
    )
    runner.adopt(Simple())
    runner.adopt(Long())
    outcome = await runner.call("absent", {}, CALL, 5)
    assert isinstance(outcome, Fault)
    assert outcome.message == "the plugin has no tool 'absent' (it has 'simple', 'long')"


async def test_a_tool_over_its_limit_times_out(runner: Runner) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    assert await result_of(runner, function_tool(wait), limit_s=0.02) == Fault(
        ErrorKind.TIMEOUT, "no answer within 0.02 s", retry="timeout"
    )


async def test_a_tool_that_finds_no_free_thread_is_overloaded(runner: Runner) -> None:
    release = threading.Event()

    def wait() -> bool:
        return release.wait()

    tool = function_tool(wait)
    for _ in range(2):
        assert (await result_of(runner, tool, limit_s=0.02)).kind is ErrorKind.TIMEOUT
    assert runner.abandoned == 2

    assert await result_of(runner, tool) == Fault(
        ErrorKind.OVERLOADED, "all 2 threads are busy, 2 of them with given-up calls"
    )
    release.set()


async def test_what_a_tool_raises_and_what_it_returns_wrongly_are_faults(runner: Runner) -> None:
    async def raises() -> None:
        raise SystemExit(3)

    async def returns() -> Any:
        return {1}

    assert (await result_of(runner, function_tool(raises))).message == "SystemExit: exited with status 3"
    assert (await result_of(runner, function_tool(returns))).kind is ErrorKind.OUTPUT_INVALID


# -- complex tools


RESULT = ToolResult(success=True, output="all done")


async def test_a_complex_tool_ends_with_the_result_of_its_last_report(runner: Runner) -> None:
    tool = Long(ToolProgress(progress=0.5), ToolProgress(status=ProgressStatus.COMPLETED, progress=1, result=RESULT))

    assert await result_of(runner, tool) == {"success": True, "output": "all done"}


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_complex_tool_may_return_its_reports_from_a_method(runner: Runner, kind: str) -> None:
    threads: list[threading.Thread] = []
    long = Long(ToolProgress(result=RESULT))

    class Plain(Long):
        def execute_async(self, args: dict[str, Any]) -> Any:
            threads.append(threading.current_thread())
            return long.execute_async(args)

    class Later(Plain):
        async def execute_async(self, args: dict[str, Any]) -> Any:
            return super().execute_async(args)

    assert await result_of(runner, Plain() if kind == "def" else Later()) == {"success": True, "output": "all done"}
    assert (threads[0] is threading.main_thread()) is (kind != "def")


async def test_an_iterator_that_cannot_be_closed_is_read_too(runner: Runner) -> None:
    class Reports:
        def __aiter__(self) -> Reports:
            return self

        async def __anext__(self) -> ToolProgress:
            return ToolProgress(result=RESULT)

    class Other(Long):
        def execute_async(self, args: dict[str, Any]) -> Any:
            return Reports()

    assert await result_of(runner, Other()) == {"success": True, "output": "all done"}


@pytest.mark.parametrize(
    "reports", [(), (ToolProgress(progress=0.5),), (ToolProgress(status=ProgressStatus.COMPLETED),)]
)
async def test_a_complex_tool_that_ends_without_a_result_is_output_invalid(
    runner: Runner, reports: tuple[ToolProgress, ...]
) -> None:
    assert await result_of(runner, Long(*reports)) == Fault(
        ErrorKind.OUTPUT_INVALID, "the execution ended with no result"
    )


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (ToolProgress(status=ProgressStatus.FAILED, error="disk full"), "disk full"),
        (ToolProgress(status=ProgressStatus.FAILED), "the execution ended as failed"),
        (ToolProgress(status=ProgressStatus.FAILED, message="no paper"), "no paper"),
        (ToolProgress(status=ProgressStatus.FAILED, error="no paper", result=RESULT), "no paper"),
    ],
)
async def test_a_complex_tool_that_reports_its_failure_fails(
    runner: Runner, report: ToolProgress, message: str
) -> None:
    assert await result_of(runner, Long(report)) == Fault(ErrorKind.TOOL_ERROR, message)


async def test_a_complex_tool_that_yields_something_else_fails(runner: Runner) -> None:
    outcome = await result_of(runner, Long("half way"))  # type: ignore[arg-type]

    assert (outcome.kind, outcome.exception) == (ErrorKind.TOOL_ERROR, "AttributeError")


async def test_an_endless_generator_that_never_waits_times_out(runner: Runner, slow: Callable[[float], float]) -> None:
    class Endless(Long):
        async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
            while True:
                yield ToolProgress()

    begun = time.monotonic()
    outcome = await result_of(runner, Endless(), limit_s=0.05)

    assert outcome.kind is ErrorKind.TIMEOUT
    assert time.monotonic() - begun < slow(5)  # the test's own time limit would look like the tool's error
    assert runner.abandoned == 0


async def test_a_generator_is_closed_when_its_result_is_there(runner: Runner) -> None:
    closed: list[bool] = []

    class Careful(Long):
        async def execute_async(self, args: dict[str, Any]) -> AsyncIterator[ToolProgress]:
            try:
                yield ToolProgress(result=RESULT)
                yield ToolProgress()
            finally:
                closed.append(True)

    await result_of(runner, Careful())

    assert closed == [True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_loop_ends_though_a_complex_tool_swallows_its_cancellation() -> None:
    async def stays() -> str:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def main() -> int:
        runner = Runner(None, grace_s=0.05, threads=2)
        outcome = await result_of(runner, function_tool(complex_tool(stays)), limit_s=0.05)
        assert outcome.kind is ErrorKind.TIMEOUT
        return runner.abandoned

    assert asyncio.run(main()) == 1
    gc.collect()  # what is left of it complains here, and in no other test
