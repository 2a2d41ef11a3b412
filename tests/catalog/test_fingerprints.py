"""The key and the digest of a plugin change when its files do, and not otherwise."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cyrene_host.catalog import fingerprints
from cyrene_host.catalog.fingerprints import check_pin, source_digest, source_key
from cyrene_host.catalog.sources import Source, SourceError


def _folder(root: Path) -> Source:
    package = root / "cyrene_weather"
    (package / "__pycache__").mkdir(parents=True)
    (package / ".cache").mkdir()
    (package / "__init__.py").write_text("A = 1\n")
    (package / "cities.json").write_text("[]\n")
    return Source(
        kind="path",
        module="cyrene_weather",
        attribute="Weather",
        folder=root,
        distribution=None,
        version="1.0",
        where="plugins.json line 3, /plugins/0",
        location=package,
    )


def _wheel(site: Path) -> Source:
    info = site / "cyrene_weather-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: cyrene-weather\n")
    (info / "INSTALLER").write_text("pip\n")
    names = ("cyrene_weather/__init__.py", "cyrene_weather/cities.json", f"{info.name}/METADATA", f"{info.name}/RECORD")
    extra = ("../../bin/weather", "cyrene_weather/__pycache__/__init__.cpython-311.pyc", f"{info.name}/INSTALLER")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in (*names, *extra)))
    source = _folder(site)
    return replace(source, kind="entry_point", folder=None, distribution="cyrene-weather", dist_path=info)


def _touch(file: Path, text: str | None = None) -> None:
    """Change a file, or its time of change alone by one nanosecond."""
    stamp = file.stat().st_mtime_ns
    if text is not None:
        file.write_text(text)
    os.utime(file, ns=(stamp + 1000, stamp + 1000))


def test_the_key_of_a_folder_changes_with_any_of_its_files_by_size_or_time(tmp_path: Path) -> None:
    source = _folder(tmp_path)
    package = tmp_path / "cyrene_weather"
    keys = [source_key(source)]

    _touch(package / "__init__.py")
    keys.append(source_key(source))
    (package / "cities.json").write_text("[1, 2]\n")
    keys.append(source_key(source))
    (package / "new.py").write_text("")
    keys.append(source_key(source))
    (package / "new.py").unlink()
    (package / "cities.json").rename(package / "towns.json")
    keys.append(source_key(source))

    assert len(set(keys)) == len(keys)


def test_compiled_and_hidden_files_do_not_change_a_folders_key(tmp_path: Path) -> None:
    source = _folder(tmp_path)
    (tmp_path / "cyrene_weather/node_modules").mkdir()
    before = source_key(source)

    for name in ("__pycache__/a.cpython-311.pyc", "old.pyc", ".cache/x", "node_modules/x.js"):
        (tmp_path / "cyrene_weather" / name).write_text("x")

    assert source_key(source) == before


def test_the_key_names_class_contract_and_python(tmp_path: Path) -> None:
    source = _folder(tmp_path)

    keys = {source_key(source), source_key(replace(source, attribute="B")), source_key(replace(source, module="b"))}
    keys.add(source_key(replace(source, python=tmp_path / "env")))

    assert len(keys) == 4
    assert all(key is not None and " | contract 2 | python " in key for key in keys)


def test_the_key_of_a_wheel_is_its_record_and_reads_no_other_file(tmp_path: Path) -> None:
    source = _wheel(tmp_path)
    before = source_key(source)
    record = tmp_path / "cyrene_weather-1.0.dist-info/RECORD"
    digest = hashlib.sha256(record.read_bytes()).hexdigest()

    _touch(tmp_path / "cyrene_weather/__init__.py", "B = 2\n")

    assert before is not None
    assert f"| wheel cyrene-weather 1.0 {digest} |" in before
    assert source_key(source) == before
    record.write_text(record.read_text() + "more,,\n")
    assert source_key(source) != before


@pytest.mark.parametrize("record", ["_cyrene_weather.pth,,\nnot_cyrene_weather/a.py,,\n", None])
def test_an_editable_distribution_is_known_by_its_files_and_not_by_its_record(
    tmp_path: Path, record: str | None
) -> None:
    source = _wheel(tmp_path)
    file = tmp_path / "cyrene_weather-1.0.dist-info/RECORD"
    file.unlink()
    if record is not None:
        file.write_text(record)

    key = source_key(source)

    assert key is not None
    assert f"| files {source.location} " in key


def test_a_single_module_is_known_by_the_modules_beside_it_and_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text("")
    (tmp_path / "cities.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    source = replace(_folder(tmp_path), module="weather", location=tmp_path / "weather.py")
    keys = [source_key(source)]
    (tmp_path / "notes.txt").write_text("more")
    assert source_key(source) == keys[0]

    (tmp_path / "cities.py").write_text("A = 1")
    keys.append(source_key(source))
    (tmp_path / "weather.cyrene-plugin.json").write_text("{}")
    keys.append(source_key(source))

    assert len(set(keys)) == 3


def test_a_source_without_known_files_has_no_key_and_no_digest(tmp_path: Path) -> None:
    source = replace(_folder(tmp_path), location=None)

    assert source_key(source) is None
    with pytest.raises(SourceError) as raised:
        source_digest(source, plugin="weather")
    assert str(raised.value) == (
        "plugin 'weather': 'cyrene_weather' has no digest: its files are not known\n"
        "  where: plugins.json line 3, /plugins/0\n"
        "  mend:  remove 'sha256' from the entry's 'pin', or install the plugin as a wheel"
    )


def test_the_digest_of_a_wheel_is_of_its_files_wherever_and_by_whomever_it_is_installed(tmp_path: Path) -> None:
    one, two = _wheel(tmp_path / "one"), _wheel(tmp_path / "two")
    (tmp_path / "two/cyrene_weather-1.0.dist-info/INSTALLER").write_text("uv\n")
    (tmp_path / "two/cyrene_weather/not_recorded.py").write_text("")

    assert source_digest(one) == source_digest(two)
    (tmp_path / "two/cyrene_weather/__init__.py").write_text("B = 2\n")
    assert source_digest(one) != source_digest(two)


def test_the_digest_of_a_folder_is_of_its_whole_tree_and_not_of_its_place(tmp_path: Path) -> None:
    one, two = _folder(tmp_path / "one"), _folder(tmp_path / "two")
    _touch(tmp_path / "two/cyrene_weather/__init__.py")

    assert source_digest(one) == source_digest(two)
    (tmp_path / "two/beside.py").write_text("")
    assert source_digest(one) != source_digest(two)


def test_the_digest_of_an_installed_single_module_is_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text("")
    source = replace(_folder(tmp_path), location=tmp_path / "weather.py", folder=None)
    before = source_digest(source)

    (tmp_path / "cities.py").write_text("")
    assert source_digest(source) == before
    (tmp_path / "weather.py").write_text("A = 1")
    assert source_digest(source) != before


def test_a_recorded_file_that_is_gone_leaves_no_digest(tmp_path: Path) -> None:
    source = _wheel(tmp_path)
    (tmp_path / "cyrene_weather/cities.json").unlink()

    with pytest.raises(SourceError, match=r"'cyrene_weather' has no digest: .*No such file"):
        source_digest(source)


def test_a_tree_with_too_many_files_has_a_key_and_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "MAX_FILES", 10)
    source = _folder(tmp_path)
    (tmp_path / "cyrene_weather/more").mkdir()
    for number in range(12):
        (tmp_path / f"cyrene_weather/more/{number:02}.txt").write_text("")

    assert source_key(source) is not None
    with pytest.raises(SourceError, match="has no digest: it has more than 10 files"):
        source_digest(source)


def test_a_pin_that_fits_passes_and_one_that_does_not_names_what_was_found(tmp_path: Path) -> None:
    source = _folder(tmp_path)
    digest = source_digest(source)
    check_pin(source, plugin="weather", version="1.0", sha256=digest)
    check_pin(source, plugin="weather", version=None, sha256=None)

    with pytest.raises(SourceError) as by_version:
        check_pin(source, plugin="weather", version="2.0", sha256=digest)
    with pytest.raises(SourceError) as by_digest:
        check_pin(source, plugin="weather", version="1.0", sha256="0" * 64)

    assert by_version.value.what == "version '2.0' is pinned, found is '1.0'"
    assert str(by_digest.value) == (
        f"plugin 'weather': its files are not the pinned ones: their sha256 is '{digest}', not '{'0' * 64}'\n"
        "  where: plugins.json line 3, /plugins/0\n"
        "  mend:  find out what changed; if it is wanted, put the new sha256 into 'pin'"
    )
