"""The spellings of tools: the names that are offered, and the one resolver that reads them back."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable
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
    `<plugin>__<tool>`; within 64 characters of `[a-zA-Z0-9_-]`, always the same way. A spelling that several
    tools have means the one that has it by the strongest claim: its id, a name with a digest, the operator's
    alias, a qualified name, a short name, the definition's id. So no tool can take another's place by its name.
    """

    def __init__(self, tools: Iterable[NamedTool]) -> None:
        self._tools = {tool.id: tool for tool in tools}
        self._meanings: dict[str, dict[int, set[str]]] = {}
        for tool in self._tools.values():
            for claim, spellings in enumerate(_claims(tool)):
                for spelling in spellings:
                    self._meanings.setdefault(spelling, {}).setdefault(claim, set()).add(tool.id)

    def offered(self, tool_id: str, mode: NameMode = "short") -> str:
        """Return the name that models see for a tool id."""
        tool = self._tools[tool_id]
        short = [_offerable(tool.name)] if mode == "short" else []
        for name in (tool.alias, *short, _qualified(tool)):
            if name and self.resolve(name) == tool_id:
                return name
        return _digested(_qualified(tool), tool_id)

    def resolve(self, spelling: str) -> str | None:
        """Return the tool id that a spelling means; None where it means no tool or several."""
        meanings = self.meanings(spelling)
        return meanings[0] if len(meanings) == 1 else None

    def meanings(self, spelling: str) -> list[str]:
        """Return the ids of all tools that a spelling could mean, sorted."""
        claims = self._meanings.get(spelling)
        return sorted(claims[min(claims)]) if claims else []

    def near(self, spelling: str) -> list[str]:
        """Return the ids of up to three tools with a spelling that looks like this one."""
        found = difflib.get_close_matches(spelling, self._meanings, n=6, cutoff=0.6)
        return list(dict.fromkeys(self.meanings(name)[0] for name in found))[:3]


def _claims(tool: NamedTool) -> Iterable[tuple[str, ...]]:
    """The spellings of a tool, the strongest claim first; an empty one is none."""
    qualified = _qualified(tool)
    claims = (
        (tool.id,),
        (_digested(qualified, tool.id),),
        (tool.alias,),
        (qualified,),
        (tool.name, _offerable(tool.name)),
        (tool.definition_id,),
    )
    return (tuple(filter(None, spellings)) for spellings in claims)


def _qualified(tool: NamedTool) -> str:
    return _offerable(f"{tool.plugin}__{tool.name}")


def _offerable(name: str) -> str:
    """Fit a name to every provider's rule; what is changed or cut gets a digest, so that two stay two."""
    plain = _ODD.sub("_", name)
    return name if plain == name and len(name) <= LONGEST else _digested(plain, name)


def _digested(plain: str, of: str) -> str:
    digest = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return f"{plain[: LONGEST - DIGEST_CHARS - 1]}_{digest}"
