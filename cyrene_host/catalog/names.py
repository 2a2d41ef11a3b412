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
_UNCLAIMED: tuple[int, set[str]] = (6, set())
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
        self._tools: dict[str, NamedTool] = {}
        # By spelling: the rank of the strongest claim on it, and the ids of the tools that make this claim.
        self._claims: dict[str, tuple[int, set[str]]] = {}
        for tool in {tool.id: tool for tool in tools}.values():
            self.add(tool)

    def add(self, tool: NamedTool) -> None:
        """Add a tool whose id is not there yet."""
        self._tools[tool.id] = tool
        for rank, spelling in _claims(tool):
            strongest, ids = self._claims.get(spelling, _UNCLAIMED)
            if rank < strongest:
                self._claims[spelling] = (rank, {tool.id})
            elif rank == strongest:
                ids.add(tool.id)

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
        _, ids = self._claims.get(spelling, _UNCLAIMED)
        return next(iter(ids)) if len(ids) == 1 else None

    def meanings(self, spelling: str) -> list[str]:
        """Return the ids of all tools that a spelling could mean, sorted."""
        _, ids = self._claims.get(spelling, _UNCLAIMED)
        return sorted(ids)

    def near(self, spelling: str) -> list[str]:
        """Return the ids of up to three tools with a spelling that looks like this one."""
        found = difflib.get_close_matches(spelling, self._claims, n=6, cutoff=0.6)
        return list(dict.fromkeys(self.meanings(name)[0] for name in found))[:3]


def _claims(tool: NamedTool) -> Iterable[tuple[int, str]]:
    """The spellings of a tool, each with the rank of its claim: 0 is the strongest."""
    qualified = _qualified(tool)
    claims = (
        (0, tool.id),
        (1, _digested(qualified, tool.id)),
        (2, tool.alias),
        (3, qualified),
        (4, tool.name),
        (4, _offerable(tool.name)),
        (5, tool.definition_id),
    )
    return ((rank, spelling) for rank, spelling in claims if spelling)


def _qualified(tool: NamedTool) -> str:
    """`<plugin>__<tool>`, with a digest where another plugin's tool could be spelt so: none can rename it by coming."""
    name = f"{tool.plugin}__{tool.name}"
    is_told_apart = name.index("__") == len(tool.plugin)
    return _offerable(name) if is_told_apart else _digested(_ODD.sub("_", name), tool.id)


def _offerable(name: str) -> str:
    """Fit a name to every provider's rule; what is changed or cut gets a digest, so that two stay two."""
    plain = _ODD.sub("_", name)
    return name if plain == name and len(name) <= LONGEST else _digested(plain, name)


def _digested(plain: str, of: str) -> str:
    digest = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return f"{plain[: LONGEST - DIGEST_CHARS - 1]}_{digest}"
