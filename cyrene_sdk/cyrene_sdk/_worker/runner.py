"""The one way to run a plugin's code: its stages and its calls, each contained and under a limit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cyrene_sdk._worker.bounds import CANCELLED, LATE, Bounds, OutOfThreadsError, Raised, Work, invoke
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.execution import Executions
from cyrene_sdk._worker.faults import Fault, Stage, StageError, fault_of, sentence_of, trace_of
from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk._worker.loading import Code, forget_plugin, load_plugin
from cyrene_sdk._worker.outcomes import Fields, is_plain, outcome_of
from cyrene_sdk._worker.progress import Watch
from cyrene_sdk.context import CurrentCall, _current
from cyrene_sdk.errors import CyreneError, DefinitionError, ErrorKind
from cyrene_sdk.plugin import BasePlugin, ConfigError
from cyrene_sdk.protocols import ComplexTool, HostAPI, Plugin, PluginConfig, Tool
from cyrene_sdk.tools import FunctionTool
from cyrene_sdk.types import PluginMetadata, ToolComplexity, ToolDefinition

__all__ = ["Runner", "ToolListing"]

TOOL_METHODS = ("definition", "execute", "validate", "complexity")
DEFINITION_DEPTH = 128
STAGE_THREADS = 4
"""For the plain methods of a plugin's life; more than one only for those that were given up."""
LIMITS: dict[Stage, str] = {"tools": "start_s", "health": "health_timeout_s"}


@dataclass(frozen=True, slots=True)
class _LiveTool:
    """A tool with what was found out of it once, at load."""

    tool: Tool
    definition: ToolDefinition
    complexity: ToolComplexity
    is_async: bool
    runs_long: bool
    checks_itself: bool  # a FunctionTool binds, and so checks, its arguments on execution
    fault: str

    def validates(self, is_asked: bool) -> bool:
        """Whether its `validate` has to be called, where that is asked for."""
        return is_asked and not self.checks_itself


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What `tools()` offers: every definition, and a sentence for each tool whose parts disagree."""

    definitions: list[ToolDefinition]
    faults: dict[str, str]


class Runner:
    """A plugin object with its stages and calls.

    Nothing that plugin code does raises out of it but `StageError`; a call always ends in fields or a `Fault`.

    Args:
        code: where the plugin's class is; None for tools without a plugin, which `adopt` brings.
        grace_s: seconds between cancelling work and giving it up.
        threads: how many plain `def` methods may run at once.
        on_abandoned: told when `abandoned` changes.
    """

    def __init__(
        self, code: Code | None, *, grace_s: float, threads: int, on_abandoned: Callable[[], None] | None = None
    ) -> None:
        self._code = code
        self._calls = Bounds(grace_s=grace_s, most_threads=threads, on_change=on_abandoned)
        # Threads of their own: a plugin whose calls take every thread is busy, not ill, and can still be stopped.
        self._stages = Bounds(grace_s=grace_s, most_threads=STAGE_THREADS)
        self._executions = Executions(self._calls, Bounds(grace_s=0, most_threads=threads), grace_s / 2, _outcome)
        self._plugin: Plugin | None = None
        self._tools: dict[str, _LiveTool] = {}

    @property
    def abandoned(self) -> int:
        """How many given-up calls still run."""
        return self._calls.abandoned

    @property
    def checks_config(self) -> bool:
        """Whether the loaded plugin compares its configuration with a model of its own."""
        return isinstance(self._plugin, BasePlugin) and type(self._plugin).config is not None

    async def load(self, limit_s: float) -> PluginMetadata:
        """Import the plugin, make its object and ask its metadata."""
        return await self._stage("load", limit_s, self._load())  # type: ignore[no-any-return]

    async def init(self, config: PluginConfig, limit_s: float) -> None:
        """Hand the configuration over; a `BasePlugin` with a `config` model checks it first."""
        await self._stage("init", limit_s, invoke(self._stages, self._loaded.init, config))

    async def start(self, host: HostAPI, limit_s: float) -> None:
        """Start the plugin with its access to the host."""
        await self._stage("start", limit_s, invoke(self._stages, self._loaded.start, host))

    async def tools(self, limit_s: float) -> ToolListing:
        """Ask for the tools; of two with one name the first is used."""
        return await self._stage("tools", limit_s, self._list_tools())  # type: ignore[no-any-return]

    def adopt(self, tool: Tool) -> ToolDefinition:
        """Take a tool that belongs to no plugin and return its definition; a name taken before is replaced.

        Raises:
            TypeError: `definition` or `complexity` is `async def`, which a tool without a plugin cannot have.
            DefinitionError: the two do not agree, or the definition is no JSON.
        """
        definition, complexity = tool.definition(), tool.complexity()
        if not isinstance(definition, ToolDefinition) or not isinstance(complexity, str):
            raise TypeError(f"definition() and complexity() of {type(tool).__name__} must answer at once")
        live = _live(tool, definition, ToolComplexity(complexity))
        if live.fault:
            raise DefinitionError(f"tool '{live.definition.name}': {live.fault}", mend="mend its definition")
        self._tools[live.definition.name] = live
        return live.definition

    async def health(self, limit_s: float) -> None:
        """Ask the plugin whether it is well."""
        await self._stage("health", limit_s, invoke(self._stages, self._loaded.health))

    async def stop(self, limit_s: float) -> None:
        """Let the plugin release what it holds."""
        await self._stage("stop", limit_s, invoke(self._stages, self._loaded.stop))

    async def describe(self, limit_s: float) -> dict[str, Any]:
        """Return the manifest (a JSON object) without `init` or `start`."""
        metadata = await self.load(limit_s)
        listing = await self.tools(limit_s)
        manifest: dict[str, Any] = {
            "sdk_contract": CONTRACT,
            "metadata": metadata.to_dict(),
            "tools": [definition.to_dict() for definition in listing.definitions],
        }
        if listing.faults:
            manifest["tool_faults"] = listing.faults
        schema = getattr(self._loaded, "config_schema", None)
        if callable(schema) and (found := await self._stage("load", limit_s, invoke(self._stages, schema))):
            manifest["config_schema"] = found
        return manifest

    def forget(self) -> None:
        """Let go of the plugin and of the modules from its folder; nothing can be called any more."""
        self._plugin = None
        self._tools = {}
        if self._code is not None:
            forget_plugin(self._code)

    def call(
        self,
        name: str,
        arguments: dict[str, Any],
        call: CurrentCall,
        limit_s: float,
        validate: bool = True,
        watch: Watch | None = None,
    ) -> Coroutine[Any, Any, Fields | Fault]:
        """Run one attempt of a tool: its `validate` (unless told not to), then its execution.

        Args:
            arguments: checked against the tool's schema already; the tool owns them.
            limit_s: seconds for this attempt; a tool that swallows cancellation is given up after the grace.
            watch: who follows a ComplexTool, and how long it may report nothing; None: nobody, and any time.
        """
        live = self._tools.get(name)
        if live is None:
            return _refused(self._unknown(name))
        if live.runs_long:
            long_tool = cast(ComplexTool, live.tool)
            return self._executions.call(long_tool, arguments, call, limit_s, live.validates(validate), watch)
        return self._calls.answered(self._execute(live, arguments, call, validate), limit_s, _outcome)

    def begin(
        self,
        name: str,
        arguments: dict[str, Any],
        call: CurrentCall,
        limit_s: float,
        validate: bool,
        tell: Callable[[Fields | Fault], None],
        watch: Watch | None = None,
    ) -> Work | None:
        """Begin what `call` does and have its outcome told: a worker spares each call the task that waits for it.

        Returns:
            The work, for `cancel`; None where the outcome is told already.
        """
        live = self._tools.get(name)
        if live is None:
            tell(self._unknown(name))
            return None
        if live.runs_long:
            long_tool = cast(ComplexTool, live.tool)
            validate = live.validates(validate)
            return self._executions.begin(long_tool, arguments, call, limit_s, validate, watch, tell)
        work = self._execute(live, arguments, call, validate)
        return self._calls.begin(work, limit_s, lambda answer: tell(_outcome(answer, limit_s)))

    def cancel(self, work: Work) -> None:
        """Cancel a call that was begun, a ComplexTool by its own `cancel` too; its outcome is `cancelled`."""
        self._calls.cancel(work)

    async def validate(self, name: str, arguments: dict[str, Any], call: CurrentCall, limit_s: float) -> Fault | None:
        """Run the tool's own `validate` alone, before a person is asked; None when it agrees."""
        live = self._tools.get(name)
        if live is None:
            return None  # the call itself will say so
        try:
            answer = await self._calls.limited(self._validate(live, arguments, call), limit_s)
        except TimeoutError:
            return Fault(ErrorKind.TIMEOUT, f"'validate' gave no answer within {limit_s:.3g} s", retry="timeout")
        return _ended(answer) if type(answer) is Raised else None

    def _unknown(self, name: str) -> Fault:
        known = ", ".join(f"'{known}'" for known in self._tools) or "none"
        return Fault(ErrorKind.UNKNOWN_TOOL, f"the plugin has no tool '{name}' (it has {known})")

    @property
    def _loaded(self) -> Plugin:
        assert self._plugin is not None, "load() comes before every other stage"
        return self._plugin

    async def _load(self) -> PluginMetadata:
        assert self._code is not None, "a runner without code has no stages"
        self._plugin = await self._stages.in_thread(load_plugin, self._code)
        metadata = await invoke(self._stages, self._loaded.metadata)
        if not isinstance(metadata, PluginMetadata):
            raise StageError(
                f"metadata() returned a {type(metadata).__name__}, not a PluginMetadata",
                stage="load",
                mend="return PluginMetadata(name=…, version=…)",
            )
        return metadata

    async def _list_tools(self) -> ToolListing:
        tools = await invoke(self._stages, self._loaded.tools)
        if not isinstance(tools, Sequence) or isinstance(tools, str):
            raise StageError(
                f"tools() returned a {type(tools).__name__}, not a list of tools",
                stage="tools",
                mend="return a list of objects with definition, execute, validate and complexity",
            )
        found = [await self._examined(tool, number) for number, tool in enumerate(tools, 1)]
        self._tools = {live.definition.name: live for live in reversed(found)}
        faults = {live.definition.name: live.fault for live in found if live.fault}
        return ToolListing([live.definition for live in found], faults)

    async def _examined(self, tool: Tool, number: int) -> _LiveTool:
        missing = [name for name in TOOL_METHODS if not callable(getattr(tool, name, None))]
        if missing:
            raise StageError(
                f"tool {number} ({type(tool).__name__}) has no {', '.join(repr(name) for name in missing)}",
                stage="tools",
                mend="write the missing methods, or use the @tool decorator",
            )
        definition = await invoke(self._stages, tool.definition)
        if not isinstance(definition, ToolDefinition):
            raise StageError(
                f"definition() of tool {number} returned a {type(definition).__name__}, not a ToolDefinition",
                stage="tools",
                mend="return ToolDefinition(name=…, description=…, parameters=…)",
            )
        return _live(tool, definition, ToolComplexity(await invoke(self._stages, tool.complexity)))

    async def _execute(self, live: _LiveTool, arguments: dict[str, Any], call: CurrentCall, validate: bool) -> Any:
        _current.set(call)
        tool = live.tool
        if validate and not live.checks_itself:
            await invoke(self._calls, tool.validate, arguments)
        if live.is_async:
            return await tool.execute(arguments)  # type: ignore[misc]  # examined at load
        return await invoke(self._calls, tool.execute, arguments)

    async def _validate(self, live: _LiveTool, arguments: dict[str, Any], call: CurrentCall) -> None:
        _current.set(call)
        await invoke(self._calls, live.tool.validate, arguments)

    async def _stage(self, stage: Stage, limit_s: float, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            value = await self._stages.limited(work, limit_s)
        except TimeoutError:
            raise StageError(
                f"'{stage}' did not end within its limit of {limit_s:g} s",
                stage=stage,
                mend=f"find what it waits for, or raise limits.{LIMITS.get(stage, f'{stage}_s')} in the entry",
                timed_out=True,
            ) from None
        if type(value) is not Raised:
            return value
        error = value.error
        if isinstance(error, StageError):
            raise error
        if isinstance(error, CyreneError):
            faults = error.faults if isinstance(error, ConfigError) else ()
            raise StageError(
                error.what, stage=stage, where=error.where, mend=error.mend, pointers=faults, trace=trace_of(error)
            ) from error
        raise StageError(
            f"'{stage}' raised {type(error).__name__}: {sentence_of(error)}",
            stage=stage,
            mend="mend the plugin's code, or what it says is missing",
            trace=trace_of(error),
        ) from error


def _live(tool: Tool, definition: ToolDefinition, complexity: ToolComplexity) -> _LiveTool:
    is_function = isinstance(tool, FunctionTool)
    is_async = tool.is_async if isinstance(tool, FunctionTool) else inspect.iscoroutinefunction(tool.execute)
    runs_long = complexity is ToolComplexity.COMPLEX and isinstance(tool, ComplexTool)
    if "complexity" not in definition.model_fields_set:
        definition = definition.model_copy(update={"complexity": complexity})
    definition, fault = _readable(definition)
    if definition.complexity is not complexity:
        fault = f"complexity() says '{complexity}', its definition says '{definition.complexity}'"
    elif complexity is ToolComplexity.COMPLEX and not runs_long:
        fault = "it is complex but has no execute_async and cancel"
    return _LiveTool(tool, definition, complexity, is_async, runs_long, is_function, fault)


def _readable(definition: ToolDefinition) -> tuple[ToolDefinition, str]:
    """Return the definition; where it is no plain JSON, what can be told of it and a sentence with the reason."""
    try:
        checked(definition.to_dict(), max_depth=DEFINITION_DEPTH)
    except (GateError, RecursionError) as refused:
        name = definition.name.encode("utf-8", "replace").decode()
        told = ToolDefinition(name=name, complexity=definition.complexity)
        return told, f"its definition is refused: {sentence_of(refused)}"
    return definition, ""


async def _refused(fault: Fault) -> Fault:
    return fault


def _outcome(answer: Any, limit_s: float) -> Fields | Fault:
    if is_plain(answer):
        return {"success": True, "output": answer}
    if answer is LATE:
        return Fault(ErrorKind.TIMEOUT, f"no answer within {limit_s:.3g} s", retry="timeout")
    if answer is CANCELLED:
        return Fault(ErrorKind.CANCELLED, "the call was cancelled")
    return _ended(answer) if type(answer) is Raised else outcome_of(answer)


def _ended(raised: Raised) -> Fault:
    if isinstance(raised.error, OutOfThreadsError):
        return Fault(ErrorKind.OVERLOADED, str(raised.error))
    return fault_of(raised.error)
