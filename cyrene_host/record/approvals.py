"""Calls that wait for a person's word, as they are kept: each is decided once, and used once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

from cyrene_host.record.approval import Approval, ApprovalState
from cyrene_host.record.store import Store

__all__ = ["ApprovalRecords"]


class ApprovalRecords:
    """The approvals of one state directory in the database.

    Args:
        host: tells the state directory's id, in a thread.
    """

    def __init__(self, store: Store, *, host: Callable[[], str]) -> None:
        self._store = store
        self._host = host

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

    async def decide(
        self, approval_id: str, state: ApprovalState, *, at: float, by: str | None, reason: str | None = None
    ) -> bool:
        """Decide one that is pending; of all who try, one is told True."""
        return await self._store.write(
            lambda connection: _rows().decide(connection, approval_id, state, at, by, reason)
        )

    async def use(self, approval_id: str, *, at: float) -> bool:
        """Use an approved one up; of all who try, one is told True."""
        return await self._store.write(lambda connection: _rows().use(connection, approval_id, at))

    async def open(self) -> Sequence[Approval]:
        """Return those that are pending, and those that were approved and not run yet."""
        return await self._store.read(lambda connection: _rows().still_open(connection, self._host()))


def _rows() -> ModuleType:
    """The statements; with SQLAlchemy, so that only a thread of the store imports them."""
    from cyrene_host.record import approval_rows

    return approval_rows
