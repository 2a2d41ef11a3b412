"""One tool call inside the host's process, beside its physical limit and two peers, on asyncio and uvloop.

The tool is `greet(name: str, n: int) -> str`. Every row runs it by name with the same arguments, its own
validation included. Cyrene's rows also gate the arguments, check danger and retry policy, hold a
time limit that gives up on a tool which swallows cancellation, and gate the result.
"""

from __future__ import annotations

from _environment import PEERS, continue_in_peer_environment

if __name__ == "__main__":
    continue_in_peer_environment()

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import jsonschema_rs
import uvloop
from _plugins import write_greeter, write_hooks
from _rounds import Case, Row, kept, measured, options, publish

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")

LIMIT = "limit: lookup + validate + own task + timer + await"
ARGUMENTS: dict[str, Any] = {"name": "ada", "n": 3}
GREETING = "hi ada 3"
TIMEOUT_S = 30.0
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
PACKAGES = ("cyrene-host", "pydantic", "jsonschema-rs", *(peer.partition("==")[0] for peer in PEERS))


async def greet(name: str, n: int) -> str:
    """Greet somebody n times.

    Args:
        name: who to greet
        n: how often
    """
    return f"hi {name} {n}"


def limits() -> list[Case]:
    """The least that a call can cost; the last row is the least that can also give up."""
    loop = asyncio.get_running_loop()
    tools = {"greet": (greet, jsonschema_rs.validator_for(SCHEMA).validate)}

    async def bare() -> str:
        function, validate = tools["greet"]
        validate(ARGUMENTS)
        return await function(**ARGUMENTS)

    async def own_task() -> str:
        function, validate = tools["greet"]
        validate(ARGUMENTS)
        task = loop.create_task(function(**ARGUMENTS))
        timer = loop.call_later(TIMEOUT_S, task.cancel)
        try:
            return await task
        finally:
            timer.cancel()

    async def run(function: Callable[..., Awaitable[str]], outcome: asyncio.Future[str]) -> None:
        greeting = await function(**ARGUMENTS)
        if not outcome.done():
            outcome.set_result(greeting)

    def give_up(outcome: asyncio.Future[str]) -> None:
        if not outcome.done():
            outcome.set_exception(TimeoutError())

    async def gives_up() -> str:
        function, validate = tools["greet"]
        validate(ARGUMENTS)
        outcome: asyncio.Future[str] = loop.create_future()
        task = loop.create_task(run(function, outcome))
        timer = loop.call_later(TIMEOUT_S, give_up, outcome)
        try:
            return await outcome
        finally:
            timer.cancel()
            del task

    return [
        Case("lookup + validate + bare await", bare, note="no time limit"),
        Case(LIMIT, own_task, note="cannot give up on a tool that swallows cancellation"),
        Case("the limit, able to give up", gives_up),
    ]


async def openai_agents() -> list[Case]:
    """The path of an agent run: invoke_function_tool with a time limit."""
    from agents import function_tool
    from agents.tool import invoke_function_tool
    from agents.tool_context import ToolContext

    text = json.dumps(ARGUMENTS)
    tool = function_tool(greet, timeout=TIMEOUT_S)
    context = ToolContext(context=None, tool_name="greet", tool_call_id="1", tool_arguments=text)

    call = partial(invoke_function_tool, function_tool=tool, context=context, arguments=text)
    return [Case("openai-agents invoke_function_tool(timeout=30)", call, note="takes JSON text")]


async def pydantic_ai() -> list[Case]:
    """A toolset with a time limit, arguments validated first."""
    from pydantic_ai import RunContext
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.usage import RunUsage

    toolset: FunctionToolset[None] = FunctionToolset([greet], timeout=TIMEOUT_S)
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    tools = await toolset.get_tools(context)

    async def call() -> Any:
        tool = tools["greet"]
        arguments = tool.args_validator.validate_python(ARGUMENTS)
        return await toolset.call_tool("greet", arguments, context, tool)

    return [Case("pydantic-ai FunctionToolset(timeout=30).call_tool", call, note="cannot give up")]


async def cyrene(plain_file: Path, hooked_file: Path, audited_file: Path, hosts: AsyncExitStack) -> list[Case]:
    """The host as an embedding program uses it, with a plugin from plugins.json in the `inline` runtime."""
    from cyrene_host import Host

    plain = await hosts.enter_async_context(Host.open(plain_file))
    hooked = await hosts.enter_async_context(Host.open(hooked_file))
    audited = await hosts.enter_async_context(Host.open(audited_file, overrides={"host.audit": True}))

    return [
        Case("Host.call", partial(plain.call, "greet", ARGUMENTS), reach=1.6, note="no hooks, audit off"),
        Case(
            "Host.call, one hook package",
            partial(hooked.call, "greet", ARGUMENTS),
            reach=2.0,
            note="before_call and after_call; audit off",
        ),
        Case("Host.call, audit on", partial(audited.call, "greet", ARGUMENTS), note="two records in the log"),
    ]


async def rows(files: Sequence[Path], chosen: argparse.Namespace) -> list[Row]:
    """Measure all cases on the running loop; each must greet before it is timed."""
    async with AsyncExitStack() as hosts:
        ours = await cyrene(*files, hosts)
        cases = [*limits(), *ours, *await pydantic_ai(), *await openai_agents()]
        for case in cases:
            answer = await cast("Awaitable[Any]", case.call())
            greeting = getattr(answer, "output", answer)
            if greeting != GREETING:
                raise SystemExit(f"{case.name} answered {greeting!r}, not {GREETING!r}")
        return await measured(
            kept(cases, chosen.only, LIMIT),
            limit=LIMIT,
            rounds=chosen.rounds or (3 if chosen.quick else 25),
            batch_ms=5 if chosen.quick else 40,
        )


def main() -> None:
    """Measure on asyncio, then on uvloop, and print both tables."""
    chosen = options(__doc__).parse_args()
    tables = {}
    with TemporaryDirectory() as made:
        folder = Path(made)
        files = [
            write_greeter(folder / "plain", "bench_plain"),
            write_greeter(folder / "hooked", "bench_hooked", hooks=write_hooks(folder / "site")),
            write_greeter(folder / "audited", "bench_audited"),
        ]
        for name, make_loop in (("asyncio", asyncio.new_event_loop), ("uvloop", uvloop.new_event_loop)):
            with asyncio.Runner(loop_factory=make_loop) as runner:
                tables[name] = runner.run(rows(files, chosen))
    publish("Inline call", tables, packages=PACKAGES, as_json=chosen.json)


if __name__ == "__main__":
    main()
