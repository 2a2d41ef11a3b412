"""Each way that a call fails says in four parts what happened, to which plugin, where, and how to mend it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from cyrene_host import Host
from cyrene_host.call.failures import attempt_failed, schema_unusable
from cyrene_host.call.policy import ApprovalRequest
from cyrene_host.call.results import as_failure
from cyrene_host.call.secrecy import hide, redact_fields
from cyrene_host.call.tool import CallableTool
from cyrene_host.catalog.secrets import Redactor
from cyrene_host.errors import TRAITS, CallFailedError
from cyrene_sdk import DangerLevel, ErrorKind, ToolDefinition
from cyrene_sdk._worker.faults import Fault

HostWith = Callable[..., AbstractAsyncContextManager[Host]]


async def refuse(request: ApprovalRequest) -> bool:
    return False


# The call, the keywords of the host, and the whole text of the error.
TEXTS: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "unknown tool": (
        "faulty.promisses",
        {},
        {},
        """
there is no tool 'faulty.promisses'
  where: tool name
  mend:  did you mean 'faulty.promises' or …?""",
    ),
    "schema": (
        "faulty.works_at_last",
        {"how": 3},
        {},
        """
plugin 'faulty': the arguments of 'works_at_last' do not fit:
    /how: …
    the key 'fails' is missing
  where: tool 'faulty.works_at_last', arguments
  mend:  arguments of 'works_at_last': fails, how?""",
    ),
    "not json": (
        "faulty.echo",
        "{",
        {},
        """
plugin 'faulty': the arguments of 'echo' do not fit: the arguments break off at line 1, column 2: send them whole
  where: tool 'faulty.echo', arguments
  mend:  arguments of 'echo': text?""",
    ),
    "the tool's validate": (
        "faulty.greets",
        {"name": "nobody"},
        {},
        """
plugin 'faulty': tool 'greets': nobody is no name
  where: tool 'faulty.greets' at /name
  mend:  arguments of 'greets': name?""",
    ),
    "approval": (
        "faulty.destroys",
        {"names": []},
        {},
        """
plugin 'faulty': the call of 'destroys' (danger high) waits for a person's approval
  where: approval 'apr_…', execution 'exe_…'
  mend:  `cyrene approvals approve apr_…` runs it once, as long as nothing about it has changed""",
    ),
    "refused by a person": (
        "faulty.destroys",
        {"names": []},
        {"approver": refuse},
        """
plugin 'faulty': the call of 'destroys' (danger high) was refused: the person who was asked refused the call
  where: tool 'faulty.destroys', danger 'high'
  mend:  the operator decides this in cyrene.toml [danger]""",
    ),
    "refused by policy": (
        "faulty.destroys",
        {"names": []},
        {"overrides": {"danger.high": "deny"}},
        """
plugin 'faulty': the call of 'destroys' (danger high) was refused: the policy denies calls of this danger
  where: tool 'faulty.destroys', danger 'high'
  mend:  the operator decides this in cyrene.toml [danger]""",
    ),
    "no free thread": (
        "faulty.echo_sync",
        {},
        {"limits": {"concurrency": 1}},
        """
plugin 'faulty': tool 'echo_sync': all 1 threads are busy, 1 of them with given-up calls
  where: tool 'faulty.echo_sync'
  mend:  call again later""",
    ),
    "timeout": (
        "faulty.hangs",
        {},
        {},
        """
plugin 'faulty': tool 'hangs': no answer within 0.1 s
  where: tool 'faulty.hangs'
  mend:  ask for less, or let the operator raise tools.hangs.timeout_ms in the entry""",
    ),
    "exception": (
        "faulty.raises",
        {"what": "ValueError"},
        {},
        """
plugin 'faulty': tool 'raises': ValueError: bad value
  where: tool 'faulty.raises'
  mend:  its author has to look: the log has the traceback (`cyrene --debug` shows it)""",
    ),
    "failure on purpose": (
        "faulty.raises",
        {"what": "ToolFailure"},
        {},
        """
plugin 'faulty': tool 'raises': the shop is closed
  where: tool 'faulty.raises'
  mend:  the tool says so itself; do as its words ask""",
    ),
    "output invalid": (
        "faulty.returns",
        {"what": "nested"},
        {},
        """
plugin 'faulty': tool 'returns': the tool's result was refused: the value at '/a/1' is of type 'set', which is no JSON
  where: tool 'faulty.returns' at /a/1
  mend:  the tool has to return a str, JSON, or a ToolResult: tell its author""",
    ),
    "returns broken": (
        "faulty.promises",
        {"n": "three"},
        {},
        """
plugin 'faulty': the result of 'promises' does not fit its own 'returns': /n: …
  where: tool 'faulty.promises', result data
  mend:  the plugin's author has to mend the tool or its 'returns'""",
    ),
    "output too large": (
        "faulty.returns",
        {"what": "huge"},
        {},
        """
plugin 'faulty': tool 'returns': the tool's result was refused: the value has more than 1048576 bytes (…)
  where: tool 'faulty.returns'
  mend:  ask for less, or let the tool return a part: at most 1 MiB""",
    ),
    "schema invalid": (
        "faulty.disagrees",
        {},
        {},
        """
plugin 'faulty': tool 'disagrees': complexity() says 'simple', its definition says 'complex'
  where: …json line 1, /0, tool 'disagrees'
  mend:  let the method and the definition agree""",
    ),
    "switched off": (
        "faulty.echo",
        {},
        {"tools": {"echo": {"enabled": False}}},
        """
plugin 'faulty': the operator has switched the tool 'echo' off
  where: tool 'faulty.echo', its entry's tools.echo.enabled
  mend:  ask the operator, or set it to true in plugins.json""",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
async def test_a_failed_call_says_all_four_parts(host_with: HostWith, runtime: str, case: str) -> None:
    if case == "no free thread" and runtime == "process":
        pytest.skip("a worker with a given-up call is replaced, threads and all")
    name, arguments, keywords, text = TEXTS[case]
    async with host_with(**keywords) as host:
        if case == "no free thread":
            await host.call("faulty.blocks_its_thread", {})
        result = await host.call(name, arguments)

    pattern = re.escape(text.strip()).replace("…", "[^\n]+?")
    assert re.fullmatch(pattern, result.error), result.error


async def test_an_attempt_of_several_says_which(host_with: HostWith) -> None:
    async with host_with() as host:
        result = await host.call("faulty.works_at_last", {"fails": 9, "how": "ToolFailure"})

    assert "where: tool 'faulty.works_at_last', attempt 1 of 3\n" in result.error


async def test_every_failure_has_an_id_of_its_own(host_with: HostWith) -> None:
    async with host_with() as host:
        ids = [(await host.call("faulty.raises", {"what": what})).error_id for what in ("ValueError", "Odd")]

    assert all(re.fullmatch("err_[0-9a-f]{8}", error_id) for error_id in ids)
    assert ids[0] != ids[1]


def test_every_error_kind_has_its_traits() -> None:
    assert set(TRAITS) == set(ErrorKind)


class Provider:
    name = "weather"
    redactor: Redactor | None = None


def callable_tool(**fields: Any) -> CallableTool:
    values = {
        "id": "weather.forecast",
        "name": "forecast",
        "provider": Provider(),
        "definition": ToolDefinition(name="forecast"),
        "schema": None,
        "returns": None,
        "danger": DangerLevel.LOW,
        "decision": "allow",
        "limit_s": 8.0,
        **fields,
    }
    return CallableTool(**values)


def test_a_tool_without_a_known_fault_is_unusable_all_the_same() -> None:
    assert str(schema_unusable(callable_tool())) == (
        "plugin 'weather': the definition of 'weather.forecast' cannot be used\n"
        "  where: tool 'weather.forecast'\n"
        "  mend:  the plugin's author has to mend the definition"
    )


def test_a_kind_without_a_mend_of_its_own_points_to_the_log() -> None:
    fault = Fault(ErrorKind.CANCELLED, "the call was cancelled")
    error = attempt_failed(callable_tool(), fault, attempt=1, of=1, acted=True, retryable=False)

    assert error.mend == "see the log under the error id"


def test_words_in_several_bytes_are_cut_between_characters() -> None:
    fault = Fault(ErrorKind.TOOL_ERROR, "天" * 1000)
    error = attempt_failed(callable_tool(), fault, attempt=1, of=1, acted=True, retryable=False)

    assert error.what == f"tool 'forecast': {'天' * 500}…"


def test_secrets_are_taken_out_of_every_text_and_key() -> None:
    fields = {"success": True, "output": "a s3cret-token", "data": {"s3cret-token": ["s3cret-token", 1, None]}}

    assert redact_fields(fields, Redactor(["s3cret-token"])) == {
        "success": True,
        "output": "a ***",
        "data": {"***": ["***", 1, None]},
    }


@pytest.mark.parametrize("given", [{"pin": 4711}, '{"pin": "4711"}', {"pin": {"a": [4711.0, "4711"]}}])
def test_the_log_hides_the_values_of_secret_arguments(given: Any) -> None:
    error = CallFailedError(ErrorKind.TOOL_ERROR, "4711 is wrong", plugin="bank", trace="ValueError: 4711 is wrong")

    shown = hide(error, {"pin"}, (given, {}))

    assert (shown.kind, shown.what, shown.trace) == (ErrorKind.TOOL_ERROR, "*** is wrong", "ValueError: *** is wrong")
    assert error.what == "4711 is wrong"


def test_a_returned_failure_says_itself_whether_it_had_an_effect() -> None:
    said = as_failure({"success": False, "effect": "unknown"}, "t", "err_1", is_read_only=True)

    assert (said["effect"], said["error_kind"], said["error_id"]) == ("unknown", ErrorKind.TOOL_ERROR, "err_1")


async def test_the_log_line_of_a_failure_names_call_tool_surface_kind_and_id(
    host_with: HostWith, caplog: pytest.LogCaptureFixture
) -> None:
    async with host_with() as host:
        result = await host.call("faulty.raises", {"what": "ToolFailure"})

    (record,) = [record for record in caplog.records if record.name == "cyrene.call"]
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"call '{result.call_id}' of 'faulty.raises' from python ended as tool_error [{result.error_id}]: "
        "tool 'raises': the shop is closed"
    )
