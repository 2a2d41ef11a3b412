"""A tool as the pipeline calls it: everything that is fixed between two loads, worked out once."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from cyrene_host.call.policy import Decision
from cyrene_host.catalog.accepted import fingerprint_of
from cyrene_sdk._worker.faults import Fault
from cyrene_sdk._worker.outcomes import Fields
from cyrene_sdk._worker.progress import Watch
from cyrene_sdk.context import CurrentCall
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import DangerLevel, ToolDefinition

if TYPE_CHECKING:
    from cyrene_host.call.admission import Admission
    from cyrene_host.catalog.schemas import CompiledSchema
    from cyrene_host.catalog.secrets import Redactor

__all__ = ["CallableTool", "Provider", "ToolRuntime"]


class ToolRuntime(Protocol):
    """Where the tool's code runs. Both methods contain whatever the code does."""

    def call(
        self,
        name: str,
        arguments: dict[str, Any],
        call: CurrentCall,
        limit_s: float,
        validate: bool = True,
        watch: Watch | None = None,
    ) -> Coroutine[Any, Any, Fields | Fault]:
        """Run one attempt, at most `limit_s` seconds; `watch` follows that of a ComplexTool.

        When the caller is cancelled, so is the attempt; a ComplexTool is told by its own `cancel` too.
        """
        ...

    async def validate(self, name: str, arguments: dict[str, Any], call: CurrentCall, limit_s: float) -> Fault | None:
        """Run the tool's own `validate` alone."""
        ...


class Provider(Protocol):
    """The plugin behind a tool."""

    @property
    def name(self) -> str:
        """The entry's name."""
        ...

    @property
    def runtime(self) -> ToolRuntime | None:
        """Where its code runs; None until it was started, and after it stopped."""
        ...

    @property
    def admission(self) -> Admission:
        """The plugin's places for calls."""
        ...

    async def ready(self) -> ToolRuntime:
        """Return the runtime of the started plugin; start it first if it waits for a call.

        Raises:
            CallFailedError: `plugin_unavailable`, with the state and its cause.
        """
        ...

    @property
    def redactor(self) -> Redactor | None:
        """Takes the plugin's secrets out of texts; None where it has none."""
        ...


@dataclass(frozen=True)
class CallableTool:
    """One tool with its checked schemas, limits and policy.

    `schema` is None where the definition cannot be used; `fault` then says why. `withheld` says why the operator
    lets nobody call it, if so. `policy` is the operator's word on each danger; `idle_s` is of a tool that runs long:
    how many seconds it may work without a report.
    """

    id: str
    name: str
    provider: Provider
    definition: ToolDefinition
    schema: CompiledSchema | None
    returns: CompiledSchema | None
    danger: DangerLevel
    decision: Decision
    limit_s: float
    policy: Mapping[DangerLevel, Decision] = field(default_factory=dict)
    idle_s: float | None = None
    fault: CyreneError | None = None
    secret_arguments: frozenset[str] = frozenset()
    withheld: CyreneError | None = None

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the definition; worked out when it is first asked for: 30 µs."""
        return fingerprint_of(self.definition)
