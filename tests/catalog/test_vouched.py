"""A text is vouched for by its bytes and by what checked it; everything else is checked again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_host.catalog.manifests import Manifest, ManifestStore, parse_manifest
from cyrene_host.catalog.sources import Source
from cyrene_host.catalog.unread import UnreadTools
from cyrene_host.catalog.vouched import MAX_DIGESTS, Vouched

TEXTS = st.text(max_size=8)
SCHEMAS = st.dictionaries(st.sampled_from(["type", "properties", "x"]), TEXTS | st.integers() | st.floats(0, 1))
DEFINITIONS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["id", "name", "displayName", "description", "category"], st.none() | TEXTS),
        "complexity": st.sampled_from([None, "", "simple", "complex"]),
        **dict.fromkeys(["parameters", "returns"], st.none() | SCHEMAS),
        "timeout_ms": st.none() | st.integers(0, 90_000) | st.just(5.0),
        "max_retries": st.integers(0, 3),
        "danger_level": st.sampled_from([None, "", "low", "medium", "high"]),
        **dict.fromkeys(["read_only", "serial"], st.booleans()),
        "idempotent": st.none() | st.booleans(),
        **dict.fromkeys(["triggers", "not_when", "secret_arguments", "makes", "accepts"], st.lists(TEXTS, max_size=2)),
        "examples": st.lists(SCHEMAS, max_size=2),
    },
)


def described(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"sdk_contract": 1, "metadata": {"name": "weather", "version": "1.0"}, "tools": [*tools], **more}


@given(DEFINITIONS)
def test_an_unread_definition_is_the_validated_one_field_by_field(written: dict[str, Any]) -> None:
    (validated,) = parse_manifest(described(written), origin="live", where="weather").tools
    unread = UnreadTools([written])

    assert unread[0] == validated  # pydantic compares the fields that were set, too
    assert repr(unread[0]) == repr(validated)
    assert unread[0].to_dict() == validated.to_dict()
    assert unread[:] == (validated,)
    assert (unread.unread[0].name, unread.unread[0].id) == (validated.name, validated.id)


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "weather.py").write_text("")
    return Source(
        "path", "weather", "Weather", tmp_path, None, None, "plugins.json line 1, /0", tmp_path / "weather.py"
    )


@pytest.fixture
def shipped(tmp_path: Path) -> Callable[..., None]:
    """Return a function that writes the manifest of the source."""

    def write(**more: Any) -> None:
        written = {"manifest": 1, **described({"name": "now", "parameters": {"type": "object"}}), **more}
        (tmp_path / "weather.cyrene-plugin.json").write_text(json.dumps(written))

    return write


def found(state_dir: Path, source: Source) -> Manifest:
    manifest = ManifestStore(state_dir, Vouched(state_dir)).find(source, "weather")
    assert manifest is not None
    return manifest


def vouch(state_dir: Path, manifest: Manifest) -> None:
    ManifestStore(state_dir, Vouched(state_dir)).vouch([manifest])


def test_a_shipped_manifest_that_was_found_good_is_not_read_again(
    state_dir: Path, source: Source, shipped: Callable[..., None]
) -> None:
    shipped()
    first = found(state_dir, source)
    vouch(state_dir, first)
    second = found(state_dir, source)

    assert (first.is_vouched, second.is_vouched) == (False, True)
    assert second.to_dict() == first.to_dict()
    assert second.origin == "shipped"


def test_a_kept_manifest_that_was_found_good_is_not_read_again(state_dir: Path, source: Source) -> None:
    live = parse_manifest(described({"name": "now"}), origin="live", where="weather")
    ManifestStore(state_dir).keep(source, "weather", live)
    vouch(state_dir, found(state_dir, source))
    known = found(state_dir, source)

    assert (known.is_vouched, known.origin) == (True, "kept")
    assert ManifestStore(state_dir, Vouched(state_dir)).keep(source, "weather", live) == []


def test_a_manifest_with_notes_is_read_again_so_that_they_are_told_again(
    state_dir: Path, source: Source, shipped: Callable[..., None]
) -> None:
    shipped(tools=[{"name": "now", "of_a_newer_sdk": 1}])
    vouch(state_dir, found(state_dir, source))

    assert found(state_dir, source).notes == ("ToolDefinition: unknown key 'of_a_newer_sdk' was left out",)


def test_a_store_that_nobody_gave_vouched_texts_checks_all(
    state_dir: Path, source: Source, shipped: Callable[..., None]
) -> None:
    shipped()
    vouch(state_dir, found(state_dir, source))
    manifest = ManifestStore(state_dir).find(source, "weather")

    assert manifest is not None
    assert not manifest.is_vouched


def test_another_contract_is_refused_though_the_text_was_vouched_for(
    state_dir: Path, source: Source, shipped: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped()
    vouch(state_dir, found(state_dir, source))
    monkeypatch.setattr("cyrene_host.catalog.manifests.CONTRACTS", range(2, 3))

    with pytest.raises(Exception, match="it was built with the SDK contract '1'"):
        found(state_dir, source)


def test_digests_are_kept_for_the_next_start(state_dir: Path) -> None:
    Vouched(state_dir).add(["a", "b"])
    Vouched(state_dir).add(["c"])

    assert [digest in Vouched(state_dir) for digest in "abcd"] == [True, True, True, False]


def test_the_oldest_digests_fall_out(state_dir: Path) -> None:
    Vouched(state_dir).add(["oldest", "old"])
    Vouched(state_dir).add([str(number) for number in range(MAX_DIGESTS - 1)])
    kept = Vouched(state_dir)

    assert ("oldest" in kept, "old" in kept, "0" in kept) == (False, True, True)


@pytest.mark.parametrize("spoilt", [b"", b"{", b"\xff", b"[]", b"null", b'{"digests": ["a"]}', b"1" * 2_000_000])
def test_what_is_no_list_of_this_version_is_left_aside_and_replaced(state_dir: Path, spoilt: bytes) -> None:
    state_dir.mkdir()
    (state_dir / "checked.json").write_bytes(spoilt)
    vouched = Vouched(state_dir)

    assert "a" not in vouched
    vouched.add(["b"])
    assert "b" in Vouched(state_dir)


@pytest.mark.parametrize("digests", [{"a": 1}, "a", None, [1, None, ["a"]]])
def test_digests_of_another_shape_vouch_for_nothing(state_dir: Path, digests: object) -> None:
    Vouched(state_dir).add(["a"])
    file = state_dir / "checked.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "digests": digests}))

    assert "a" not in Vouched(state_dir)


@pytest.mark.parametrize("place", range(8))
def test_another_version_of_anything_that_checks_forgets_all(state_dir: Path, place: int) -> None:
    Vouched(state_dir).add(["a"])
    file = state_dir / "checked.json"
    kept = json.loads(file.read_text())
    kept["checked_by"][place] += "1"
    file.write_text(json.dumps(kept))

    assert "a" not in Vouched(state_dir)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(state_dir: Path) -> None:
    state_dir.mkdir()
    os.mkfifo(state_dir / "checked.json")

    assert "a" not in Vouched(state_dir)


def test_where_nothing_can_be_written_nothing_is_remembered(tmp_path: Path, source: Source) -> None:
    in_the_way = tmp_path / "state"
    in_the_way.write_text("a file")
    vouched = Vouched(in_the_way)
    vouched.add(["a"])

    assert "a" in vouched
    assert "a" not in Vouched(in_the_way)
    assert ManifestStore(in_the_way, vouched).find(replace(source, location=None), "weather") is None
