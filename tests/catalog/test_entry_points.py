"""Entry points are read from the files of installed distributions, and from those only."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from cyrene_host.catalog.entry_points import EntryPoint, read_entry_points
from cyrene_host.catalog.environments import package_folders


def _install(site: Path, name: str, version: str, entry_points: str | None) -> Path:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.3\nName: {name}\nVersion: {version}\n\nName: of no one\n")
    if entry_points is not None:
        (folder / "entry_points.txt").write_text(entry_points)
    return folder


def test_an_installed_plugin_is_found_with_its_distribution_and_version(tmp_path: Path) -> None:
    folder = _install(tmp_path, "cyrene-weather", "1.2.3", "[cyrene.plugins]\nweather = acme.weather:Weather\n")

    found = read_entry_points([str(tmp_path)])

    assert found.plugins == {
        "weather": [EntryPoint("weather", "acme.weather", "Weather", "cyrene-weather", "1.2.3", folder)]
    }
    assert found.hooks == {}


def test_hooks_and_plugins_are_told_apart_and_other_groups_left_out(tmp_path: Path) -> None:
    text = (
        "[console_scripts]\nrun = a:main\n[cyrene.plugins]\na = a:A\n\n[ cyrene.hooks ]\n# note = x:y\nlog = a.hooks\n"
    )
    _install(tmp_path, "a", "1", text)

    found = read_entry_points([str(tmp_path)])

    assert list(found.plugins) == ["a"]
    assert [(point.name, point.module, point.attribute) for point in found.hooks["log"]] == [("log", "a.hooks", None)]
    assert list(found.hooks) == ["log"]


def test_one_name_from_two_distributions_is_listed_twice(tmp_path: Path) -> None:
    _install(tmp_path, "a", "1", "[cyrene.plugins]\nsame = a:A\n")
    _install(tmp_path, "b", "1", "[cyrene.plugins]\nsame = b:B\n")

    points = read_entry_points([str(tmp_path)]).plugins["same"]

    assert [point.distribution for point in points] == ["a", "b"]


def test_of_one_distribution_in_two_folders_the_first_on_the_path_counts_as_for_importlib(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    _install(first, "My.Plugin", "2", "[cyrene.plugins]\nnew = a:A\n")
    _install(second, "my-plugin", "1", "[cyrene.plugins]\nold = a:A\n")
    path = [str(first), str(second)]

    found = read_entry_points(path)

    assert list(found.plugins) == ["new"]
    seen = {d.metadata["Name"].lower().replace(".", "-"): d.version for d in reversed([*_distributions(path)])}
    assert seen == {"my-plugin": "2"}


def test_a_distribution_without_plugins_hides_an_older_one_with_them(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    _install(first, "a", "2", None)
    _install(second, "a", "1", "[cyrene.plugins]\nold = a:A\n")

    assert read_entry_points([str(first), str(second)]).plugins == {}


def test_a_folder_that_is_missing_and_an_unreadable_reference_harm_no_other_plugin(tmp_path: Path) -> None:
    folder = _install(tmp_path, "a", "1", "[cyrene.plugins]\nbad = a b:\x00\ngood = a:A [extra]\nnothing\n")
    (folder / "METADATA").unlink()

    plugins = read_entry_points([str(tmp_path / "missing"), str(tmp_path)]).plugins

    assert (plugins["good"][0].module, plugins["good"][0].attribute) == ("a", "A")
    assert (plugins["good"][0].distribution, plugins["good"][0].version) == ("a", "1")
    assert (plugins["bad"][0].module, plugins["bad"][0].attribute) == ("a b:\x00", None)


def test_an_egg_info_folder_is_read_like_a_dist_info_folder(tmp_path: Path) -> None:
    folder = tmp_path / "old.egg-info"
    folder.mkdir()
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: Old\nVersion: 0.9\n")
    (folder / "entry_points.txt").write_text("[cyrene.plugins]\nold = old:Old\n")

    point = read_entry_points([str(tmp_path)]).plugins["old"][0]

    assert (point.distribution, point.version) == ("Old", "0.9")


def test_the_hosts_own_environment_is_read_by_default() -> None:
    ours = {(point.name, point.value) for point in importlib.metadata.entry_points(group="cyrene.plugins")}

    plugins = read_entry_points().plugins

    assert {(p.name, f"{p.module}:{p.attribute}") for points in plugins.values() for p in points} == ours


def test_a_virtual_environment_is_searched_by_its_folder_or_interpreter_with_what_pth_files_add(tmp_path: Path) -> None:
    site = tmp_path / "env/lib/python3.12/site-packages"
    site.mkdir(parents=True)
    added = tmp_path / "added"
    added.mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    (site / "x.pth").write_text(f"import os\n# note\n{added}\n/nowhere/at/all\n")

    assert package_folders(tmp_path / "env") == [str(site), str(added)]
    assert package_folders(tmp_path / "env/bin/python") == [str(site), str(added)]
    assert package_folders(tmp_path) == []


def _distributions(path: list[str]) -> list[importlib.metadata.Distribution]:
    return list(importlib.metadata.distributions(path=path))
