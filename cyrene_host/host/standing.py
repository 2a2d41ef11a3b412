"""What the operator's settings make of a tool: how dangerous it counts, what that may do, whether it is on."""

from __future__ import annotations

from typing import NamedTuple

from cyrene_host.call.policy import Decision, effective_danger
from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.settings import DangerSettings
from cyrene_sdk.types import DangerLevel

__all__ = ["Standing", "standing_of"]


class Standing(NamedTuple):
    """The level that counts, the policy's word on it, and whether the entry leaves the tool on."""

    danger: DangerLevel
    decision: Decision
    is_enabled: bool


def standing_of(tool: CatalogTool, entry: PluginEntry | None, policy: DangerSettings) -> Standing:
    """Work out where a tool stands; `entry` is its plugin's, None for the embedding program's own tools."""
    override = tool.override
    danger = effective_danger(
        tool.definition.danger_level,
        override.danger_level if override else None,
        undeclared=DangerLevel(policy.undeclared),
        trusted=entry is not None and entry.trust == "full",
    )
    is_enabled = override is None or override.enabled is not False
    return Standing(danger, getattr(policy, danger.value), is_enabled)
