"""The calculator as callers see it, through a host."""

import json
from pathlib import Path

import pytest

from cyrene_host import Host


@pytest.fixture
def plugins_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugins.json that names the calculator, with a state directory of its own."""
    monkeypatch.setenv("CYRENE_HOST__STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "plugins.json"
    file.write_text(json.dumps([{"name": "calculator"}]), encoding="utf-8")
    file.chmod(0o600)
    return file


async def test_a_call_answers_with_digits_and_data_that_fit_the_definition(plugins_file: Path) -> None:
    async with Host.open(plugins_file) as host:
        result = await host.call("calculator", {"expression": "1/3 + 1/3", "exact": True})

    assert (result.success, result.output, result.error) == (True, "2/3", "")
    assert result.data == {"value": 0.6666666666666666, "exact": "2/3"}


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("9**9**9", "grows beyond 1000 digits"),
        ("factorial(10**9)", "takes numbers up to 1000 only"),
        ("__import__('os').system('ls')", "cannot be used in an expression"),
        ("1" * 1001, "/expression"),
    ],
)
async def test_what_is_out_of_bounds_is_a_fault_of_the_arguments(
    expression: str, sentence: str, plugins_file: Path
) -> None:
    async with Host.open(plugins_file) as host:
        refused = await host.call("calculator", {"expression": expression})

    assert (refused.error_kind, refused.effect, refused.attempts <= 1) == ("invalid_arguments", "none", True)
    assert sentence in refused.error


async def test_the_largest_numbers_pass_the_result_gate(plugins_file: Path) -> None:
    async with Host.open(plugins_file) as host:
        result = await host.call("calculator", {"expression": "10^999"})

    assert (result.output, result.data) == ("1" + "0" * 999, {"value": None, "exact": "1" + "0" * 999})
