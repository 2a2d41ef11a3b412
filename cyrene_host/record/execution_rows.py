"""The statements behind `ExecutionRecords`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, exists, func, or_, select, update

from cyrene_host.record.approval_rows import is_open, void_all
from cyrene_host.record.execution import ENDED, Execution, ExecutionEvent
from cyrene_host.record.tables import approvals, execution_events, executions, put
from cyrene_sdk.types import ToolResult

__all__ = ["ask_to_cancel", "asked_to_cancel", "events", "get", "ids", "last_event", "newest", "under_way", "write"]

_COLUMNS = [name for name in Execution._fields if name != "result"]


def write(
    connection: Connection, execution: Execution, events: Sequence[ExecutionEvent], owner: Mapping[str, str]
) -> None:
    """Keep an execution and its new events; nobody can approve any more what has ended."""
    row = {name: getattr(execution, name) for name in _COLUMNS}
    put(connection, executions, {**row, **owner, "result": _told(execution.result)})
    if execution.is_ended:
        void_all(connection, execution.id, execution.ended_at or 0.0)
    for event in events:
        put(
            connection,
            execution_events,
            {
                "execution_id": execution.id,
                "seq": event.seq,
                "at": event.at,
                "kind": "end" if event.is_last else "progress" if event.state == "running" else "state",
                "status": event.state,
                "progress": event.progress,
                "message": event.message,
                "body": _told(event.result),
            },
        )


def get(connection: Connection, host: str, execution_id: str) -> Execution | None:
    """Return one."""
    query = select(executions).where(executions.c.id == execution_id, executions.c.host == host)
    row = connection.execute(query).mappings().first()
    return None if row is None else _execution(row)


def newest(
    connection: Connection, host: str, principal: str | None, states: Sequence[str], limit: int
) -> list[Execution]:
    """Return the newest of a principal, or of all."""
    query = select(executions).where(executions.c.host == host)
    if principal is not None:
        query = query.where(executions.c.principal == principal)
    if states:
        query = query.where(executions.c.state.in_(states))
    query = query.order_by(executions.c.created_at.desc(), executions.c.id).limit(limit)
    return [_execution(row) for row in connection.execute(query).mappings()]


def ids(connection: Connection, host: str, limit: int) -> list[str]:
    """Return the ids of the newest."""
    query = select(executions.c.id).where(executions.c.host == host).order_by(executions.c.created_at.desc())
    return list(connection.execute(query.limit(limit)).scalars())


def under_way(connection: Connection, host: str, *, is_locked: bool) -> list[tuple[Execution, dict[str, str]]]:
    """Return what a host has in hand, and which host that is: all but what has ended, or waits to be decided."""
    is_decidable = exists().where(approvals.c.id == executions.c.approval_id, is_open())
    is_in_hand = or_(
        executions.c.state.in_(("queued", "running")), and_(executions.c.state == "waiting", ~is_decidable)
    )
    query = select(executions).where(executions.c.host == host, is_in_hand)
    rows = connection.execute(query.with_for_update() if is_locked else query).mappings().all()
    return [(_execution(row), {"host": row["host"], "instance": row["instance"]}) for row in rows]


def events(connection: Connection, execution_id: str, after: int, limit: int) -> list[ExecutionEvent]:
    """Return the events after a number, in order."""
    table = execution_events
    query = select(table).where(table.c.execution_id == execution_id, table.c.seq > after)
    rows = connection.execute(query.order_by(table.c.seq).limit(limit)).mappings()
    return [
        ExecutionEvent(
            row["seq"], row["at"], row["status"], row["progress"], row["message"] or "", _result(row["body"])
        )
        for row in rows
    ]


def last_event(connection: Connection, execution_id: str) -> int:
    """Return the newest event's number, or 0."""
    query = select(func.max(execution_events.c.seq)).where(execution_events.c.execution_id == execution_id)
    return connection.execute(query).scalar() or 0


def ask_to_cancel(connection: Connection, execution_id: str) -> None:
    """Leave word."""
    connection.execute(update(executions).where(executions.c.id == execution_id).values(cancel_requested=True))


def asked_to_cancel(connection: Connection, instance: str) -> list[str]:
    """Return those of a host for which word was left."""
    query = select(executions.c.id).where(
        executions.c.instance == instance, executions.c.state.not_in(sorted(ENDED)), executions.c.cancel_requested
    )
    return list(connection.execute(query).scalars())


def _execution(row: RowMapping) -> Execution:
    return Execution(**{name: row[name] for name in _COLUMNS}, result=_result(row["result"]))


def _result(told: Any) -> ToolResult | None:
    return None if told is None else ToolResult.from_json(told)


def _told(result: ToolResult | None) -> dict[str, Any] | None:
    return result.to_dict() if result is not None else None
