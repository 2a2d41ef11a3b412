"""The place of a manifest is found without importing, and its text is the same every time."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import pytest

from cyrene_sdk._worker.manifest_file import document, locate, manifest_path, manifest_text


def _package(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
    return folder


def test_a_package_is_located_by_its_folder_whatever_module_of_it_is_named(tmp_path: Path) -> None:
    package = _package(tmp_path / "weather_pkg")

    assert locate("weather_pkg", [str(tmp_path)]) == package
    assert locate("weather_pkg.deep.plugin", [str(tmp_path)]) == package
    assert "weather_pkg" not in sys.modules


def test_a_single_module_is_located_by_its_file(tmp_path: Path) -> None:
    module = tmp_path / "weather_mod.py"
    module.write_text("raise SystemExit('imported')\n")

    assert locate("weather_mod", [str(tmp_path)]) == module
    assert manifest_path(module) == tmp_path / "weather_mod.cyrene-plugin.json"


def test_in_namespaces_the_outermost_regular_package_is_located(tmp_path: Path) -> None:
    package = _package(tmp_path / "two/acme_ns/tools/weather")
    (tmp_path / "one/acme_ns").mkdir(parents=True)

    found = locate("acme_ns.tools.weather.plugin", [str(tmp_path / "one"), str(tmp_path / "two")])

    assert found == package
    assert manifest_path(package) == package / "cyrene-plugin.json"
    assert locate("acme_ns.tools", [str(tmp_path / "two")]) is None
    assert locate("acme_ns.tools.other", [str(tmp_path / "two")]) is None


@pytest.mark.parametrize("module", ["", "no such", "no.such..module", "sys", "surely_not_installed"])
def test_what_has_no_file_is_not_located(module: str) -> None:
    assert locate(module) is None


def test_an_installed_package_is_located_and_not_believed_to_be_what_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weather_loaded", sys)

    assert locate("weather_loaded") is None
    assert locate("pydantic.main") == Path(sys.modules["pydantic"].__file__ or "").parent


def test_an_editable_installation_with_a_finder_of_its_own_is_located(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _package(tmp_path / "weather_editable")

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None) -> ModuleSpec | None:
            return PathFinder.find_spec(name, [str(tmp_path)]) if name == "weather_editable" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])

    assert locate("weather_editable") == package


def test_the_text_has_its_keys_in_order_is_readable_and_leaves_out_what_is_empty() -> None:
    described = {"tools": [{"name": "昔涟"}], "metadata": {"name": "w"}, "sdk_contract": 1, "config_schema": None}

    text = manifest_text(document(described, "Weather"))

    assert text.startswith('{\n  "manifest": 1,\n  "sdk_contract": 1,\n  "python": "')
    assert text.endswith('      "name": "昔涟"\n    }\n  ]\n}\n')
    assert list(json.loads(text)) == ["manifest", "sdk_contract", "python", "attribute", "metadata", "tools"]
    assert "attribute" not in document(described, None)
    assert document(described | {"config_schema": {"type": "object"}}, None)["config_schema"] == {"type": "object"}
