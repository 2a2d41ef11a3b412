"""What operators and programs are told of plugins and tools: plain records with their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.state import CALLABLE_STATES, PluginState
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import DangerLevel, ToolDefinition

__all__ = ["PluginReport", "ToolReport", "error_object", "plugin_report"]


@dataclass(frozen=True, slots=True)
class PluginReport:
    """One plugin as it is now.

    `stage` is the last stage it came to; `error` says what went wrong there, `tool_errors` what is wrong with
    single tools. `switched` is what a person said over the entry's `enabled`: on, off, or nothing. `stage_ms` has
    the milliseconds that each stage took, `restarts` counts those of the last 5 minutes; `last_healthy` and
    `retry_at` (when a restarting plugin is tried again) are seconds since the epoch; `pid` is its worker's.
    """

    name: str
    state: PluginState
    version: str
    display_name: str
    description: str
    source: str
    runtime: str
    stage: str
    tools: tuple[str, ...]
    error: CyreneError | None = None
    tool_errors: tuple[CyreneError, ...] = ()
    notes: tuple[str, ...] = ()
    switched: bool | None = None
    stage_ms: Mapping[str, float] | None = None
    abandoned: int = 0
    last_healthy: float | None = None
    restarts: int = 0
    retry_at: float | None = None
    pid: int | None = None
    metadata_name: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong: a disabled or lazy plugin is well, a degraded one or one with a bad tool is not."""
        fine = self.state in (PluginState.DISABLED, PluginState.DISCOVERED, PluginState.STARTED, PluginState.STOPPED)
        return fine and self.error is None and not self.tool_errors

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "name": self.name,
            "state": self.state.value,
            "version": self.version,
            "displayName": self.display_name,
            "description": self.description,
            "source": self.source,
            "switched": self.switched,
            "runtime": self.runtime,
            "stage": self.stage,
            "tools": list(self.tools),
            "error": error_object(self.error),
            "tool_errors": [error_object(error) for error in self.tool_errors],
            "notes": list(self.notes),
            "stage_ms": {stage: round(ms, 1) for stage, ms in (self.stage_ms or {}).items()},
            "abandoned": self.abandoned,
            "last_healthy": self.last_healthy,
            "restarts": self.restarts,
            "retry_at": self.retry_at,
            "pid": self.pid,
            "metadata_name": self.metadata_name,
        }


@dataclass(frozen=True, slots=True)
class ToolReport:
    """One tool as it is offered: its id, the name that models see, the definition with the operator's settings.

    `is_offered` says whether a model would see it now; `error` why its definition cannot be
    used, `withheld` why the operator lets nobody call it.
    """

    id: str
    name: str
    plugin: str
    definition: ToolDefinition
    danger: DangerLevel
    decision: Literal["allow", "confirm", "deny"]
    is_offered: bool
    state: PluginState
    error: CyreneError | None = None
    withheld: CyreneError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object; `offered_as` is the name that models see."""
        return {
            "id": self.id,
            "offered_as": self.name,
            "plugin": self.plugin,
            "state": self.state.value,
            "offered": self.is_offered,
            "danger": self.danger.value,
            "decision": self.decision,
            "error": error_object(self.error),
            "withheld": error_object(self.withheld),
            "definition": self.definition.to_dict(),
        }


def error_object(error: CyreneError | None) -> dict[str, str | None] | None:
    """Return the four parts of an error as a JSON object."""
    if error is None:
        return None
    return {"what": error.what, "plugin": error.plugin, "where": error.where, "mend": error.mend}


def plugin_report(
    record: CatalogPlugin,
    *,
    state: PluginState | None = None,
    stage: str | None = None,
    error: CyreneError | None = None,
    tool_errors: tuple[CyreneError, ...] = (),
    **live: Any,
) -> PluginReport:
    """Make the report of a catalog's plugin, with what its life adds."""
    metadata = record.manifest.metadata if record.manifest else None
    now = state or record.state
    return PluginReport(
        name=record.name,
        state=now,
        version=metadata.version if metadata else "",
        display_name=metadata.display_name if metadata else "",
        description=metadata.description if metadata else "",
        source=record.source.where if record.source else record.entry.where if record.entry else "",
        runtime=record.entry.runtime if record.entry else "process",
        stage=stage or record.stage,
        tools=tuple(tool.id for tool in record.tools) if now in CALLABLE_STATES else (),
        error=error or record.error,
        tool_errors=tool_errors or tuple(tool.fault for tool in record.tools if tool.fault),
        notes=tuple(record.notes),
        switched=record.switched,
        metadata_name=metadata.name if metadata and metadata.name != record.name else "",
        **live,
    )
