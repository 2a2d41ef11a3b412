"""A plugin's code is found from its entry, and nothing is imported for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.entry_points import EntryPoint, EntryPoints, read_entry_points
from cyrene_host.catalog.sources import Source, SourceError, resolve_source

NONE = EntryPoints({}, {}).plugins
FAILS = "raise SystemExit('imported')\n"


def _entry(**keys: Any) -> PluginEntry:
    return PluginEntry.model_validate(keys, context={"where": "plugins.json line 3, /plugins/0"})


def _package(folder: Path, name: str) -> Path:
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(FAILS)
    return package


def _project(
    folder: Path, plugins: str = "", head: str = '[project]\nname = "cyrene-weather"\nversion = "1.1"\n'
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = f'[project.entry-points."cyrene.plugins"]\n{plugins}' if plugins else ""
    (folder / "pyproject.toml").write_text(head + table)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages on `sys.path`."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def _install(site: Path, name: str, *references: str) -> None:
    package = _package(site, name)
    info = site / f"{name}-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name.replace('_', '-')}\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[cyrene.plugins]\n" + "\n".join(references) + "\n")
    (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
    assert package.is_dir()


def _points(site: Path) -> dict[str, list[EntryPoint]]:
    return {name: list(points) for name, points in read_entry_points([str(site)]).plugins.items()}


def test_a_name_alone_is_the_entry_point_of_that_name(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_weather:Weather")

    source = resolve_source(_entry(name="weather"), tmp_path, _points(site))

    assert (source.kind, source.module, source.attribute, source.folder) == (
        "entry_point",
        "cyrene_weather",
        "Weather",
        None,
    )
    assert (source.distribution, source.version) == ("cyrene-weather", "2.0")
    assert source.where == "entry point 'weather' of cyrene-weather 2.0"
    assert source.package_dir() == site / "cyrene_weather"
    assert "cyrene_weather" not in sys.modules


def test_a_class_beside_the_name_goes_before_that_of_the_entry_point(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_weather:Weather")

    assert resolve_source(_entry(name="weather", struct="Other"), tmp_path, _points(site)).attribute == "Other"


def test_a_name_that_two_distributions_offer_is_refused_with_both(tmp_path: Path, site: Path) -> None:
    _install(site, "one", "weather = one:Weather")
    _install(site, "two", "weather = two:Weather")

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="weather"), tmp_path, _points(site))

    assert str(raised.value) == (
        "plugin 'weather': several distributions offer the name: 'one', 'two'\n"
        "  where: plugins.json line 3, /plugins/0\n"
        '  mend:  add "import" and "class" to choose one'
    )


def test_an_unknown_name_is_refused_with_the_nearest_known_one(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_weather:Weather")

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="wether"), tmp_path, _points(site))

    assert str(raised.value) == (
        "plugin 'wether': no installed package offers it, and there is no folder 'plugins/wether'\n"
        "  where: plugins.json line 3, /plugins/0\n"
        "  mend:  did you mean 'weather'? Else pip install its package, or give its folder as \"path\""
    )


def test_an_entry_point_into_a_package_that_is_gone_asks_for_a_new_installation(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_wether:Weather")

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="weather"), tmp_path, _points(site))

    assert raised.value.what == "'cyrene-weather' 2.0 names the module 'cyrene_wether', which is not there"
    assert raised.value.mend == "install 'cyrene-weather' again"


def test_an_import_is_found_among_installed_packages_with_its_distribution(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_weather:Weather", "storm = cyrene_weather:Storm")
    entry = _entry(**{"name": "mine", "import": "cyrene_weather", "class": "Storm"})

    source = resolve_source(entry, tmp_path, _points(site))

    assert (source.kind, source.module, source.attribute) == ("import", "cyrene_weather", "Storm")
    assert (source.distribution, source.where) == ("cyrene-weather", "plugins.json line 3, /plugins/0")


def test_an_import_without_a_class_takes_it_from_the_only_entry_point_of_the_module(tmp_path: Path, site: Path) -> None:
    _install(site, "one", "one = one:Factory")
    _install(site, "two", "a = two:A", "b = two:B")

    found = [
        resolve_source(_entry(**{"name": "x", "import": name}), tmp_path, _points(site)) for name in ("one", "two")
    ]

    assert [(source.attribute, source.distribution) for source in found] == [("Factory", "one"), (None, None)]


def test_an_import_that_is_not_installed_is_taken_from_the_folder_of_the_entrys_name(tmp_path: Path) -> None:
    _package(tmp_path / "plugins/my-hello", "my_hello")
    entry = _entry(**{"name": "my-hello", "import": "my_hello", "struct": "HelloPlugin"})

    source = resolve_source(entry, tmp_path, NONE)

    assert (source.kind, source.module, source.attribute) == ("path", "my_hello", "HelloPlugin")
    assert source.folder == tmp_path / "plugins/my-hello"
    assert source.package_dir() == tmp_path / "plugins/my-hello/my_hello"


def test_an_unknown_name_is_refused_with_the_nearest_folder(tmp_path: Path) -> None:
    (tmp_path / "plugins" / "unit-converter").mkdir(parents=True)

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="unit-convreter"), tmp_path, {})

    assert raised.value.mend is not None
    assert raised.value.mend.startswith("did you mean 'unit-converter'? ")


def test_an_import_is_refused_with_the_nearest_module_of_its_own_folder(tmp_path: Path) -> None:
    module = tmp_path / "plugins" / "w" / "cyrene_weather.py"
    module.parent.mkdir(parents=True)
    module.touch()

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(**{"name": "w", "import": "cyrene_wether"}), tmp_path, {})

    assert raised.value.mend is not None
    assert raised.value.mend.startswith("did you mean 'cyrene_weather'? ")


def test_a_path_that_the_system_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="w", path="x" * 5000), tmp_path, {})

    assert raised.value.what.startswith(f"its code cannot be looked for: File name too long: '{tmp_path}")
    assert raised.value.mend == "correct the path, or who may read it"


def test_an_import_that_is_nowhere_is_refused_with_the_nearest_module(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_weather:Weather")
    (tmp_path / "plugins/w").mkdir(parents=True)

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(**{"name": "w", "import": "cyrene_wether"}), tmp_path, _points(site))

    assert raised.value.what == "module 'cyrene_wether' is not installed, and not in a folder 'plugins/w'"
    assert (
        raised.value.mend == "did you mean 'cyrene_weather'? Else pip install its package, or put it into 'plugins/w/'"
    )


def test_a_name_alone_is_also_a_folder_beside_plugins_json(tmp_path: Path) -> None:
    _package(tmp_path / "plugins/weather", "cyrene_weather")
    _project(tmp_path / "plugins/weather", 'weather = "cyrene_weather:Weather"\n')

    source = resolve_source(_entry(name="weather"), tmp_path, NONE)

    assert (source.kind, source.module, source.attribute) == ("path", "cyrene_weather", "Weather")
    assert (source.distribution, source.version) == ("cyrene-weather", "1.1")


def test_a_path_is_read_from_pyproject_in_a_src_layout_too(tmp_path: Path) -> None:
    _package(tmp_path / "w/src", "cyrene_weather")
    _project(tmp_path / "w", 'a = "cyrene_weather:A"\nweather = "cyrene_weather:Weather"\n')

    source = resolve_source(_entry(name="weather", path="w"), tmp_path, NONE)

    assert (source.attribute, source.folder) == ("Weather", tmp_path / "w/src")


def test_a_path_whose_project_declares_several_other_plugins_asks_which(tmp_path: Path) -> None:
    _package(tmp_path / "w", "cyrene_weather")
    _project(tmp_path / "w", 'a = "cyrene_weather:A"\nb = "cyrene_weather:B"\n')

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="weather", path="w"), tmp_path, NONE)

    assert raised.value.what == f"'{tmp_path}/w/pyproject.toml' declares several plugins: 'a', 'b'"


def test_a_path_without_a_project_is_its_only_module(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    for name in ("tests", "_private"):
        _package(folder, name)
    for name in ("setup.py", "test_weather.py", "conftest.py", "with-hyphen.py"):
        (folder / name).write_text(FAILS)
    (folder / "weather.py").write_text(FAILS)

    source = resolve_source(_entry(name="w", path="w"), tmp_path, NONE)

    assert (source.module, source.attribute, source.package_dir()) == ("weather", None, None)
    assert source.location == folder / "weather.py"


@pytest.mark.parametrize(
    ("modules", "what"),
    [((), "holds no Python module"), (("a", "b"), "holds several modules: 'a', 'b'")],
)
def test_a_path_with_no_or_several_modules_asks_for_an_import(
    tmp_path: Path, modules: tuple[str, ...], what: str
) -> None:
    (tmp_path / "w").mkdir()
    for name in modules:
        _package(tmp_path / "w", name)

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="w", path="w"), tmp_path, NONE)

    assert raised.value.what == f"'{tmp_path}/w' {what}"
    assert raised.value.mend == 'name the module: add "import"'


def test_a_paths_import_goes_before_its_project(tmp_path: Path) -> None:
    _package(tmp_path / "w", "one")
    _package(tmp_path / "w", "two")
    _project(tmp_path / "w", 'w = "one:One"\n')

    source = resolve_source(_entry(**{"name": "w", "path": "w", "import": "two"}), tmp_path, NONE)

    assert (source.module, source.attribute) == ("two", None)


def test_a_module_that_is_not_in_the_path_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    _package(tmp_path / "w", "cyrene_weather")

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(**{"name": "w", "path": "w", "import": "cyrene_wether"}), tmp_path, NONE)

    assert raised.value.what == f"module 'cyrene_wether' is not in the folder '{tmp_path}/w'"
    assert raised.value.mend == 'did you mean \'cyrene_weather\'? Else correct "import" or "path"'


def test_a_path_that_a_link_leads_outside_is_refused(tmp_path: Path) -> None:
    base, outside = tmp_path / "base", tmp_path / "outside"
    base.mkdir()
    _package(outside, "cyrene_weather")
    entry = _entry(name="w", path="w")
    (base / "w").symlink_to(outside)

    with pytest.raises(SourceError) as raised:
        resolve_source(entry, base, NONE)

    assert raised.value.what == f"path 'w' leads out of '{base}'"


def test_a_path_that_is_not_there_is_refused_with_the_nearest_folder(tmp_path: Path) -> None:
    _package(tmp_path / "weather", "cyrene_weather")

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="w", path="wether"), tmp_path, NONE)

    assert raised.value.what == "path 'wether' is no folder"
    assert raised.value.mend == "did you mean 'weather'? Else correct \"path\""
    with pytest.raises(SourceError):
        resolve_source(_entry(name="w", path="no/such/folder"), tmp_path, NONE)


def test_a_path_to_a_file_is_refused_without_a_guess(tmp_path: Path) -> None:
    (tmp_path / "weather.py").touch()

    with pytest.raises(SourceError) as raised:
        resolve_source(_entry(name="w", path="weather.py"), tmp_path, {})

    assert (raised.value.what, raised.value.mend) == ("path 'weather.py' is no folder", 'correct "path"')


def test_a_broken_project_file_is_named(tmp_path: Path) -> None:
    _package(tmp_path / "w", "cyrene_weather")
    _project(tmp_path / "w", head="[project\n")

    with pytest.raises(SourceError, match=r"pyproject\.toml' cannot be read: Expected ']'"):
        resolve_source(_entry(name="w", path="w"), tmp_path, NONE)


def test_a_projects_odd_tables_are_no_declaration(tmp_path: Path) -> None:
    _package(tmp_path / "w", "cyrene_weather")
    _project(tmp_path / "w", head="project = 1\n")
    assert resolve_source(_entry(name="w", path="w"), tmp_path, NONE).version is None

    _project(tmp_path / "w", head='[project]\nversion = 2\nentry-points."cyrene.plugins" = 1\n')
    assert resolve_source(_entry(name="w", path="w"), tmp_path, NONE).module == "cyrene_weather"


def test_another_environments_packages_are_found_there_and_not_here(tmp_path: Path, site: Path) -> None:
    _install(site, "here", "w = here:W")
    there = tmp_path / "env/lib/python3.12/site-packages"
    there.mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").write_text("")
    _install(there, "there", "w = there:W")

    by_name = resolve_source(_entry(name="w", python="env"), tmp_path, _points(site))
    by_import = resolve_source(_entry(**{"name": "w", "python": "env", "import": "here"}), tmp_path, _points(site))

    assert (by_name.module, by_name.python, by_name.location) == ("there", tmp_path / "env", there / "there")
    assert (by_import.module, by_import.location) == ("here", None)


def test_a_plugin_named_by_entry_point_and_by_import_is_the_same(tmp_path: Path, site: Path) -> None:
    _install(site, "cyrene_weather", "weather = cyrene_weather.plugin:Weather")
    points = _points(site)

    def named(**keys: str) -> Source:
        return resolve_source(_entry(**keys), tmp_path, points)

    by_name = named(name="weather")
    assert by_name.same_as(named(**{"name": "x", "import": "cyrene_weather", "class": "Weather"}))
    assert by_name.same_as(named(**{"name": "x", "import": "cyrene_weather.plugin"}))
    assert not by_name.same_as(named(**{"name": "x", "import": "cyrene_weather", "class": "Storm"}))
    assert not by_name.same_as(named(**{"name": "x", "import": "cyrene_weather"}))


def test_two_folders_with_one_module_name_are_two_sources(tmp_path: Path) -> None:
    _package(tmp_path / "one", "weather")
    _package(tmp_path / "two", "weather")
    one, two = (resolve_source(_entry(name="w", path=path), tmp_path, NONE) for path in ("one", "two"))

    assert not one.same_as(two)
    assert one.same_as(one)


def test_sources_inside_unknown_environments_are_compared_by_module(tmp_path: Path) -> None:
    one = resolve_source(_entry(**{"name": "w", "python": "a", "import": "w"}), tmp_path, NONE)
    two = resolve_source(_entry(**{"name": "w", "python": "a", "import": "x"}), tmp_path, NONE)
    elsewhere = resolve_source(_entry(**{"name": "w", "python": "b", "import": "w"}), tmp_path, NONE)

    assert one.same_as(one)
    assert not one.same_as(two)
    assert not one.same_as(elsewhere)
