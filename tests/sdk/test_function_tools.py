"""Decorated functions become tools and stay functions."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from cyrene_sdk import (
    ArgumentError,
    BasePlugin,
    CurrentCall,
    DangerLevel,
    DefinitionError,
    FunctionComplexTool,
    FunctionTool,
    HostAPI,
    PluginConfig,
    Report,
    Tool,
    ToolComplexity,
    ToolDefinition,
    complex_tool,
    function_tool,
    tool,
)
from cyrene_sdk.context import _current
from cyrene_sdk.tools import ToolOptions


def _known(city: str) -> str:
    if city != "Paris":
        raise ValueError("give a known city")
    return city


class Weather(BasePlugin):
    """A plugin with one tool of each kind."""

    @tool
    def bare(self, city: str) -> str:
        """Tell the weather of a city."""
        return f"sun in {city}"

    @tool()
    async def later(self, city: str, days: int = 1) -> str:
        return f"rain in {city} in {days} days"

    @tool(
        id="w",
        name="full",
        display_name="天气",
        description="Everything",
        category="iot",
        parameters={"type": "object", "properties": {"key": {"type": "string"}}},
        returns={"type": "object"},
        timeout_ms=50,
        max_retries=2,
        danger_level="high",
        read_only=True,
        idempotent=False,
        triggers=["t"],
        not_when=["n"],
        examples=[{"key": "x"}],
        secret_arguments=["key"],
        serial=True,
        makes=["image"],
        accepts=["image"],
    )
    def everything(self, key: str) -> str:
        """Unused."""
        return key

    @complex_tool(timeout_ms=600_000)
    async def watch(self, city: str, report: Report) -> str:
        report(0.5)
        return city


def _tools() -> dict[str, Any]:
    tools: Any = Weather().tools()
    return {made.definition().name: made for made in tools}


def test_a_decorated_method_stays_a_plain_method() -> None:
    assert Weather().bare("Paris") == "sun in Paris"
    assert inspect.isfunction(Weather.bare)
    assert inspect.iscoroutinefunction(Weather.later)


def test_a_definition_comes_from_name_signature_and_docstring() -> None:
    assert _tools()["bare"].definition() == ToolDefinition(
        id="bare",
        name="bare",
        description="Tell the weather of a city.",
        complexity=ToolComplexity.SIMPLE,
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    )


def test_options_set_every_other_field() -> None:
    assert _tools()["full"].definition() == ToolDefinition(
        id="w",
        name="full",
        display_name="天气",
        description="Everything",
        category="iot",
        parameters={"type": "object", "properties": {"key": {"type": "string"}}},
        returns={"type": "object"},
        timeout_ms=50,
        max_retries=2,
        danger_level=DangerLevel.HIGH,
        read_only=True,
        idempotent=False,
        triggers=["t"],
        not_when=["n"],
        examples=[{"key": "x"}],
        secret_arguments=["key"],
        serial=True,
        makes=["image"],
        accepts=["image"],
    )


def test_a_complex_tool_says_so_twice() -> None:
    watch = _tools()["watch"]
    assert isinstance(watch, FunctionComplexTool)
    assert watch.complexity() is watch.definition().complexity is ToolComplexity.COMPLEX
    assert watch.definition().timeout_ms == 600_000
    assert list(watch.definition().parameters["properties"]) == ["city"]


def test_a_plain_def_and_an_async_def_are_told_apart_before_the_call() -> None:
    tools = _tools()
    assert {name: made.is_async for name, made in tools.items()} == {
        "bare": False,
        "later": True,
        "full": False,
        "watch": True,
    }


def test_a_complex_tool_runs_on_the_loop_whatever_its_function_is() -> None:
    def walk() -> None: ...

    assert function_tool(walk).is_async is False
    assert function_tool(complex_tool(walk)).is_async is True


async def test_execute_calls_the_function_with_python_values() -> None:
    tools = _tools()
    assert tools["bare"].execute({"city": "Paris"}) == "sun in Paris"
    assert await tools["later"].execute({"city": "Paris", "days": 2.0}) == "rain in Paris in 2 days"


def test_execute_refuses_arguments_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match="argument 'city' is missing"):
        _tools()["bare"].execute({})


def test_validate_runs_what_a_schema_cannot_say_without_the_function() -> None:
    calls: list[str] = []

    def visit(city: Annotated[str, AfterValidator(_known)]) -> None:
        calls.append(city)

    visiting = function_tool(visit)
    assert visiting.validate({"city": "Paris"}) is None  # type: ignore[func-returns-value]
    with pytest.raises(ArgumentError, match="give a known city"):
        visiting.validate({"city": "Rome"})
    assert calls == []


def test_a_function_of_an_embedding_program_becomes_a_tool() -> None:
    class Unit(BaseModel):
        sign: str

    def convert(amount: float, unit: Unit) -> str:
        """Convert an amount."""
        return f"{amount!r}{unit.sign}"

    made = function_tool(convert, name="conversion", danger_level=DangerLevel.LOW)
    assert type(made) is FunctionTool
    assert isinstance(made, Tool)
    assert made.definition().name == made.definition().id == "conversion"
    assert made.definition().description == "Convert an amount."
    assert made.definition().danger_level is DangerLevel.LOW
    assert made.execute({"amount": 2, "unit": {"sign": "€"}}) == "2.0€"


def test_a_decorated_function_keeps_its_options_when_it_is_registered() -> None:
    @complex_tool(name="walk", serial=True)
    def walk_far(report: Report) -> None: ...

    made = function_tool(walk_far, serial=False, triggers=["walk"])
    assert isinstance(made, FunctionComplexTool)
    assert made.definition().name == "walk"
    assert made.definition().serial is False
    assert made.definition().triggers == ["walk"]


def test_a_bound_method_of_an_embedding_program_becomes_a_tool() -> None:
    class Counter:
        count = 0

        def add(self, by: int) -> int:
            self.count += by
            return self.count

    counter = Counter()
    function_tool(counter.add).execute({"by": 3})
    assert counter.count == 3


def test_a_tool_may_take_the_call_and_a_log() -> None:
    def tell(name: str, call: CurrentCall, log: logging.Logger) -> tuple[str, str, str]:
        return name, call.call_id, log.name

    token = _current.set(CurrentCall("c-1"))
    try:
        assert function_tool(tell).execute({"name": "Ada"}) == ("Ada", "c-1", __name__)
    finally:
        _current.reset(token)


def test_names_defined_below_the_class_are_found_when_the_tools_are_asked_for() -> None:
    tools: Any = Early().tools()
    assert [list(made.definition().parameters["$defs"]) for made in tools] == [["Later"], ["Later", "Middle"]]


class Middle(BaseModel):
    part: Later


class Early(BasePlugin):
    @tool
    def use(self, part: Later) -> str:
        return part.name

    @tool
    def use_inside(self, middle: Middle) -> str:
        return middle.part.name


class Later(BaseModel):
    name: str


def test_names_of_the_class_body_are_found() -> None:
    class Outer(BasePlugin):
        class Inner(BaseModel):
            size: int

        @tool
        def use(self, part: Inner) -> str:
            return str(part.size)

    (use,) = Outer().tools()  # type: ignore[misc]
    assert use.execute({"part": {"size": 3}}) == "3"


def test_the_callers_names_do_not_hide_those_of_the_module() -> None:
    Path = str  # noqa: F841, N806 - the trap

    made = _made_elsewhere()
    assert made.definition().parameters["properties"]["where"]["format"] == "path"


def _made_elsewhere() -> FunctionTool:
    def sample(where: Path) -> None: ...

    return function_tool(sample)


def _untyped() -> None:
    @tool
    def hello(name) -> str:  # type: ignore[no-untyped-def]
        return str(name)


def _reporting_simple() -> None:
    @tool
    def hello(report: Report) -> None: ...


def _generating_simple() -> None:
    @tool
    async def hello(name: str) -> Any:
        yield name


def _misspelt() -> None:
    @tool(danger_lvl="low")  # type: ignore[call-overload]
    def hello(name: str) -> None: ...


def _strange() -> None:
    @tool(colour="red")  # type: ignore[call-overload]
    def hello(name: str) -> None: ...


def _unfit() -> None:
    @tool(danger_level="extreme", timeout_ms=-1)  # type: ignore[call-overload]
    def hello(name: str) -> None: ...


def _misspelt_secret() -> None:
    @tool(secret_arguments=["pasword"])
    def hello(password: str) -> None: ...


def _strange_secret() -> None:
    @tool(secret_arguments=["x"])
    def hello(password: str) -> None: ...


def _no_function() -> None:
    tool(Path)


def _static() -> None:
    class Sample:
        @tool
        @staticmethod
        def hello(name: str) -> None: ...


def _hosted() -> None:
    def hello(host: HostAPI) -> None: ...

    function_tool(hello)


def _configured() -> None:
    def hello(config: PluginConfig) -> None: ...

    function_tool(hello)


WRONG: list[tuple[Callable[[], None], str, str]] = [
    (
        _untyped,
        "parameter 'name' of tool function 'hello' has no type",
        "write its type, such as `name: str`; it tells the model what to send",
    ),
    (_reporting_simple, "tool 'hello' takes a Report, which simple tools do not have", "use @complex_tool"),
    (_generating_simple, "tool 'hello' is an async generator, which simple tools cannot be", "use @complex_tool"),
    (_misspelt, "tool 'hello' has the unknown option 'danger_lvl'", "did you mean 'danger_level'?"),
    (
        _strange,
        "tool 'hello' has the unknown option 'colour'",
        f"known are {', '.join(ToolOptions.__annotations__)}",
    ),
    (
        _unfit,
        (
            "tool 'hello' has options that do not fit: timeout_ms: Input should be greater than 0; "
            "danger_level: Input should be 'low', 'medium' or 'high'"
        ),
        "correct the decorator's options",
    ),
    (
        _misspelt_secret,
        "tool 'hello' has no parameter 'pasword', which secret_arguments names",
        "did you mean 'password'?",
    ),
    (
        _strange_secret,
        "tool 'hello' has no parameter 'x', which secret_arguments names",
        "name parameters of the function",
    ),
    (
        _no_function,
        "a tool was made of a type, which is no function",
        "decorate a plain method; put @tool above any other decorator but staticmethod and classmethod",
    ),
    (
        _static,
        "a tool was made of a staticmethod, which is no function",
        "decorate a plain method; put @tool above any other decorator but staticmethod and classmethod",
    ),
    (
        _hosted,
        "tool 'hello' takes a HostAPI, which only plugins have",
        "make it a method of a BasePlugin, or drop the parameter",
    ),
    (
        _configured,
        "tool 'hello' takes a PluginConfig, which only plugins have",
        "make it a method of a BasePlugin, or drop the parameter",
    ),
]


@pytest.mark.parametrize("parameters", ["", "name: str", "*, name: str"])
def test_a_method_without_self_is_refused(parameters: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        exec(f"class Sample:\n    @tool\n    def hello({parameters}) -> None: ...", {"tool": tool})
    assert refused.value.what == "tool method 'hello' has no `self`"
    assert refused.value.mend == "write `self` before its other parameters"


@pytest.mark.parametrize(("declare", "what", "mend"), WRONG)
def test_what_cannot_be_a_tool_is_refused_where_it_is_declared(
    declare: Callable[[], None], what: str, mend: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        declare()
    assert (refused.value.what, refused.value.mend) == (what, mend)
    if declare not in (_no_function, _static):
        first_line = declare.__code__.co_firstlineno + 1
        assert refused.value.where == f"hello, {__file__}:{first_line}"
