"""The catalog: plugins described, merged, refused and put in order without importing them here."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.entry_points import read_entry_points
from cyrene_host.catalog.manifests import ManifestStore
from cyrene_host.catalog.plugins_file import PluginsFile, read_plugins_file
from cyrene_host.catalog.settings import read_settings
from cyrene_host.catalog.state import PluginState

PLUGIN = """
from pathlib import Path

from cyrene_sdk import BasePlugin, PluginMetadata, tool

with (Path(__file__).parent / "imported").open("a") as marker:
    marker.write("x")


class Talker(BasePlugin):
    meta = PluginMetadata(name="{metadata_name}", version="1.0.0"{more})

    @tool
    async def say(self, text: str) -> str:
        '''Say a text.'''
        return text
"""

Load = Callable[..., Catalog]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that writes plugins.json and loads the catalog of it."""

    def load(entries: Any, *, found: str | None = None, only: str | None = None) -> Catalog:
        file = tmp_path / "plugins.json"
        file.write_text(json.dumps(entries))
        file.chmod(0o600)
        paths = [found] if found else []
        return load_file(read_plugins_file(file), tmp_path, paths, only)

    return load


def load_file(file: PluginsFile, folder: Path, paths: list[str], only: str | None) -> Catalog:
    settings = read_settings(None, {}, {"host.state_dir": str(folder / "state")})
    store = ManifestStore(settings.state_folder())
    return Catalog.load(file, settings, entry_points=read_entry_points(paths).plugins, store=store, only=only)


def write_plugin(folder: Path, name: str, *, metadata_name: str = "", more: str = "", module: str = "") -> Path:
    place = folder / "plugins" / name
    place.mkdir(parents=True)
    source = textwrap.dedent(PLUGIN).format(metadata_name=metadata_name or name, more=more)
    (place / f"{module or name}.py").write_text(source)
    return place


def imports_of(place: Path) -> int:
    marker = place / "imported"
    return len(marker.read_text()) if marker.exists() else 0


def test_a_plugin_without_a_manifest_is_imported_once_and_elsewhere(load: Load, tmp_path: Path) -> None:
    place = write_plugin(tmp_path, "talker")

    first = load([{"name": "talker"}])
    second = load([{"name": "talker"}])

    assert [tool.id for tool in first.tools] == [tool.id for tool in second.tools] == ["talker.say"]
    assert imports_of(place) == 1
    assert "talker" not in sys.modules


def test_a_change_of_the_code_describes_it_again(load: Load, tmp_path: Path) -> None:
    place = write_plugin(tmp_path, "talker")
    load([{"name": "talker"}])
    source = place / "talker.py"
    source.write_text(source.read_text().replace("def say", "def tell"))

    catalog = load([{"name": "talker"}])

    assert [tool.id for tool in catalog.tools] == ["talker.tell"]


def test_the_same_code_listed_twice_is_merged_with_a_note(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "talker")

    catalog = load([{"name": "talker"}, {"name": "talker", "path": "plugins/talker"}])

    assert list(catalog.plugins) == ["talker"]
    (note,) = catalog.notes
    assert "'talker' is listed twice, plugins.json line 1, /0 and plugins.json line 1, /1, and is one" in note


def test_another_source_under_the_same_name_is_refused_and_both_are_named(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "talker")
    write_plugin(tmp_path, "other")

    catalog = load([{"name": "talker"}, {"name": "talker", "path": "plugins/other"}])

    assert catalog.plugins["talker"].state is PluginState.DISCOVERED
    refused = catalog.plugins["talker#2"]
    assert refused.state is PluginState.BLOCKED
    assert str(refused.error) == (
        "plugin 'talker': the name 'talker' is listed twice and means two plugins: plugins.json line 1, /0, and"
        " plugins.json line 1, /1; the second is not used\n"
        "  where: plugins.json line 1, /1\n"
        "  mend:  remove one of the two, or give it another name"
    )


def test_of_a_name_listed_many_times_every_entry_is_told(load: Load, tmp_path: Path) -> None:
    for name in ("talker", "other", "third"):
        write_plugin(tmp_path, name)
    others = [{"name": "talker", "path": f"plugins/{name}"} for name in ("other", "third")]

    catalog = load([{"name": "talker"}, *others, {"name": "talker", "strcut": "X"}])

    errors = {name: str(plugin.error) for name, plugin in catalog.plugins.items() if plugin.error}
    assert sorted(errors) == ["talker#2", "talker#3", "talker#4"]
    for place in ("/1", "/2", "/3/strcut"):
        assert any(f", {place}\n" in error for error in errors.values())


def test_what_is_listed_and_found_is_one_plugin(load: Load, tmp_path: Path) -> None:
    installed = tmp_path / "site"
    (installed / "talk-1.0.dist-info").mkdir(parents=True)
    (installed / "talk-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: talk\nVersion: 1.0\n")
    (installed / "talk-1.0.dist-info" / "entry_points.txt").write_text("[cyrene.plugins]\nfound = talker:Talker\n")
    write_plugin(tmp_path, "talker")
    sys.path.append(str(tmp_path / "plugins" / "talker"))
    try:
        entries = {"plugins": [{"name": "mine", "path": "plugins/talker"}], "entry_points": "all"}
        catalog = load(entries, found=str(installed))
    finally:
        sys.path.remove(str(tmp_path / "plugins" / "talker"))

    assert list(catalog.plugins) == ["mine"]
    assert catalog.notes == ["'found' was found, and is listed as 'mine' already: the two are one"]


def test_an_entry_point_may_have_any_name_and_only_its_plugin_is_blocked(load: Load, tmp_path: Path) -> None:
    names = ["My Weather", "a.b", "../x", "", "好", "fine"]
    lines = "".join(f"{name} = talker:Talker\n" for name in names)
    info = tmp_path / "site" / "talk-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(f"[cyrene.plugins]\n{lines}", encoding="utf-8")
    write_plugin(tmp_path, "talker")
    sys.path.append(str(tmp_path / "plugins" / "talker"))
    try:
        catalog = load({"entry_points": "all"}, found=str(tmp_path / "site"))
        listed = load(
            {"plugins": [{"name": "mine", "import": "talker"}], "entry_points": "all"}, found=str(info.parent)
        )
    finally:
        sys.path.remove(str(tmp_path / "plugins" / "talker"))

    states = {name: plugin.state for name, plugin in catalog.plugins.items()}
    assert states == dict.fromkeys(names, PluginState.BLOCKED) | {"fine": PluginState.DISCOVERED}
    assert str(catalog.plugins["My Weather"].error) == (
        "plugin 'My Weather': 'My Weather' is no plugin name\n"
        "  where: entry point 'My Weather' of talk 1.0\n"
        '  mend:  give it an entry in plugins.json, with "name", "import" and "class"'
    )
    assert list(listed.plugins) == ["mine"]


def test_several_faults_of_one_entry_block_one_plugin(load: Load) -> None:
    catalog = load([{"name": "a", "runtim": "inline", "enabld": True}])

    assert list(catalog.plugins) == ["a"]
    error = catalog.plugins["a"].error
    assert error is not None
    assert "unknown key 'runtim'" in str(error)
    assert "unknown key 'enabld'" in str(error)


def test_a_rule_for_a_tool_that_is_not_there_blocks_the_plugin(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "talker")

    catalog = load([{"name": "talker", "tools": {"sai": {"danger_level": "high"}}}])

    plugin = catalog.plugins["talker"]
    assert plugin.state is PluginState.BLOCKED
    assert str(plugin.error) == (
        "plugin 'talker': its entry sets tools that it does not have: 'sai'\n"
        "  where: plugins.json line 1, /0/tools/sai\n"
        "  mend:  did you mean 'say'?"
    )


def test_the_entry_of_a_tool_goes_over_the_entry_of_all(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "talker")

    tools = {"*": {"timeout_ms": 100, "max_retries": 2}, "say": {"timeout_ms": 50, "triggers": ["say it"]}}
    catalog = load([{"name": "talker", "tools": tools}])

    (tool,) = catalog.tools
    definition = tool.definition
    assert (definition.timeout_ms, definition.max_retries, definition.triggers) == (50, 2, ["say it"])


def test_a_dependency_may_be_named_as_the_plugin_names_itself(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "lower", metadata_name="foundation")
    write_plugin(tmp_path, "upper", more=', dependencies={"foundation": "^1.0"}')

    catalog = load([{"name": "upper"}, {"name": "lower"}])

    assert catalog.order == ["lower", "upper"]
    assert catalog.dependencies_of("upper") == ["lower"]


def test_a_disabled_dependency_is_known_by_its_own_name_too(load: Load, tmp_path: Path) -> None:
    lower = write_plugin(tmp_path, "lower", metadata_name="foundation")
    write_plugin(tmp_path, "upper", more=', dependencies={"foundation": "^1.0"}')
    load([{"name": "lower"}])

    catalog = load([{"name": "upper"}, {"name": "lower", "enabled": False}])

    assert imports_of(lower) == 1
    error = catalog.plugins["upper"].error
    assert error is not None
    assert error.what == "it needs the plugin 'foundation', which is disabled"


def test_one_plugin_is_described_with_all_that_it_needs_and_nothing_else(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "user", more=", dependencies={'middle': ''}")
    write_plugin(tmp_path, "middle", more=", dependencies={'bottom': '>=2'}")
    bottom = write_plugin(tmp_path, "bottom")
    other = write_plugin(tmp_path, "other")

    plugins = load([{"name": name} for name in ("user", "middle", "bottom", "other")], only="user").plugins

    assert plugins["user"].state is plugins["middle"].state is PluginState.INCOMPATIBLE
    assert plugins["middle"].error
    assert plugins["middle"].error.what == "it needs the plugin 'bottom' >=2, but the version here is 1.0.0"
    assert (imports_of(bottom), imports_of(other)) == (1, 0)


def test_for_a_dependency_that_is_no_entry_s_name_all_are_described(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "user", more=", dependencies={'calls-itself-so': ''}")
    write_plugin(tmp_path, "other", metadata_name="calls-itself-so")

    none = load([{"name": "user"}, {"name": "other"}], only="nobody")
    catalog = load([{"name": "user"}, {"name": "other"}], only="user")

    assert none.tools == []
    assert catalog.order == ["other", "user"]


def test_a_version_that_is_none_makes_the_plugin_incompatible(load: Load, tmp_path: Path) -> None:
    place = write_plugin(tmp_path, "talker")
    source = place / "talker.py"
    source.write_text(source.read_text().replace('version="1.0.0"', 'version="newest"'))

    plugin = load([{"name": "talker"}]).plugins["talker"]

    assert plugin.state is PluginState.INCOMPATIBLE
    assert plugin.error is not None
    assert plugin.error.what == "'newest' is no version"


def test_a_pinned_version_that_differs_blocks_the_plugin(load: Load, tmp_path: Path) -> None:
    write_plugin(tmp_path, "talker")

    plugin = load([{"name": "talker", "pin": {"version": "2.0"}}]).plugins["talker"]

    assert plugin.state is PluginState.BLOCKED
    assert plugin.error is not None
    assert plugin.error.what.startswith("version '2.0' is pinned")
