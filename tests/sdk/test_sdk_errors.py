"""Errors are told in four parts."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cyrene_sdk
from cyrene_sdk import (
    ArgumentError,
    CyreneError,
    DefinitionError,
    ErrorKind,
    ModelRetry,
    NoCurrentCallError,
    ToolError,
    ToolFailure,
    Transient,
    current_call,
)


def test_an_error_tells_what_whose_where_and_the_mend() -> None:
    error = CyreneError(
        "module 'cyrene_weather' has no class 'WeatherPlugn'",
        plugin="weather",
        where="plugins.json line 14, /plugins/2/struct",
        mend="did you mean 'WeatherPlugin'?",
    )
    assert str(error) == (
        "plugin 'weather': module 'cyrene_weather' has no class 'WeatherPlugn'\n"
        "  where: plugins.json line 14, /plugins/2/struct\n"
        "  mend:  did you mean 'WeatherPlugin'?"
    )
    assert (error.what, error.plugin) == ("module 'cyrene_weather' has no class 'WeatherPlugn'", "weather")


def test_parts_that_are_not_known_are_left_out() -> None:
    assert str(CyreneError("nothing is known")) == "nothing is known"


def test_a_call_asked_for_outside_of_one_is_told_in_full() -> None:
    with pytest.raises(NoCurrentCallError) as refused:
        current_call()
    assert str(refused.value) == (
        "current_call() was used outside a tool call\n"
        "  mend:  call it inside a tool's execute, validate or execute_async"
    )


def test_what_tools_raise_on_purpose_is_one_family_apart_from_the_hosts() -> None:
    assert {ArgumentError, ModelRetry, ToolFailure, Transient} == set(ToolError.__subclasses__())
    assert not issubclass(ToolError, CyreneError)
    assert issubclass(DefinitionError, CyreneError)


def test_an_argument_error_points_to_the_argument() -> None:
    error = ArgumentError("give a known city", path="/city")
    assert (str(error), error.path) == ("give a known city", "/city")
    assert ArgumentError("give a known city").path == ""


def test_an_error_kind_is_its_word() -> None:
    assert f"{ErrorKind.UNKNOWN_TOOL}" == "unknown_tool" == ErrorKind("unknown_tool")


def test_every_public_name_can_be_imported_and_listed() -> None:
    assert set(cyrene_sdk.__all__) <= set(dir(cyrene_sdk))
    assert all(getattr(cyrene_sdk, name) is not None for name in cyrene_sdk.__all__)
    with pytest.raises(AttributeError, match="module 'cyrene_sdk' has no attribute 'tol'"):
        _ = cyrene_sdk.tol


def test_the_errors_alone_load_no_pydantic() -> None:
    script = "import cyrene_sdk.errors, cyrene_sdk, sys; cyrene_sdk.CyreneError; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", script], timeout=60, check=False).returncode == 0
