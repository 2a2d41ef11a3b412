"""A manifest comes from the package, else from the state directory, and is never believed unread."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.catalog.manifests import (
    MAX_BYTES,
    Manifest,
    ManifestError,
    ManifestStore,
    differences,
    drift,
    parse_manifest,
    read_shipped,
    write_manifest,
)
from cyrene_host.catalog.sources import Source


def _described(*tools: str, **more: Any) -> dict[str, Any]:
    return {
        "sdk_contract": 1,
        "metadata": {"name": "weather", "version": "1.0"},
        "tools": [{"name": name, "parameters": {"type": "object"}} for name in tools],
        **more,
    }


def _live(*tools: str, **more: Any) -> Manifest:
    return parse_manifest(_described(*tools, **more), origin="live", where="weather")


def _names(manifest: Manifest | None) -> list[str] | None:
    return None if manifest is None else [tool.name for tool in manifest.tools]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    package = tmp_path / "code/cyrene_weather"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    return Source(
        kind="path",
        module="cyrene_weather",
        attribute="Weather",
        folder=tmp_path / "code",
        distribution=None,
        version=None,
        where="plugins.json line 3, /plugins/0",
        location=package,
    )


@pytest.fixture
def shipped(source: Source) -> Path:
    """The place of the shipped manifest."""
    assert source.location is not None
    return source.location / "cyrene-plugin.json"


@pytest.fixture
def store(tmp_path: Path) -> ManifestStore:
    return ManifestStore(tmp_path / "state")


def test_nothing_is_known_of_a_plugin_without_any_manifest(store: ManifestStore, source: Source) -> None:
    assert store.find(source, "weather") is None
    assert store.notes == []


def test_a_shipped_manifest_is_read_from_the_package(store: ManifestStore, source: Source, shipped: Path) -> None:
    shipped.write_text(
        json.dumps(_described("now", config_schema={"type": "object"}) | {"manifest": 1, "python": "3.11"})
    )

    manifest = store.find(source, "weather")

    assert manifest is not None
    assert (manifest.origin, manifest.metadata.name, manifest.python) == ("shipped", "weather", "3.11")
    assert (_names(manifest), manifest.config_schema) == (["now"], {"type": "object"})


def test_a_single_modules_manifest_lies_beside_it(source: Source, tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text("")
    (tmp_path / "weather.cyrene-plugin.json").write_text(json.dumps(_described("now")))

    assert _names(read_shipped(replace(source, location=tmp_path / "weather.py"))) == ["now"]
    assert read_shipped(replace(source, location=None)) is None


def test_a_live_manifest_is_kept_until_the_code_changes(store: ManifestStore, source: Source, shipped: Path) -> None:
    assert store.keep(source, "weather", _live("now", config_schema={"type": "object"})) == []

    kept = store.find(source, "weather")
    assert kept is not None
    assert kept == _live("now", config_schema={"type": "object"}).model_copy(
        update={"origin": "kept", "python": kept.python}
    )

    (shipped.parent / "__init__.py").write_text("A = 1\n")
    assert store.find(source, "weather") is None


def test_the_live_definitions_replace_a_shipped_manifest_that_says_otherwise(
    store: ManifestStore, source: Source, shipped: Path
) -> None:
    shipped.write_text(json.dumps(_described("now")))

    assert store.keep(source, "weather", _live("now", "later")) == ["tool 'later' is new"]
    assert _names(store.find(source, "weather")) == ["now", "later"]
    assert store.keep(source, "weather", _live("now")) == ["tool 'later' is gone"]
    assert _names(store.find(source, "weather")) == ["now"]


def test_nothing_is_kept_beside_a_shipped_manifest_that_is_right(
    store: ManifestStore, source: Source, shipped: Path, tmp_path: Path
) -> None:
    shipped.write_text(json.dumps(_described("now")))

    assert store.keep(source, "weather", _live("now")) == []
    assert not (tmp_path / "state").exists()


def test_a_new_shipped_manifest_goes_before_what_was_kept(store: ManifestStore, source: Source, shipped: Path) -> None:
    store.keep(source, "weather", _live("old"))
    shipped.write_text(json.dumps(_described("new")))

    assert _names(store.find(source, "weather")) == ["new"]


def test_a_shipped_manifest_of_another_class_is_not_this_plugins(source: Source, shipped: Path) -> None:
    shipped.write_text(json.dumps(_described("now", attribute="Storm")))

    assert read_shipped(source) is None
    assert _names(read_shipped(replace(source, attribute="Storm"))) == ["now"]
    assert _names(read_shipped(replace(source, attribute=None))) == ["now"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"key": 1}', "\x00", '{"key": NaN}', "x" * (MAX_BYTES + 1)])
def test_a_kept_file_that_is_damaged_is_left_aside_and_noted(
    store: ManifestStore, source: Source, tmp_path: Path, text: str
) -> None:
    store.keep(source, "weather", _live("now"))
    file = tmp_path / "state/manifests/weather.json"
    file.write_text(text)

    assert store.find(source, "weather") is None
    if text != '{"key": 1}':
        assert len(store.notes) == 1
        assert store.notes[0].startswith(f"'{file}' was left aside: ")
    store.keep(source, "weather", _live("now"))
    assert _names(store.find(source, "weather")) == ["now"]


def test_a_kept_file_whose_manifest_is_damaged_is_left_aside_and_noted(
    store: ManifestStore, source: Source, tmp_path: Path
) -> None:
    store.keep(source, "weather", _live("now"))
    file = tmp_path / "state/manifests/weather.json"
    kept = json.loads(file.read_text())
    kept["manifest"]["tools"] = [{"name": 1}]
    file.write_text(json.dumps(kept))

    assert store.find(source, "weather") is None
    assert "/tools/0/name: Input should be a valid string" in store.notes[0]


@pytest.mark.parametrize("name", ["../../escape", "a/b", "..", "昔涟" * 100, "a\x00b", "C:\\x"])
def test_no_name_leads_out_of_the_folder_of_kept_manifests(
    store: ManifestStore, source: Source, tmp_path: Path, name: str
) -> None:
    store.keep(source, name, _live("now"))

    assert _names(store.find(source, name)) == ["now"]
    assert [file.parent for file in (tmp_path / "state").rglob("*.json")] == [tmp_path / "state/manifests"]
    assert store.find(source, name + "x") is None


def test_a_state_directory_that_cannot_be_written_is_noted(source: Source, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    store = ManifestStore(tmp_path / "state")

    assert store.keep(source, "weather", _live("now")) == []
    assert len(store.notes) == 1
    assert store.notes[0].startswith("the manifest of 'weather' was not kept: ")


def test_a_plugin_whose_files_are_not_known_is_not_kept(store: ManifestStore, source: Source, tmp_path: Path) -> None:
    store.keep(replace(source, location=None), "weather", _live("now"))

    assert not (tmp_path / "state").exists()


def test_a_manifest_of_a_newer_contract_asks_for_a_newer_host(source: Source, shipped: Path) -> None:
    shipped.write_text(json.dumps(_described("now") | {"sdk_contract": 3}))

    with pytest.raises(ManifestError) as raised:
        read_shipped(source, plugin="weather")

    assert str(raised.value) == (
        "plugin 'weather': it was built with the SDK contract '3', this host speaks 1 to 2\n"
        f"  where: {shipped}\n"
        "  mend:  upgrade cyrene-host"
    )


@pytest.mark.parametrize("contract", [0, -1, None, "1", True])
def test_a_manifest_of_an_older_or_no_contract_asks_for_a_newer_plugin(contract: object) -> None:
    with pytest.raises(ManifestError) as raised:
        parse_manifest(_described("now") | {"sdk_contract": contract}, origin="live", where="x")

    assert raised.value.mend == "upgrade the plugin: it must be built again with a newer cyrene-sdk"


def test_a_manifest_of_another_format_asks_for_a_newer_host() -> None:
    with pytest.raises(ManifestError) as raised:
        parse_manifest(_described("now") | {"manifest": 2}, origin="live", where="x")

    assert raised.value.what == "its manifest has the format '2', this host reads 1"
    assert raised.value.mend == "upgrade cyrene-host"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"{", "its cyrene-plugin.json cannot be read: EOF while parsing"),
        (b'{"sdk_contract": NaN}', "its cyrene-plugin.json cannot be read: "),
        (b"[]", "its manifest is no JSON object"),
        (b'{"sdk_contract": 1, "tools": []}', "its manifest is not valid: /metadata: Field required"),
        (b"[" * 300 + b"]" * 300, "its cyrene-plugin.json cannot be read: recursion limit exceeded"),
        (b'{"sdk_contract": 1, "x": [1e400]}', "its cyrene-plugin.json cannot be read: "),
        (b"1" * 400 + b".0", "its cyrene-plugin.json cannot be read: "),
        (b'"\\ud800"', "its cyrene-plugin.json cannot be read: "),
        (
            b" " * (MAX_BYTES + 1),
            f"its cyrene-plugin.json cannot be read: it is no file, or larger than {MAX_BYTES} bytes",
        ),
    ],
)
def test_a_broken_shipped_manifest_is_an_error_with_its_mend(
    source: Source, shipped: Path, text: bytes, what: str
) -> None:
    shipped.write_bytes(text)

    with pytest.raises(ManifestError) as raised:
        read_shipped(source, plugin="weather")

    assert raised.value.what.startswith(what)
    assert (raised.value.where, raised.value.mend) == (str(shipped), "write it again: `cyrene manifest build`")


def test_keys_of_a_newer_sdk_are_left_out_with_a_note() -> None:
    described = _described("now")
    described["tools"][0]["colour"] = "blue"

    manifest = parse_manifest(described, origin="live", where="x")

    assert manifest.notes == ("ToolDefinition: unknown key 'colour' was left out",)
    assert _names(manifest) == ["now"]


def test_a_manifest_cannot_choose_its_origin() -> None:
    assert parse_manifest(_described("now", origin="shipped", notes=["x"]), origin="live", where="x").origin == "live"


def test_differences_name_what_changed_and_nothing_else() -> None:
    new = _described("b", "c", config_schema={"type": "object"}, tool_faults={"c": "no"})
    new["metadata"]["version"] = "2.0"
    new["tools"][0] |= {"description": "B", "timeout_ms": 5}

    changes = differences(_live("a", "b"), parse_manifest(new, origin="live", where="x"))

    assert changes == [
        "metadata: version changed",
        "tool 'a' is gone",
        "tool 'b': description, timeout_ms changed",
        "tool 'c' is new",
        "the schema of 'config' changed",
        "the faults of its tools changed",
    ]
    assert differences(_live("a", python="3.11"), _live("a", python="3.13")) == []
    assert differences(_live("a"), _live("a").model_copy(update={"sdk_contract": 2})) == [
        "the SDK contract changed from 1 to 2"
    ]


def test_a_written_manifest_reads_back_and_is_written_again_only_when_it_differs(source: Source, shipped: Path) -> None:
    assert drift(source, _live("now")) == ["there is no cyrene-plugin.json"]
    assert write_manifest(source, _live("now")) == ["there is no cyrene-plugin.json"]
    text = shipped.read_text(encoding="utf-8")
    assert json.loads(text)["attribute"] == "Weather"

    shipped.write_text(text.replace('"python": "', '"python": "0.'))
    assert write_manifest(source, _live("now")) == []
    assert '"python": "0.' in shipped.read_text()
    assert drift(source, _live("now", "later")) == ["tool 'later' is new"]
    assert write_manifest(source, _live("now", "later")) == ["tool 'later' is new"]
    assert _names(read_shipped(source)) == ["now", "later"]
    assert sorted(file.name for file in shipped.parent.iterdir()) == ["__init__.py", "cyrene-plugin.json"]


def test_a_broken_manifest_is_drift_and_is_written_anew(source: Source, shipped: Path) -> None:
    shipped.write_text("[]")

    assert write_manifest(source, _live("now")) == ["its manifest is no JSON object"]
    assert _names(read_shipped(source)) == ["now"]


def test_a_manifest_with_a_faulty_tool_or_without_a_place_is_not_written(source: Source, shipped: Path) -> None:
    with pytest.raises(ManifestError) as faulty:
        write_manifest(source, _live("now", tool_faults={"now": "tool 'now' is odd"}))
    with pytest.raises(ManifestError, match="the package of 'cyrene_weather' is not known"):
        write_manifest(replace(source, location=None), _live("now"))
    with pytest.raises(ManifestError, match=r"its cyrene-plugin\.json cannot be written"):
        write_manifest(replace(source, location=shipped.parent / "gone/weather.py"), _live("now"))

    assert (faulty.value.what, faulty.value.plugin) == ("tool 'now' is odd", "weather")
    assert not shipped.exists()


@pytest.mark.parametrize("value", [{1}, float("nan"), "\ud800", b"x"])
def test_what_a_plugin_describes_itself_by_passes_the_gate(value: object) -> None:
    with pytest.raises(ManifestError, match="its manifest is refused: "):
        parse_manifest(_described("now", examples=[value]), origin="live", where="x")


def test_a_manifest_that_cannot_be_put_in_its_place_leaves_nothing_behind(source: Source, shipped: Path) -> None:
    (shipped / "inside").mkdir(parents=True)

    with pytest.raises(ManifestError, match=r"its cyrene-plugin\.json cannot be written"):
        write_manifest(source, _live("now"))

    assert sorted(file.name for file in shipped.parent.iterdir()) == ["__init__.py", "cyrene-plugin.json"]
