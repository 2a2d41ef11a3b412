"""Tools made from functions: the decorators, and the objects that run what they decorate."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

from pydantic import ValidationError

from cyrene_sdk.binding import faults_of
from cyrene_sdk.context import CurrentCall, current_call
from cyrene_sdk.errors import DefinitionError, NoCurrentCallError
from cyrene_sdk.progress import ProgressSlot
from cyrene_sdk.protocols import Report
from cyrene_sdk.signature import Signature, UnresolvedNameError, place_of, read_signature, typed_parameters
from cyrene_sdk.threads import in_thread
from cyrene_sdk.types import DangerLevel, ToolComplexity, ToolDefinition, ToolProgress, ToolResult

__all__ = [
    "Declaration",
    "FunctionComplexTool",
    "FunctionTool",
    "ToolOptions",
    "complex_tool",
    "declaration_of",
    "function_tool",
    "tool",
]

_MARK = "__cyrene_tool__"
_F = TypeVar("_F", bound=Callable[..., Any])


class ToolOptions(TypedDict, total=False):
    """Fields of `ToolDefinition` that an author sets beside the signature; the same meaning, the same default."""

    id: str
    name: str
    display_name: str
    description: str
    category: str
    parameters: dict[str, Any]
    returns: dict[str, Any]
    timeout_ms: int
    max_retries: int
    danger_level: DangerLevel | Literal["low", "medium", "high"]
    read_only: bool
    idempotent: bool
    triggers: list[str]
    not_when: list[str]
    examples: list[dict[str, Any]]
    secret_arguments: list[str]
    serial: bool
    makes: list[str]
    accepts: list[str]


@overload
def tool(function: _F, /) -> _F: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...
def tool(function: _F | None = None, /, **options: Unpack[ToolOptions]) -> _F | Callable[[_F], _F]:
    """Make a method of a `BasePlugin` a simple tool: `@tool`, `@tool()` or `@tool(danger_level="low")`.

    The parameters schema comes from the signature, the description from the docstring. The method itself
    stays as it is, and may be `def` or `async def`. It may also take a `CurrentCall`, `HostAPI`,
    `PluginConfig` or `logging.Logger`, which no caller sees.

    Args:
        options: fields of `ToolDefinition` to set or replace.
    Raises:
        DefinitionError: a parameter is untyped or has no JSON form, or an option does not fit.
    """
    return _decorated(function, ToolComplexity.SIMPLE, options)


@overload
def complex_tool(function: _F, /) -> _F: ...
@overload
def complex_tool(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...
def complex_tool(function: _F | None = None, /, **options: Unpack[ToolOptions]) -> _F | Callable[[_F], _F]:
    """Make a method a tool that runs long: like `tool`, with progress and cancellation.

    The method takes a `Report` and calls it, or is an async generator that yields ToolProgress or
    (progress, message), and at last a ToolResult or a terminal ToolProgress.

    Args:
        options: fields of `ToolDefinition` to set or replace; `timeout_ms` is the longest duration.
    Raises:
        DefinitionError: as for `tool`.
    """
    return _decorated(function, ToolComplexity.COMPLEX, options)


def function_tool(function: Callable[..., Any], **options: Unpack[ToolOptions]) -> FunctionTool:
    """Return the tool that runs a plain function or bound method of an embedding program.

    Args:
        function: as for `tool`; one that `tool` or `complex_tool` decorated keeps what was said there.
        options: fields of `ToolDefinition` to set or replace.
    Raises:
        DefinitionError: as for `tool`, or the function asks for a HostAPI or PluginConfig, which only plugins have.
    """
    earlier = declaration_of(function)
    complexity = earlier.complexity if earlier else ToolComplexity.SIMPLE
    merged = cast(ToolOptions, {**(earlier.options if earlier else {}), **options})
    declaration = Declaration(function, complexity, merged, _local_names(function))
    return declaration.made(function, {})


def declaration_of(function: Any) -> Declaration | None:
    """Return what a decorator said of this function, if one did."""
    return getattr(function, _MARK, None)


class Declaration:
    """A function declared to be a tool; read once, for all plugin objects of its class.

    Args:
        function: the decorated function.
        complexity: which decorator it was.
        options: fields of `ToolDefinition` given to the decorator.
        names: names local to where the function is defined.
    Raises:
        DefinitionError: the function or an option does not fit.
    """

    def __init__(
        self, function: Callable[..., Any], complexity: ToolComplexity, options: ToolOptions, names: dict[str, Any]
    ) -> None:
        if not (inspect.isfunction(function) or inspect.ismethod(function)):
            raise DefinitionError(
                f"a tool was made of {_shown(function)}, which is no function",
                mend="decorate a plain method; put @tool above any other decorator but staticmethod and classmethod",
            )
        self.function = function
        self.complexity = complexity
        self.options = options
        self.name = options.get("name") or function.__name__
        self._names = names
        self._check()
        with suppress(UnresolvedNameError):  # perhaps defined further below: read again when the tools are asked for
            _ = self.definition

    @cached_property
    def signature(self) -> Signature:
        """The function's signature, as schemas and binder."""
        signature = read_signature(self.function, self._names)
        self._names.clear()  # nothing local is kept alive
        if Report in signature.injected.values() and self.complexity is ToolComplexity.SIMPLE:
            raise self._error("takes a Report, which simple tools do not have", "use @complex_tool")
        return signature

    @cached_property
    def definition(self) -> ToolDefinition:
        """The tool's definition."""
        signature = self.signature
        fields: dict[str, Any] = {
            "id": self.name,
            "name": self.name,
            "description": signature.description,
            "complexity": self.complexity,
            "parameters": signature.parameters,
            "returns": signature.returns,
            **self.options,
        }
        try:
            definition = ToolDefinition(**fields)
        except ValidationError as error:
            faults = "; ".join(f"{pointer.lstrip('/')}: {text}" for pointer, text in faults_of(error, fields))
            raise self._error(f"has options that do not fit: {faults}", "correct the decorator's options") from error
        self._check_secrets(definition)
        return definition

    def made(self, call: Callable[..., Any], sources: Mapping[type, Callable[[], Any]]) -> FunctionTool:
        """Return the tool that calls `call`.

        Args:
            call: the function itself, or the method of one plugin object.
            sources: where the values of injected parameters come from, by type.
        """
        kind = FunctionComplexTool if self.complexity is ToolComplexity.COMPLEX else FunctionTool
        return kind(self, call, sources)

    def _check(self) -> None:
        for option in self.options.keys() - ToolOptions.__annotations__.keys():
            near = get_close_matches(option, ToolOptions.__annotations__, n=1)
            raise self._error(
                f"has the unknown option '{option}'",
                f"did you mean '{near[0]}'?" if near else f"known are {', '.join(ToolOptions.__annotations__)}",
            )
        if self.complexity is ToolComplexity.SIMPLE and inspect.isasyncgenfunction(self.function):
            raise self._error("is an async generator, which simple tools cannot be", "use @complex_tool")
        typed_parameters(self.function)

    def _check_secrets(self, definition: ToolDefinition) -> None:
        known = definition.parameters.get("properties", {})
        for secret in definition.secret_arguments:
            if secret not in known:
                near = get_close_matches(secret, known, n=1)
                raise self._error(
                    f"has no parameter '{secret}', which secret_arguments names",
                    f"did you mean '{near[0]}'?" if near else "name parameters of the function",
                )

    def _error(self, what: str, mend: str) -> DefinitionError:
        return DefinitionError(f"tool '{self.name}' {what}", where=place_of(self.function), mend=mend)


class FunctionTool:
    """A simple tool that is a function. `is_async` tells, before it is called, whether it runs on the loop."""

    def __init__(
        self, declaration: Declaration, call: Callable[..., Any], sources: Mapping[type, Callable[[], Any]]
    ) -> None:
        self._declaration = declaration
        self._call = call
        self._bind = declaration.signature.bind
        self._injected = {
            name: _source(declaration, kind, sources)
            for name, kind in declaration.signature.injected.items()
            if kind is not Report
        }
        # The method itself: to call the object takes twice as long.
        self._arguments = self._bound_and_injected if self._injected else self._bind.__call__
        self.is_async = inspect.iscoroutinefunction(call)

    def definition(self) -> ToolDefinition:
        """Return what the decorator, the signature and the docstring say."""
        return self._declaration.definition

    def complexity(self) -> ToolComplexity:
        """Return which decorator it was."""
        return self._declaration.complexity

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check what the schema cannot say: the validators of the parameters' types.

        Raises:
            ArgumentError: an argument does not fit.
        """
        if self._bind.converts:
            self._bind(args)

    def execute(self, args: Mapping[str, Any]) -> Any:
        """Call the function and return what it returns: of an `async def` an awaitable.

        Raises:
            ArgumentError: an argument does not fit. Whatever the function raises passes through.
        """
        return self._call(**self._arguments(args))

    def _bound_and_injected(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._bind(args), **{name: source() for name, source in self._injected.items()}}


class FunctionComplexTool(FunctionTool):
    """A complex tool that is a function with a `Report`, or an async generator. It runs on the event loop."""

    def __init__(
        self, declaration: Declaration, call: Callable[..., Any], sources: Mapping[type, Callable[[], Any]]
    ) -> None:
        super().__init__(declaration, call, sources)
        self._is_coroutine, self.is_async = self.is_async, True
        injected = declaration.signature.injected
        self._reporters = [name for name, kind in injected.items() if kind is Report]
        self._running: dict[asyncio.Task[Any], str] = {}

    async def execute_async(self, args: Mapping[str, Any]) -> AsyncIterator[ToolProgress]:
        """Run the function and yield its progress.

        The last report is terminal and has the result; a generator that ends without one has none.

        Raises:
            ArgumentError: an argument does not fit. Whatever the function raises passes through.
        """
        execution_id = _execution_id()
        slot = ProgressSlot(execution_id)
        work = asyncio.create_task(self._outcome(args, slot))
        # Whoever iterates waits for it; asyncio.run() must not, for one that swallows cancellation never ends.
        asyncio._unregister_task(work)  # noqa: SLF001 - documented for code that extends asyncio
        self._running[work] = execution_id
        try:
            async for report in slot.until_done(work):
                yield report
            last = slot.cancelled() if work.cancelled() else work.result()
            if isinstance(last, BaseException):
                raise last
            if last is not None:
                yield last
        finally:
            slot.close()
            _cancel_once(work)
            await asyncio.gather(work, return_exceptions=True)
            del self._running[work]

    async def cancel(self, execution_id: str) -> None:
        """End the execution with this id, if it still runs; a `def` in its thread notices at its next report."""
        for work, running_id in self._running.items():
            if running_id == execution_id:
                _cancel_once(work)

    async def execute(self, args: Mapping[str, Any]) -> ToolResult:
        """Run the function to its end and return the result, without the progress."""
        result = None
        async for report in self.execute_async(args):
            result = report.result
        return result or ToolResult(error=f"tool '{self._declaration.name}' ended without a result")

    async def _outcome(self, args: Mapping[str, Any], slot: ProgressSlot) -> ToolProgress | BaseException | None:
        call = partial(self._call, **self._arguments(args), **dict.fromkeys(self._reporters, slot))
        try:
            if inspect.isasyncgenfunction(self._call):
                return await slot.drain(call())
            return slot.ended(await call() if self._is_coroutine else await in_thread(call))
        except (SystemExit, KeyboardInterrupt) as exit_request:
            return exit_request  # raised out of a task, either would end the event loop


def _cancel_once(work: asyncio.Task[Any]) -> None:
    if not work.cancelling():  # a second time would tear it out of what it does to end well
        work.cancel()


def _decorated(function: _F | None, complexity: ToolComplexity, options: ToolOptions) -> _F | Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        setattr(function, _MARK, Declaration(function, complexity, options, _local_names(function)))
        return function

    return decorate if function is None else decorate(function)


def _local_names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names in the class body and the functions around `function` that run right now."""
    names: dict[str, Any] = {}
    path = getattr(function, "__qualname__", "")
    module = getattr(inspect.unwrap(function), "__globals__", None)
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        if frame.f_globals is module and path.startswith(frame.f_code.co_qualname + "."):
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def _source(declaration: Declaration, kind: type, sources: Mapping[type, Callable[[], Any]]) -> Callable[[], Any]:
    if kind in sources:
        return sources[kind]
    if kind is CurrentCall:
        return current_call
    if kind is logging.Logger:
        return partial(logging.getLogger, declaration.function.__module__)
    raise DefinitionError(
        f"tool '{declaration.name}' takes a {kind.__name__}, which only plugins have",
        where=place_of(declaration.function),
        mend="make it a method of a BasePlugin, or drop the parameter",
    )


def _execution_id() -> str:
    try:
        return current_call().execution_id or ""
    except NoCurrentCallError:
        return ""


def _shown(value: object) -> str:
    return f"a {type(value).__name__}"
