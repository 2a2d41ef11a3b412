"""What a state directory keeps of calls, without the plugins: to read it, to cancel, and to refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from cyrene_host.call.tool import CallableTool
from cyrene_host.catalog.accepted import ChangedDefinition
from cyrene_host.catalog.settings import Settings
from cyrene_host.errors import HostStateError
from cyrene_host.host.approvals import Approvals
from cyrene_host.host.auditing import Auditor
from cyrene_host.host.ends import interrupted
from cyrene_host.host.executions import Executions
from cyrene_host.host.lookout import Lookout
from cyrene_host.host.records import Records
from cyrene_host.record.audit import Audit
from cyrene_host.record.execution import Execution
from cyrene_host.record.instances import HostKind
from cyrene_sdk.types import ToolResult

__all__ = ["Archive"]


def _as_kept(tool_id: str, arguments: object) -> tuple[str, str, Any]:
    return tool_id, "", arguments


def _no_tool(name: str) -> CallableTool:
    raise HostStateError(
        f"no plugins are read here, so '{name[:80]}' cannot be run", where="Archive", mend="open a Host"
    )


def _accept_none(tool: CallableTool, by: str) -> None:
    del by
    _no_tool(tool.id)


class Archive:
    """Records, audit, executions and approvals of one state directory, put together.

    A host's desk is made of one. By itself it needs no plugins.json: `async with Archive(settings) as archive:` lists,
    follows and cancels executions and refuses approvals, and runs nothing.

    Args:
        settings: say where they are kept.
        kind: what this host claims to be on its state directory, once it runs something.
        shown: makes of a tool's name and arguments what is kept of them.
        find, accept, changed: as for `Approvals`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        kind: HostKind = "command",
        shown: Callable[[str, object], tuple[str, str, Any]] = _as_kept,
        find: Callable[[str], CallableTool] = _no_tool,
        accept: Callable[[CallableTool, str], None] = _accept_none,
        changed: Callable[[], Sequence[ChangedDefinition]] = list,
    ) -> None:
        state_dir = settings.state_folder()
        self.lookout = Lookout()
        self.records = Records(state_dir, settings.host.store_url, kind=kind, interrupted=self._interrupted)
        self.audit = Audit(state_dir / "audit", instance=self.records.instance)
        self.auditor = Auditor(self.audit) if settings.host.audit else None
        self.executions = Executions(self.records, self.lookout, shown=shown)
        self.approvals = Approvals(
            self.records,
            self.executions,
            self.lookout,
            find=find,
            accept=accept,
            changed=changed,
            decided=self.auditor.decided if self.auditor is not None else lambda *_: None,
        )

    async def __aenter__(self) -> Self:
        if self.records.store.exists():
            await self.approvals.expire()
            self.lookout.need()  # what is followed may expire meanwhile
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.lookout.close()
        await self.records.close()
        self.audit.close()

    def _interrupted(self, execution: Execution) -> ToolResult:
        if self.auditor is not None:
            self.auditor.interrupted(execution)
        return interrupted(execution)
