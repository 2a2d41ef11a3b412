"""Executions as they are kept: a row each, and the events of its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from cyrene_host.record.execution import Execution, ExecutionEvent
from cyrene_host.record.store import Store
from cyrene_sdk.types import ToolResult

__all__ = ["ExecutionRecords"]


class ExecutionRecords:
    """The executions of one state directory in the database.

    Args:
        host: tells the state directory's id, in a thread: other hosts may share the database.
        instance: this host's own id among those on the state directory.
        is_alive: whether a host with this id still runs.
    """

    def __init__(
        self, store: Store, *, host: Callable[[], str], instance: str, is_alive: Callable[[str], bool]
    ) -> None:
        self._store = store
        self._host = host
        self._instance = instance
        self._is_alive = is_alive

    async def write(self, execution: Execution, events: Sequence[ExecutionEvent]) -> None:
        """Keep an execution as it is now, as this host's, with what happened to it since the last time."""

        def work(connection: Any) -> None:
            owner = {"host": self._host(), "instance": self._instance}
            _rows().write(connection, execution, events, owner)

        await self._store.write(work)

    async def get(self, execution_id: str) -> Execution | None:
        """Return one."""
        return await self._store.read(lambda connection: _rows().get(connection, self._host(), execution_id))

    async def list(
        self, *, principal: str | None = None, states: Sequence[str] = (), limit: int = 100
    ) -> Sequence[Execution]:
        """Return the newest, newest first."""
        return await self._store.read(
            lambda connection: _rows().newest(connection, self._host(), principal, states, limit)
        )

    async def ids(self, *, limit: int) -> Sequence[str]:
        """Return the ids of the newest, newest first."""
        return await self._store.read(lambda connection: _rows().ids(connection, self._host(), limit))

    async def events(self, execution_id: str, after: int, limit: int = 1000) -> Sequence[ExecutionEvent]:
        """Return what happened after the event with the number `after`, in order."""
        return await self._store.read(lambda connection: _rows().events(connection, execution_id, after, limit))

    async def last_event(self, execution_id: str) -> int:
        """Return the number of the newest event; 0 where there is none."""
        return await self._store.read(lambda connection: _rows().last_event(connection, execution_id))

    async def ask_to_cancel(self, execution_id: str) -> None:
        """Leave word for the host that runs it."""
        await self._store.write(lambda connection: _rows().ask_to_cancel(connection, execution_id))

    async def asked_to_cancel(self) -> Sequence[str]:
        """Return which of this host's executions somebody wants to be cancelled."""
        return await self._store.read(lambda connection: _rows().asked_to_cancel(connection, self._instance))

    async def recover(self, interrupted: Callable[[Execution], ToolResult]) -> Sequence[Execution]:
        """Mark what hosts that are dead had in hand as interrupted, and return it.

        Args:
            interrupted: makes the result of one.
        """
        if not await self._store.read(self._orphans):  # nearly always: a reader disturbs no writer
            return []
        return await self._store.write(lambda connection: self._recover(connection, interrupted))

    def _orphans(self, connection: Any, *, is_locked: bool = False) -> Sequence[tuple[Execution, dict[str, str]]]:
        return [
            (execution, owner)
            for execution, owner in _rows().under_way(connection, self._host(), is_locked=is_locked)
            if owner["instance"] != self._instance and not self._is_alive(owner["instance"])
        ]

    def _recover(self, connection: Any, interrupted: Callable[[Execution], ToolResult]) -> Sequence[Execution]:
        rows, ended = _rows(), []
        for execution, owner in self._orphans(connection, is_locked=True):
            now, result = time.time(), interrupted(execution)
            last = execution._replace(state="interrupted", ended_at=now, result=result)
            seq = rows.last_event(connection, execution.id) + 1
            event = ExecutionEvent(seq, now, "interrupted", execution.progress, execution.message, result)
            rows.write(connection, last, [event], owner)
            ended.append(last)
        return ended


def _rows() -> ModuleType:
    """The statements; with SQLAlchemy, so that only a thread of the store imports them."""
    from cyrene_host.record import execution_rows

    return execution_rows
