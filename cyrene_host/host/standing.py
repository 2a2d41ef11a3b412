"""What the operator's settings make of a tool: how dangerous it counts, what that may do, whether it may be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from cyrene_host.call.policy import Decision, effective_danger
from cyrene_host.catalog.accepted import Acceptance, fingerprint_of
from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.settings import Settings
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import DangerLevel

__all__ = ["Standing", "Withheld", "policy_of", "standing_of"]


class Withheld(CyreneError):
    """Why a tool is withheld: its entry switches it off, `[tools]` leaves it out, or it is not what was accepted."""

    def __init__(
        self, cause: Literal["switched_off", "not_allowed", "definition_changed"], what: str, *, where: str, mend: str
    ) -> None:
        super().__init__(what, where=where, mend=mend)
        self.cause = cause


class Standing(NamedTuple):
    """The level that counts, the policy's word on it, and why the tool is withheld, if it is."""

    danger: DangerLevel
    decision: Decision
    withheld: Withheld | None


def policy_of(settings: Settings) -> Mapping[DangerLevel, Decision]:
    """Return the operator's word on each danger."""
    return {level: getattr(settings.danger, level.value) for level in DangerLevel}


def standing_of(
    tool: CatalogTool, entry: PluginEntry | None, settings: Settings, accepted: Mapping[str, Acceptance]
) -> Standing:
    """Work out where a tool stands.

    Args:
        entry: its plugin's; None for the embedding program's own tools.
        accepted: the definitions that somebody accepted, by tool id.
    """
    override = tool.override
    danger = effective_danger(
        tool.definition.danger_level,
        override.danger_level if override else None,
        undeclared=DangerLevel(settings.danger.undeclared),
        trusted=entry is not None and entry.trust == "full",
    )
    return Standing(danger, getattr(settings.danger, danger.value), _withheld(tool, settings, accepted.get(tool.id)))


def _withheld(tool: CatalogTool, settings: Settings, accepted: Acceptance | None) -> Withheld | None:
    name = tool.definition.name
    if tool.override is not None and tool.override.enabled is False:
        return Withheld(
            "switched_off",
            f"the operator has switched the tool '{name}' off",
            where=f"tool '{tool.id}', its entry's tools.{name}.enabled",
            mend="ask the operator, or set it to true in plugins.json",
        )
    if _matches(tool.id, settings.tools.deny) or not _matches(tool.id, settings.tools.allow):
        return Withheld(
            "not_allowed",
            f"the operator's list of allowed tools leaves '{tool.id}' out",
            where=f"tool '{tool.id}', cyrene.toml [tools] allow and deny",
            mend="ask the operator, or change the two lists in cyrene.toml",
        )
    if accepted is not None and accepted.fingerprint != fingerprint_of(tool.definition):
        at = datetime.fromtimestamp(accepted.accepted_at).astimezone().isoformat(" ", "minutes")
        return Withheld(
            "definition_changed",
            f"the definition of '{tool.id}' has changed since '{accepted.accepted_by}' accepted it at {at}",
            where=f"tool '{tool.id}', accepted.json in the state directory",
            mend=f"look at what changed (`cyrene approvals list`), then `cyrene approvals approve {tool.id}`",
        )
    return None


def _matches(tool_id: str, patterns: Sequence[str]) -> bool:
    return "*" in patterns or any(fnmatchcase(tool_id, pattern) for pattern in patterns)
