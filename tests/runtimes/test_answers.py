"""Whatever a worker answers, the host reads an outcome or an error out of it, and raises nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_host.runtimes.answers import call_answer, metadata_answer, progress_told, stage_failure, tools_answer
from cyrene_sdk import ErrorKind, PluginMetadata
from cyrene_sdk._worker.faults import Fault, StageError
from cyrene_sdk._worker.runner import ToolListing

KEYS = st.sampled_from(
    [
        *("fields", "fault", "value", "kind", "message", "retry", "reason", "path", "exception", "trace"),
        *("success", "output", "data", "images", "error", "what", "stage", "where", "mend", "pointers", "timed_out"),
        *("metadata", "tools", "faults", "name", "version", "description", "parameters"),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KEYS
HOSTILE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=15
)


@given(st.dictionaries(KEYS, HOSTILE))
def test_any_answer_to_a_call_is_an_outcome(message: dict[str, Any]) -> None:
    outcome = call_answer(message)

    if isinstance(outcome, Fault):
        assert outcome.kind in ErrorKind
        assert outcome.message
        assert all(isinstance(part, str) for part in (outcome.reason, outcome.path, outcome.exception, outcome.trace))
    else:
        assert type(outcome["success"]) is bool


@given(st.dictionaries(st.sampled_from(["execution_id", "progress", "message", "status"]), HOSTILE))
def test_any_progress_is_one_of_plain_parts_or_none(message: dict[str, Any]) -> None:
    told = progress_told(message)

    if told is not None:
        assert [type(part) for part in (told.execution_id, told.message, told.status)] == [str, str, str]
        assert type(told.progress) in (int, float)


def test_progress_is_read() -> None:
    told = {"execution_id": "e", "progress": 1, "message": "m", "status": "running"}

    assert progress_told(told) == ("e", 1, "m", "running")
    assert [progress_told({**told, key: None}) for key in told] == [None] * 4
    assert [progress_told({**told, "progress": True}), progress_told({**told, "status": "odd"})] == [None, None]


@given(st.dictionaries(KEYS, HOSTILE))
def test_any_answer_to_load_is_metadata_or_refused(message: dict[str, Any]) -> None:
    try:
        assert isinstance(metadata_answer(message), PluginMetadata)
    except StageError as refused:
        stage = refused.stage
    else:
        stage = "load"
    assert stage == "load"


@given(st.dictionaries(KEYS, HOSTILE))
def test_any_answer_to_tools_is_a_listing_or_refused(message: dict[str, Any]) -> None:
    try:
        assert isinstance(tools_answer(message), ToolListing)
    except StageError as refused:
        stage = refused.stage
    else:
        stage = "tools"
    assert stage == "tools"


@given(HOSTILE)
def test_any_error_of_a_stage_is_a_stage_error_of_that_stage(told: Any) -> None:
    error = stage_failure(told, "init")

    assert (error.stage, bool(error.what)) == ("init", True)
    assert all(isinstance(pointer, str) and isinstance(sentence, str) for pointer, sentence in error.pointers)
    assert str(error)


@pytest.mark.parametrize(
    "told",
    [
        {"kind": ["timeout"], "message": 5, "retry": {}},
        {"kind": "plugin_unavailable", "message": "pretends", "retry": "always"},
        {"kind": "denied"},
        "nothing of the sort",
        7,
    ],
)
def test_a_fault_that_no_worker_may_claim_is_a_tool_error_that_is_never_tried_again(told: Any) -> None:
    outcome = call_answer({"fault": told})

    assert isinstance(outcome, Fault)
    assert (outcome.kind, outcome.retry) == (ErrorKind.TOOL_ERROR, "never")


def test_a_fault_is_read_as_the_runner_told_it() -> None:
    told = {"kind": "invalid_arguments", "message": "too few", "retry": "never", "reason": "tool", "path": "/n"}

    assert call_answer({"fault": told}) == Fault(ErrorKind.INVALID_ARGUMENTS, "too few", reason="tool", path="/n")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"success": True, "output": "x" * 3_000_000}, ErrorKind.OUTPUT_TOO_LARGE),
        ({"success": True, "data": [0] * 200_000}, ErrorKind.OUTPUT_TOO_LARGE),
        ({"success": "yes", "output": ""}, ErrorKind.OUTPUT_INVALID),
        ({"success": True, "output": "", "plugin": "another"}, ErrorKind.OUTPUT_INVALID),
        ({"success": True, "output": "", "attempts": 0}, ErrorKind.OUTPUT_INVALID),
        (None, ErrorKind.OUTPUT_INVALID),
        ([], ErrorKind.OUTPUT_INVALID),
    ],
    ids=["large", "many", "no bool", "plugin", "attempts", "nothing", "a list"],
)
def test_a_result_that_is_none_is_refused_with_its_rule(fields: Any, kind: ErrorKind) -> None:
    outcome = call_answer({"fields": fields})

    assert isinstance(outcome, Fault)
    assert outcome.kind == kind
    assert outcome.message.startswith("the worker's answer was refused: ")
    assert len(outcome.message) < 2_200


def test_an_endless_sentence_and_a_thousand_pointers_are_cut() -> None:
    told = {"what": "w" * 10_000_000, "trace": "t" * 10_000_000, "pointers": [["/a", "s"]] * 10_000}
    error = stage_failure(told, "init")

    assert len(error.what) == 2_100
    assert len(error.trace) == 20_000
    assert len(error.pointers) == 100
