"""What the database forgets, and when."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cyrene_host.record.store import Store

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Table

__all__ = ["Forgotten", "forget_old"]

EXECUTIONS_S = 30 * 86_400
NOTIFICATIONS_S = 30 * 86_400
IDEMPOTENCY_S = 86_400
MOST_AT_ONCE = 500


class Forgotten(NamedTuple):
    """How many rows of each kind were removed."""

    executions: int
    approvals: int
    notifications: int
    idempotency_keys: int


async def forget_old(store: Store, *, clock: Callable[[], float] = time.time) -> Forgotten:
    """Remove what has ended and is old: nothing that waits, is queued or runs, and no message that is not delivered.

    Executions go 30 days after their end, with their events and approvals; approvals without an execution that are
    pending no more 30 days after they were asked for; messages 30 days after delivery; idempotency keys after 24
    hours. At most 500 rows at a time, so that other writes get in between.

    Raises:
        StoreError: the database cannot be used; what was removed until then stays removed.
    """
    now = clock()

    async def repeated(remove: Callable[[Connection, float], int], age_s: float) -> int:
        total = 0
        while True:
            removed = await store.write(lambda connection: remove(connection, now - age_s))
            total += removed
            if removed < MOST_AT_ONCE:
                return total

    return Forgotten(
        executions=await repeated(_executions, EXECUTIONS_S),
        approvals=await repeated(_approvals, EXECUTIONS_S),
        notifications=await repeated(_notifications, NOTIFICATIONS_S),
        idempotency_keys=await repeated(_idempotency, IDEMPOTENCY_S),
    )


def _executions(connection: Connection, before: float) -> int:
    from cyrene_host.record.tables import approvals, execution_events, executions

    ended = executions.c.state.in_(("completed", "failed", "cancelled", "interrupted"))
    old = executions.select().with_only_columns(executions.c.id).where(ended, executions.c.ended_at < before)
    ids = [*connection.execute(old.limit(MOST_AT_ONCE)).scalars()]
    connection.execute(execution_events.delete().where(execution_events.c.execution_id.in_(ids)))
    connection.execute(approvals.delete().where(approvals.c.execution_id.in_(ids)))
    return connection.execute(executions.delete().where(executions.c.id.in_(ids))).rowcount


def _approvals(connection: Connection, before: float) -> int:
    from cyrene_host.record.tables import approvals, executions

    of_an_execution = executions.select().where(executions.c.id == approvals.c.execution_id).exists()
    is_over = approvals.c.state != "pending"
    return _remove_some(connection, approvals, is_over, approvals.c.created_at < before, ~of_an_execution)


def _notifications(connection: Connection, before: float) -> int:
    from cyrene_host.record.tables import notifications

    return _remove_some(connection, notifications, notifications.c.delivered_at < before)


def _idempotency(connection: Connection, before: float) -> int:
    from cyrene_host.record.tables import idempotency

    return _remove_some(connection, idempotency, idempotency.c.created_at < before)


def _remove_some(connection: Connection, table: Table, *old: ColumnElement[bool]) -> int:
    """Remove rows that are old; neither database has a DELETE with a LIMIT that the other has too."""
    keys = [*table.primary_key]
    rows = connection.execute(table.select().with_only_columns(*keys).where(*old).limit(MOST_AT_ONCE)).all()
    for row in rows:
        same = [column == value for column, value in zip(keys, row, strict=True)]
        connection.execute(table.delete().where(*same))
    return len(rows)
