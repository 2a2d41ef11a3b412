"""What may be said with every command, before it or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from cyrene_host.cli.screen import Screen
from cyrene_sdk.errors import CyreneError

__all__ = ["TAKES_VALUE", "Choices", "CommandFailedError", "WrongUseError", "hoisted", "overrides_of"]

TAKES_VALUE: Mapping[str, bool] = MappingProxyType(
    {"--plugins": True, "--config": True, "--set": True, "--json": False, "--debug": False}
)
"""The options of every command, and whether a value follows."""


class WrongUseError(CyreneError):
    """A command was given something that it does not take."""


class CommandFailedError(CyreneError):
    """The command was understood, and what it was to do cannot be done: exit 1, as for any failure."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of every command, read.

    `plugins` and `config` are paths as given; `overrides` are settings by dotted name, values as text.
    """

    screen: Screen
    plugins: str | None = None
    config: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    is_debugging: bool = False

    @property
    def as_json(self) -> bool:
        """Whether programs read the answer."""
        return self.screen.as_json


def hoisted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take the options of every command out of the arguments, wherever they stand before a `--`.

    Returns:
        These options, and the rest.
    Raises:
        WrongUseError: an option that takes a value is the last word.
    """
    options: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, _, _ = word.partition("=")
        if word == "--":
            return options, [*rest, word, *words]
        if TAKES_VALUE.get(word):
            value = next(words, None)
            if value is None:
                raise WrongUseError(f"'{word}' needs a value", where="command line", mend="`cyrene --help` shows it")
            options += [word, value]
        elif name in TAKES_VALUE:
            options.append(word)
        else:
            rest.append(word)
    return options, rest


def overrides_of(settings: Sequence[str]) -> dict[str, str]:
    """Read the values of `--set`.

    Raises:
        WrongUseError: one is not `table.key=value`.
    """
    overrides = {}
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not sign or "." not in key:
            raise WrongUseError(
                f"'{setting[:80]}' is no setting",
                where="command line, --set",
                mend="write --set table.key=value, such as --set danger.high=deny",
            )
        overrides[key.strip()] = value
    return overrides
