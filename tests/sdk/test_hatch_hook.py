"""A plugin's wheel ships the manifest of the plugin that is in it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = """
[build-system]
requires = ["hatchling", "cyrene-sdk"]
build-backend = "hatchling.build"

[project]
name = "cyrene-weather"
version = "1.0"
dependencies = ["cyrene-sdk", "meteo>=2"]

[project.entry-points."cyrene.plugins"]
{plugins}

[tool.hatch.build.hooks.cyrene]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""

PLUGIN = '''
from cyrene_sdk import BasePlugin, PluginMetadata, tool

print("printed while imported")


class Weather(BasePlugin):
    meta = PluginMetadata(name="weather", version="1.0")

    @tool
    def now(self, city: str) -> str:
        """Say the weather of a city."""
        return "sunny in " + city


class Storm(Weather):
    meta = PluginMetadata(name="storm", version="1.0")
'''

ONE = 'weather = "cyrene_weather:Weather"'


def _project(folder: Path, plugins: str = ONE, package: str = "cyrene_weather", plugin: str = PLUGIN) -> Path:
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(plugin, encoding="utf-8")
    (folder / "pyproject.toml").write_text(PROJECT.format(plugins=plugins, package=package))
    return folder


def _build(project: Path, kind: str = "wheel") -> subprocess.CompletedProcess[str]:
    """Run one of the build backend's functions as a front end does."""
    code = f"import hatchling.build as backend; backend.build_{kind}('out')"
    return subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=50)


def _built(project: Path, kind: str = "wheel") -> dict[str, bytes]:
    """Return the files of what was built by name."""
    answer = _build(project, kind)
    assert answer.returncode == 0, answer.stderr
    (wheel,) = (project / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _error(project: Path) -> str:
    answer = _build(project)
    assert answer.returncode == 1
    return answer.stderr.partition("ManifestBuildError: ")[2]


@pytest.mark.parametrize("package", ["cyrene_weather", "src/cyrene_weather"])
def test_a_wheel_ships_the_manifest_in_place_of_a_committed_one(tmp_path: Path, package: str) -> None:
    project = _project(tmp_path, package=package)
    (project / package / "cyrene-plugin.json").write_text("committed long ago")

    files = _built(project)

    manifest = json.loads(files["cyrene_weather/cyrene-plugin.json"])
    assert (manifest["manifest"], manifest["sdk_contract"], manifest["attribute"]) == (1, 2, "Weather")
    assert manifest["metadata"]["name"] == "weather"
    assert [tool["name"] for tool in manifest["tools"]] == ["now"]
    assert (project / package / "cyrene-plugin.json").read_text() == "committed long ago"
    assert sorted(path.name for path in (project / package).iterdir()) == ["__init__.py", "cyrene-plugin.json"]


def test_each_plugin_of_a_project_has_its_manifest_in_its_own_package(tmp_path: Path) -> None:
    project = _project(tmp_path, plugins=f'{ONE}\nstorm = "cyrene_storm.plugin:Storm"')
    (project / "cyrene_storm").mkdir()
    (project / "cyrene_storm/__init__.py").write_text("")
    (project / "cyrene_storm/plugin.py").write_text(PLUGIN)
    pyproject = (project / "pyproject.toml").read_text()
    packages = 'packages = ["cyrene_weather", "cyrene_storm"]'
    (project / "pyproject.toml").write_text(pyproject.replace('packages = ["cyrene_weather"]', packages))

    files = _built(project)

    names = {name: json.loads(text)["metadata"]["name"] for name, text in files.items() if name.endswith(".json")}
    assert names == {"cyrene_storm/cyrene-plugin.json": "storm", "cyrene_weather/cyrene-plugin.json": "weather"}


def test_two_names_of_one_class_share_its_manifest_and_two_classes_of_one_package_are_refused(tmp_path: Path) -> None:
    twice = _project(tmp_path / "twice", plugins=f'{ONE}\nwetter = "cyrene_weather:Weather"')
    two = _project(tmp_path / "two", plugins=f'{ONE}\nstorm = "cyrene_weather:Storm"')

    assert "cyrene_weather/cyrene-plugin.json" in _built(twice)
    assert _error(two) == (
        "plugin 'weather': another plugin has its manifest at 'cyrene_weather/cyrene-plugin.json' already\n"
        '  where: pyproject.toml, [project.entry-points."cyrene.plugins"]\n'
        "  mend:  give each plugin a package of its own, or build without the hook 'cyrene'\n"
    )


def test_an_editable_build_leaves_the_project_alone_even_if_the_plugin_cannot_be_imported(tmp_path: Path) -> None:
    project = _project(tmp_path, plugin="import surely_not_installed\n")
    (project / "cyrene_weather/cyrene-plugin.json").write_text("committed")

    files = _built(project, "editable")

    assert not [name for name in files if name.endswith(".json")]
    assert (project / "cyrene_weather/cyrene-plugin.json").read_text() == "committed"


def test_a_source_distribution_is_built_without_describing_the_plugin(tmp_path: Path) -> None:
    project = _project(tmp_path, plugin="import surely_not_installed\n")

    answer = _build(project, "sdist")

    assert answer.returncode == 0, answer.stderr


def test_a_plugin_that_fails_to_import_fails_its_wheel_with_four_parts(tmp_path: Path) -> None:
    error = _error(_project(tmp_path, plugin="import surely_not_installed\n"))

    assert error == (
        "plugin 'weather': module 'cyrene_weather' failed to import: "
        "ModuleNotFoundError: No module named 'surely_not_installed'\n"
        f"  where: {tmp_path}/cyrene_weather/__init__.py line 1\n"
        "  mend:  mend the plugin's code or install what it imports; `cyrene check` runs the same import\n"
    )


def test_an_interpreter_that_ends_fails_the_wheel_with_what_it_printed(tmp_path: Path) -> None:
    plugin = "import os\nprint('about to go', flush=True)\nos._exit(3)\n"

    assert _error(_project(tmp_path, plugin=plugin)).startswith(
        "plugin 'weather': its interpreter ended, or took over 120 s, while it was described; "
        "it printed last: about to go\n"
        "  where: entry point 'weather' of pyproject.toml\n"
    )


def test_a_project_without_a_plugin_or_with_a_module_that_is_not_there_is_refused(tmp_path: Path) -> None:
    none = _project(tmp_path / "none", plugins="")
    wrong = _project(tmp_path / "wrong", plugins='weather = "cyrene_wether:Weather"')

    assert _error(none).startswith("the project declares no plugin\n  where: pyproject.toml\n  mend:  add [project.")
    assert _error(wrong).startswith("plugin 'weather': module 'cyrene_wether' is not in the project\n")


def test_a_wheel_asks_for_what_describing_needs_and_a_source_distribution_does_not(tmp_path: Path) -> None:
    project = _project(tmp_path)
    code = "import hatchling.build as b; print(b.get_requires_for_build_wheel(), b.get_requires_for_build_sdist())"

    answer = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=50)

    assert answer.stdout.strip() == "['cyrene-sdk', 'meteo>=2'] []"
