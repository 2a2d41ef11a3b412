"""Versions and ranges are read as authors of Python, Go and npm write them."""

from __future__ import annotations

import pytest

from cyrene_host.catalog.versions import VersionError, fits, parse_range, parse_version


@pytest.mark.parametrize(
    ("older", "newer"), [("1.9", "1.10"), ("v1.2.3", "1.2.4"), ("1.0rc1", "v1.0.0"), ("1.0.dev1", "1.0a1")]
)
def test_versions_are_ordered_by_pep_440_with_or_without_a_v(older: str, newer: str) -> None:
    assert parse_version(older) < parse_version(newer)


@pytest.mark.parametrize("text", ["", "one", "1.2.3.x", "go1.2!"])
def test_what_is_no_version_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(VersionError) as caught:
        parse_version(text)
    assert str(caught.value) == f"'{text}' is no version\n  mend:  write it like 1.2.3, 1.2.3rc1 or v1.2.3"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1.2", ">=1.2"),
        ("v1.2.0", ">=1.2.0"),
        ("^1.2", ">=1.2,<2"),
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.3", ">=0.3,<0.4"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0", ">=0,<1"),
        ("^0.0", ">=0.0,<0.1"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("~=1.2", "~=1.2"),
        ("==1.*", "==1.*"),
        (">=1.2, <3", ">=1.2,<3"),
        ("^1.2, !=1.4", ">=1.2,<2,!=1.4"),
        ("", ""),
        ("*", ""),
    ],
)
def test_a_range_means_its_pep_440_spelling(text: str, same: str) -> None:
    assert parse_range(text) == parse_range(same)
    assert set(str(parse_range(text)).split(",")) == set(same.split(","))


@pytest.mark.parametrize("text", ["newest", ">=1.2 <2", "1.2.*", "^", "~x", "1 || 2", "=1"])
def test_what_is_no_range_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(VersionError) as caught:
        parse_range(text)
    assert caught.value.what == f"'{text}' is no range of versions"
    assert caught.value.mend == "write it like 1.2, ^1.2, ~1.2 or >=1.2,<3"


@pytest.mark.parametrize(
    ("version", "allowed", "is_in"),
    [
        ("1.9.9", "^1.2", True),
        ("2.0", "^1.2", False),
        ("2.0rc1", "^1.2", False),
        ("1.3rc1", "^1.2", True),
        ("v1.2.9", "~1.2.3", True),
        ("1.3", "~1.2.3", False),
        ("5", "1.2", True),
        ("1.2rc1", "1.2", False),
        ("0.1.dev1", "*", True),
    ],
)
def test_a_version_fits_where_pep_440_orders_it(version: str, allowed: str, is_in: bool) -> None:
    assert fits(version, allowed) is is_in
    assert fits(parse_version(version), parse_range(allowed)) is is_in
