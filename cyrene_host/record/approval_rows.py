"""The statements behind `ApprovalRecords`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Text, and_, cast, func, or_, select, update

from cyrene_host.record.approval import Approval, ApprovalState, digest
from cyrene_host.record.tables import approvals, executions

__all__ = ["add", "decide", "get", "ids", "is_open", "newest", "own", "still_open", "use", "void", "void_all"]

_MOST = 1000
_COLUMNS = list(Approval._fields)
_SHOWN = select(executions.c.arguments).where(executions.c.id == approvals.c.execution_id).scalar_subquery()
_WITHOUT_SECRETS: dict[str, Any] = {"arguments": func.coalesce(cast(_SHOWN, Text), approvals.c.arguments)}
"""What needs its arguments no more is kept with those that its execution shows."""


def add(connection: Connection, approval: Approval) -> None:
    """Keep a new one."""
    row = {name: getattr(approval, name) for name in _COLUMNS}
    connection.execute(approvals.insert().values(**row, kind="call"))


def get(connection: Connection, host: str, approval_id: str) -> Approval | None:
    """Return one.

    Raises:
        ValueError: it is open, and its arguments do not have their digest.
    """
    query = _of(host).add_columns(is_open().label("is_open")).where(approvals.c.id == approval_id)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    if row["is_open"] and digest(row["arguments"]) != row["arguments_sha256"]:
        raise ValueError("its arguments were changed in the database")
    return _approval(row)


def newest(connection: Connection, host: str, states: Sequence[ApprovalState], limit: int) -> list[Approval]:
    """Return the newest in some states."""
    query = _of(host).where(approvals.c.state.in_(states)).order_by(approvals.c.created_at.desc())
    return [_approval(row) for row in connection.execute(query.limit(limit)).mappings()]


def ids(connection: Connection, host: str, limit: int) -> list[str]:
    """Return the ids of the newest."""
    query = _of(host).with_only_columns(approvals.c.id).order_by(approvals.c.created_at.desc())
    return list(connection.execute(query.limit(limit)).scalars())


def decide(
    connection: Connection, approval_id: str, state: ApprovalState, at: float, by: str | None, reason: str | None
) -> bool:
    """Decide one, if it is pending."""
    change = {"state": state, "decided_at": at, "decided_by": by, "reason": reason}
    change |= {} if state == "approved" else _WITHOUT_SECRETS
    return _change(connection, approvals.c.id == approval_id, approvals.c.state == "pending", **change) == 1


def void(
    connection: Connection, approval_id: str, state: ApprovalState, at: float, by: str | None, reason: str | None
) -> bool:
    """Decide one against its call, though it may be approved already, if it was not used."""
    change = {"state": state, "decided_at": at, "decided_by": by, "reason": reason, **_WITHOUT_SECRETS}
    return _change(connection, approvals.c.id == approval_id, is_open(), **change) == 1


def void_all(connection: Connection, execution_id: str, at: float) -> None:
    """Decide against the call of an execution that has ended."""
    change = {"state": "denied", "decided_at": at, "reason": "its execution has ended", **_WITHOUT_SECRETS}
    _change(connection, approvals.c.execution_id == execution_id, is_open(), **change)


def use(connection: Connection, approval_id: str, arguments_sha256: str, at: float) -> bool:
    """Use one up, if it is approved and was not used, and is of these arguments."""
    is_this = and_(approvals.c.id == approval_id, approvals.c.arguments_sha256 == arguments_sha256)
    return _change(connection, is_this, _to_be_run(), used_at=at, **_WITHOUT_SECRETS) == 1


def own(connection: Connection, approval_id: str, instance: str) -> None:
    """Let the execution of one be another host's, which goes on with it."""
    of_it = select(approvals.c.execution_id).where(approvals.c.id == approval_id).scalar_subquery()
    connection.execute(update(executions).where(executions.c.id == of_it).values(instance=instance))


def still_open(connection: Connection, host: str) -> list[Approval]:
    """Return those that somebody has to see to."""
    query = _of(host).where(is_open()).limit(_MOST)
    return [_approval(row) for row in connection.execute(query).mappings()]


def is_open() -> ColumnElement[bool]:
    """Of which approvals somebody has to see to something: pending, or approved and not used."""
    return or_(approvals.c.state == "pending", _to_be_run())


def _change(connection: Connection, *which: ColumnElement[bool], **change: Any) -> int:
    return connection.execute(update(approvals).where(*which).values(**change)).rowcount


def _of(host: str) -> Select[Any]:
    of_host = executions.c.host == host
    return select(approvals).join(executions, executions.c.id == approvals.c.execution_id).where(of_host)


def _to_be_run() -> ColumnElement[bool]:
    return and_(approvals.c.state == "approved", approvals.c.used_at.is_(None))


def _approval(row: RowMapping) -> Approval:
    return Approval(**{name: row[name] for name in _COLUMNS})
