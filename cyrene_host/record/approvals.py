"""Calls that wait for a person's word, as they are kept: each is decided once, and used once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal

from cyrene_host.record.approval import Approval, ApprovalState, digest
from cyrene_host.record.store import Store

__all__ = ["ApprovalRecords"]


class ApprovalRecords:
    """The approvals of one state directory in the database.

    Args:
        host: tells the state directory's id, in a thread.
        instance: this host's own id among those on the state directory: whoever decides against a call, or uses its
            approval up, has the execution in hand from that moment on.
    """

    def __init__(self, store: Store, *, host: Callable[[], str], instance: str) -> None:
        self._store = store
        self._host = host
        self._instance = instance

    async def add(self, approval: Approval) -> None:
        """Keep a new one."""
        await self._store.write(lambda connection: _rows().add(connection, approval))

    async def get(self, approval_id: str) -> Approval | None:
        """Return one.

        Raises:
            ValueError: the kept arguments are not those that a person was to be asked about.
        """
        return await self._store.read(lambda connection: _rows().get(connection, self._host(), approval_id))

    async def list(self, *, states: Sequence[ApprovalState] = ("pending",), limit: int = 100) -> Sequence[Approval]:
        """Return the newest, newest first."""
        return await self._store.read(lambda connection: _rows().newest(connection, self._host(), states, limit))

    async def ids(self, *, limit: int) -> Sequence[str]:
        """Return the ids of the newest, newest first."""
        return await self._store.read(lambda connection: _rows().ids(connection, self._host(), limit))

    async def approve(self, approval_id: str, *, at: float, by: str) -> bool:
        """Approve one that is pending; of all who decide, one is told True."""
        return await self._store.write(
            lambda connection: _rows().decide(connection, approval_id, "approved", at, by, None)
        )

    async def refuse(
        self,
        approval_id: str,
        state: Literal["denied", "expired"],
        *,
        at: float,
        by: str | None,
        reason: str | None = None,
        is_void: bool = False,
    ) -> bool:
        """Decide against one that is pending; of all who decide, one is told True.

        Args:
            is_void: also where it is approved, as long as it was not used.
        """

        def work(connection: Any) -> bool:
            decide = _rows().void if is_void else _rows().decide
            return self._taken(connection, approval_id, decide(connection, approval_id, state, at, by, reason))

        return await self._store.write(work)

    async def use(self, approval: Approval, *, at: float) -> bool:
        """Use an approved one up, to run it with its arguments; of all who try, one is told True."""

        def work(connection: Any) -> bool:
            is_mine = _rows().use(connection, approval.id, digest(approval.arguments), at)
            return self._taken(connection, approval.id, is_mine)

        return await self._store.write(work)

    async def open(self) -> Sequence[Approval]:
        """Return those that are pending, and those that were approved and not run yet."""
        return await self._store.read(lambda connection: _rows().still_open(connection, self._host()))

    def _taken(self, connection: Any, approval_id: str, is_mine: bool) -> bool:
        if is_mine:
            _rows().own(connection, approval_id, self._instance)
        return is_mine


def _rows() -> ModuleType:
    """The statements; with SQLAlchemy, so that only a thread of the store imports them."""
    from cyrene_host.record import approval_rows

    return approval_rows
