"""Which plugins were given up is remembered until a person, a version or a config changes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.manifests import Manifest
from cyrene_host.supervise.marks import FailureMarks
from cyrene_sdk import PluginMetadata


def record(version: str = "1.0.0", **entry: Any) -> CatalogPlugin:
    manifest = Manifest(
        sdk_contract=1,
        python="3.11",
        attribute=None,
        metadata=PluginMetadata(name="frail", version=version),
        tools=(),
        tool_faults={},
        config_schema=None,
    )
    return CatalogPlugin("frail", PluginEntry(name="frail", **entry), manifest=manifest)


def test_a_mark_outlives_the_host(tmp_path: Path) -> None:
    FailureMarks(tmp_path / "state").mark(record(), "exit status 3")

    assert FailureMarks(tmp_path / "state").find(record()) == "exit status 3"


@pytest.mark.parametrize("changed", [record("1.0.1"), record(config={"word": "other"}), record(runtime="inline")])
def test_another_version_or_config_is_not_marked(tmp_path: Path, changed: CatalogPlugin) -> None:
    marks = FailureMarks(tmp_path)
    marks.mark(record(), "exit status 3")

    assert marks.find(changed) is None
    assert marks.find(record()) == "exit status 3"


def test_a_cleared_mark_is_gone_and_others_stay(tmp_path: Path) -> None:
    other = CatalogPlugin("other", PluginEntry(name="other"))
    marks = FailureMarks(tmp_path)
    marks.mark(record(), "one")
    marks.mark(other, "two")

    assert marks.clear("frail")
    assert not marks.clear("frail")
    assert (marks.find(record()), marks.find(other)) == (None, "two")


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"frail": 1}', '{"frail": {"key": 1}}', "\xff"])
def test_a_file_that_is_no_list_of_marks_marks_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "given-up.json").write_text(text, encoding="latin-1")
    marks = FailureMarks(tmp_path)

    assert marks.find(record()) is None
    marks.mark(record(), "again")
    assert marks.find(record()) == "again"


def test_a_state_directory_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("a file")
    marks = FailureMarks(tmp_path / "state")

    marks.mark(record(), "exit status 3")

    assert marks.find(record()) is None
    assert "could not be written" in caplog.text
