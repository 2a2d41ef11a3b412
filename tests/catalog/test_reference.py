"""The reference pages are what the models say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cyrene_host.catalog.plugins_file import read_plugins_file
from cyrene_host.catalog.reference import pages, write_pages
from cyrene_host.catalog.settings import Settings, read_settings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_reference_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], (
        "write it anew: python -m cyrene_host.catalog.reference docs"
    )


def test_the_pages_are_written_into_a_folder(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == pages()


def test_the_command_that_the_pages_name_writes_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cyrene_host.catalog.reference", str(tmp_path)]
    subprocess.run(command, timeout=60, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(pages())


def test_every_setting_has_a_heading_a_sentence_and_a_variable_that_sets_it() -> None:
    page = pages()["settings.md"]
    defaults = read_settings(None, {}).model_dump()
    for table, keys in defaults.items():
        for key in keys:
            setting = page.split(f"### `{table}.{key}`\n\n")[1].split("\n#")[0]
            sentence, value = setting.strip().split("\n\n")
            assert re.fullmatch(r"\S.{8,}\.", sentence)
            assert value.startswith("Value: ")
            assert f"variable: `CYRENE_{table.upper()}__{key.upper()}`" in value
    assert page.count("\n### ") == sum(map(len, defaults.values()))
    assert set(defaults) == set(Settings.model_fields)


def test_the_example_of_plugins_json_has_no_fault(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", pages()["plugins-json.md"], re.DOTALL)
    path = tmp_path / "plugins.json"
    path.write_text(example, encoding="utf-8")
    path.chmod(0o644)
    read = read_plugins_file(path)
    assert read.faults == ()
    assert [entry.name for entry in read.entries] == ["hello", "weather", "notes", "files"]


def test_every_key_of_an_entry_is_in_the_table_with_its_default() -> None:
    page = pages()["plugins-json.md"]
    assert '| `runtime` | `"process"` or `"inline"` | `"process"` | a worker process, or inside the host |' in page
    assert "| `class` (or `struct`) | text |  | its class" in page
    assert "| `queue_size` | whole number, at least 0 | `256` |" in page
    assert '| `danger_level` | `"low"` or `"medium"` or `"high"` |' in page
