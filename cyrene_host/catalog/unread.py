"""Tool definitions of a manifest that was checked before: each is read when it is first needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from cyrene_sdk.types import ToolDefinition

__all__ = ["Unread", "UnreadTools"]


@dataclass(frozen=True, slots=True)
class Unread:
    """A tool's definition as its manifest has it; names are made of `name` and `id`, which need no reading."""

    written: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.written.get("name") or ""

    @property
    def id(self) -> str:
        """The definition's id."""
        return self.written.get("id") or ""

    def read(self) -> ToolDefinition:
        """Return the definition, validated as any other."""
        return ToolDefinition.model_validate(self.written)


class UnreadTools(Sequence[ToolDefinition]):
    """The definitions of one manifest; whoever takes one reads it.

    Attributes:
        unread: the same, left unread.
    """

    def __init__(self, written: Iterable[Mapping[str, Any]]) -> None:
        self.unread = tuple(map(Unread, written))

    def __len__(self) -> int:
        return len(self.unread)

    @overload
    def __getitem__(self, index: int) -> ToolDefinition: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ToolDefinition]: ...
    def __getitem__(self, index: int | slice) -> ToolDefinition | Sequence[ToolDefinition]:
        found = self.unread[index]
        return found.read() if isinstance(found, Unread) else tuple(tool.read() for tool in found)
