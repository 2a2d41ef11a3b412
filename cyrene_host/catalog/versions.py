"""Reads versions and version ranges as plugin authors of Python, Go and npm write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from cyrene_sdk.errors import CyreneError

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

__all__ = ["VersionError", "fits", "parse_range", "parse_version"]

_SHORT = re.compile(r"([\^~])\s*(?!=)(.+)")


class VersionError(CyreneError, ValueError):
    """A text is no version, or no range of versions."""


def parse_version(text: str) -> Version:
    """Read a version such as `1.2.3`, `1.2.3rc1`, or Go's `v1.2.3`.

    Raises:
        VersionError: with the text in it.
    Source: PEP 440 (which reads a leading `v`).
    """
    try:
        return Version(text)
    except (InvalidVersion, TypeError) as error:
        raise VersionError(
            f"'{str(text)[:80]}' is no version", mend="write it like 1.2.3, 1.2.3rc1 or v1.2.3"
        ) from error


def parse_range(text: str) -> SpecifierSet:
    """Read a range of versions; the comma means "and", an empty text or `*` any version.

    `1.2` is `>=1.2`. `^1.2` allows what keeps the first number that is not 0: `>=1.2,<2`; `^0.3` is
    `>=0.3,<0.4`. `~1.2.3` and `~1.2` allow another last number: `>=1.2.3,<1.3` and `>=1.2,<1.3`; `~1` is
    `>=1,<2`. Everything else is PEP 440, such as `>=1.2,<3`, `~=1.2` or `==1.*`.

    Raises:
        VersionError: with the text in it.
    Source: PEP 440; the caret and tilde of npm and Poetry.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # 8 ms that a host pays once a plugin names a range

    if text.strip() in ("", "*"):
        return SpecifierSet()
    try:
        return SpecifierSet(",".join(_spelled_out(part.strip()) for part in text.split(",")))
    except (InvalidSpecifier, VersionError) as error:
        raise VersionError(
            f"'{text[:80]}' is no range of versions", mend="write it like 1.2, ^1.2, ~1.2 or >=1.2,<3"
        ) from error


def fits(version: str | Version, allowed: str | SpecifierSet) -> bool:
    """Say whether a version is in a range; a pre-release is where PEP 440 orders it.

    Raises:
        VersionError: one of the two cannot be read.
    """
    known = parse_version(version) if isinstance(version, str) else version
    range_ = parse_range(allowed) if isinstance(allowed, str) else allowed
    return range_.contains(known, prereleases=True)


def _spelled_out(part: str) -> str:
    short = _SHORT.fullmatch(part)
    if short is None:
        return f">={parse_version(part)}" if part[:1].isalnum() else part
    lowest = parse_version(short[2])
    return f">={lowest},<{'.'.join(map(str, _first_above(short[1], lowest.release)))}"


def _first_above(sign: str, release: tuple[int, ...]) -> tuple[int, ...]:
    if sign == "~":
        kept = min(len(release), 2) - 1
    else:
        kept = next((place for place, number in enumerate(release) if number), len(release) - 1)
    return (*release[:kept], release[kept] + 1)
