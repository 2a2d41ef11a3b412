"""The spellings of tools: the names that are offered, and the one resolver that reads them back."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["NameMode", "NamedTool", "ToolNames"]

NameMode = Literal["short", "qualified"]

LONGEST = 64
DIGEST_CHARS = 6
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class NamedTool:
    """What names are made of: the entry's name, the tool's name, its definition's id, the operator's alias."""

    plugin: str
    name: str
    definition_id: str = ""
    alias: str = ""

    @property
    def id(self) -> str:
        """`<entry name>.<tool name>`: what programs, policy and audit know."""
        return f"{self.plugin}.{self.name}"


class ToolNames:
    """Offers each tool under one name and reads every spelling back.

    Offered to models: the operator's alias, else the short name while it is unique, else
    `<plugin>__<tool>`; within 64 characters of `[a-zA-Z0-9_-]`, always the same way. Ids are always read,
    and so is any other spelling while it means one tool.
    """

    def __init__(self, tools: Iterable[NamedTool]) -> None:
        self._tools = {tool.id: tool for tool in tools}
        self._meanings: dict[str, set[str]] = {}
        for tool in self._tools.values():
            for spelling in (tool.name, _offerable(tool.name), tool.definition_id, tool.alias, _qualified(tool)):
                if spelling:
                    self._meanings.setdefault(spelling, set()).add(tool.id)

    def offered(self, tool_id: str, mode: NameMode = "short") -> str:
        """Return the name that models see for a tool id."""
        tool = self._tools[tool_id]
        if tool.alias and self._meanings[tool.alias] == {tool_id}:
            return tool.alias
        short = _offerable(tool.name)
        if mode == "short" and self._meanings[short] == {tool_id}:
            return short
        return _qualified(tool)

    def resolve(self, spelling: str) -> str | None:
        """Return the tool id that a spelling means; None where it means no tool or several."""
        if spelling in self._tools:
            return spelling
        meanings = self._meanings.get(spelling, ())
        return next(iter(meanings)) if len(meanings) == 1 else None

    def meanings(self, spelling: str) -> list[str]:
        """Return the ids of all tools that a spelling could mean, sorted."""
        return sorted(self._meanings.get(spelling, ()))

    def near(self, spelling: str) -> list[str]:
        """Return up to three known spellings that look like this one."""
        found = difflib.get_close_matches(spelling, [*self._tools, *self._meanings], n=6, cutoff=0.6)
        ids: Mapping[str, None] = dict.fromkeys(
            name if name in self._tools else sorted(self._meanings[name])[0] for name in found
        )
        return list(ids)[:3]


def _qualified(tool: NamedTool) -> str:
    return _offerable(f"{tool.plugin}__{tool.name}")


def _offerable(name: str) -> str:
    """Fit a name to every provider's rule; what is changed or cut gets a digest, so that two stay two."""
    plain = _ODD.sub("_", name)
    if plain == name and len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST_CHARS]
    return f"{plain[: LONGEST - DIGEST_CHARS - 1]}_{digest}"
