"""`cyrene doctor`: says what is wrong where nothing else works any more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

from cyrene_host.cli.options import Choices
from cyrene_host.cli.symptoms import Symptom
from cyrene_host.version import __version__

__all__ = ["examine"]

_SIGNS = {"fine": "ok    ", "note": "note  ", "wrong": "WRONG "}


def examine(choices: Choices) -> int:
    """Look at everything that a host needs, each thing on its own, and show it; 1 if something is wrong."""
    symptoms = [*_looked_at("interpreter", _interpreter), *_looked_at("packages", _packages)]
    symptoms += _looked_at("isolation", _isolation)
    symptoms += _looked_at("plugins", lambda: _diagnosis(choices))
    wrong = [symptom for symptom in symptoms if symptom.level == "wrong"]
    if choices.as_json:
        choices.screen.json({"well": not wrong, "symptoms": [symptom._asdict() for symptom in symptoms]})
    else:
        for symptom in symptoms:
            mend = f"\n        mend:  {symptom.mend}" if symptom.mend else ""
            choices.screen.answer(f"{_SIGNS[symptom.level]}{symptom.about}: {symptom.what}{mend}")
        choices.screen.answer(_advice(wrong))
    return 1 if wrong else 0


def _advice(wrong: list[Symptom]) -> str:
    if not wrong:
        return "Nothing is wrong. Next: `cyrene health` starts the plugins and asks each how it does."
    first = f"; begin with the first, {wrong[0].about}" if len(wrong) > 1 else ""
    return f"{len(wrong)} wrong{first}. After mending: `cyrene doctor` again."


def _looked_at(about: str, look: Callable[[], Iterable[Symptom]]) -> list[Symptom]:
    """Look at one thing; that this itself fails is one more symptom."""
    try:
        return list(look())
    except Exception as error:  # noqa: BLE001 - whatever is broken here must be told, not raised
        what = f"looking at it failed: {type(error).__name__}: {str(error)[:200]}"
        return [Symptom("wrong", about, what, "report this, with what `cyrene doctor --debug` logs")]


def _interpreter() -> Iterable[Symptom]:
    yield Symptom("fine", "cyrene", f"{__version__}, {Path(__file__).parent.parent}")
    yield Symptom("fine", "python", f"{sys.version.split()[0]}, {sys.executable}, {sys.platform}")


def _packages() -> Iterable[Symptom]:
    """Compare what cyrene-host requires with what is installed, by names where versions cannot be read."""
    try:
        required = metadata.requires("cyrene-host") or []
    except metadata.PackageNotFoundError:
        yield Symptom("note", "packages", "cyrene-host is not installed as a distribution, so this cannot be checked")
        return
    missing = [name for name in map(_name_of, required) if not _is_installed(name)]
    if missing:
        names = " ".join(missing)
        yield Symptom("wrong", "packages", f"missing: {', '.join(missing)}", f"pip install {names}")
    else:
        yield Symptom("fine", "packages", f"all {len(required)} that cyrene-host needs are installed")


def _name_of(requirement: str) -> str:
    end = next((place for place, sign in enumerate(requirement) if sign in " <>=!~;[("), len(requirement))
    return requirement[:end]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _isolation() -> Iterable[Symptom]:
    try:
        from cyrene_host.cli.isolation import look_at_isolation  # needs packages that may be missing
    except ImportError as error:
        what = f"cannot be looked at: {error}"
        return [Symptom("wrong", "isolation", what, "install cyrene-host again, then `cyrene doctor`")]
    return look_at_isolation()


def _diagnosis(choices: Choices) -> Iterable[Symptom]:
    try:
        from cyrene_host.cli.diagnosis import look_at_files  # needs packages that may be missing
    except ImportError as error:
        what = f"cannot be looked at: {error}"
        return [Symptom("wrong", "plugins", what, "install cyrene-host again, then `cyrene doctor`")]
    return look_at_files(choices)
