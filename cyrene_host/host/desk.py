"""What a host keeps of its calls, and the calls that outlive the one who asked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from cyrene_host.call.context import CallContext
from cyrene_host.call.gate import ArgumentsRefused, read_arguments
from cyrene_host.call.pipeline import Pipeline
from cyrene_host.call.secrecy import without_secrets
from cyrene_host.call.tool import CallableTool
from cyrene_host.catalog.accepted import Accepted
from cyrene_host.errors import CallFailedError
from cyrene_host.host.archive import Archive
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.registry import Registry
from cyrene_host.host.repeats import Repeats
from cyrene_host.record.execution import Execution
from cyrene_host.record.instances import HostKind
from cyrene_host.record.retention import forget_old
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import ToolResult

__all__ = ["Desk"]

FORGET_EVERY_S = 6 * 3600.0

_log = logging.getLogger("cyrene.executions")


class Desk:
    """Records, audit, executions, approvals and repeated calls of one host, put together.

    Args:
        inventory: says where they are kept.
        registry: the tools.
        kind: what this host claims to be on its state directory.
    """

    def __init__(self, inventory: Inventory, registry: Registry, *, kind: HostKind) -> None:
        self._registry = registry
        self._accepted = Accepted(inventory.state_dir)
        archive = Archive(
            inventory.settings,
            kind=kind,
            shown=self._shown,
            find=registry.find,
            accept=self._accept,
            changed=registry.changed,
        )
        self.records, self.audit, self.auditor = archive.records, archive.audit, archive.auditor
        self.executions, self.approvals = archive.executions, archive.approvals
        self._lookout = archive.lookout

    def serve(self, pipeline: Pipeline) -> None:
        """Run calls through this pipeline, which hands over to this desk what does not end at once."""
        self.executions.run = pipeline.call
        self._repeats = Repeats(self.records, self.executions, self.approvals, fitted=pipeline.fitted)

    def call_again(
        self, name: str, arguments: object, context: CallContext, run: Callable[[CallContext], Awaitable[ToolResult]]
    ) -> Awaitable[ToolResult]:
        """Run a call that may have been made before."""
        return self._repeats.call(name, arguments, context, run)

    def start_again(
        self, name: str, arguments: object, context: CallContext, deadline_s: float | None
    ) -> Awaitable[Execution]:
        """Begin an execution that may have been begun before."""
        return self._repeats.start(name, arguments, context, deadline_s)

    async def take_up(self) -> None:
        """See to what other hosts left: what is interrupted, and what waits for a person."""
        try:
            if self.records.store.exists():
                await self.records.ready()
                self._lookout.need()
        except CyreneError as error:
            _log.error("what earlier hosts left cannot be seen to: %s", error)

    async def forget(self) -> None:
        """Remove what is old, at once and then every few hours, for as long as the host is open."""
        while True:
            try:
                if self.records.store.exists():
                    await forget_old(self.records.store)
            except CyreneError as error:
                _log.error("old records are not removed: %s", error)
            await anyio.sleep(FORGET_EVERY_S)

    async def end_all(self) -> None:
        """End what runs, as interrupted."""
        await self._lookout.close()
        await self._repeats.close()
        await self.executions.close()

    async def close(self) -> None:
        """Finish writing; the audit's head is told to the log, to be kept elsewhere."""
        await self.records.close()
        head = self.audit.close()
        if head is not None:
            _log.info("the audit's head: %s", head)

    def _shown(self, name: str, arguments: object) -> tuple[str, str, Any]:
        try:
            tool = self._registry.find(name)
        except CallFailedError:
            return name[:200].encode("utf-8", "replace").decode(), "", None
        try:
            return tool.id, tool.provider.name, without_secrets(tool, read_arguments(arguments))
        except ArgumentsRefused:
            return tool.id, tool.provider.name, None

    def _accept(self, tool: CallableTool, by: str) -> None:
        before = self._accepted.read().get(tool.id)
        if before is not None and before.fingerprint == tool.fingerprint:
            return
        self._accepted.accept(tool.id, tool.definition, by=by)
        if self.auditor is not None:
            self.auditor.accepted(tool.id, tool.fingerprint, by)
        self._registry.rebuild()
