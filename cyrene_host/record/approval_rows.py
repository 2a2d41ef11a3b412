"""The statements behind `ApprovalRecords`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, or_, select, update

from cyrene_host.record.approval import Approval, ApprovalState
from cyrene_host.record.tables import approvals, executions

__all__ = ["add", "decide", "get", "ids", "newest", "still_open", "use"]

_MOST = 1000
_COLUMNS = list(Approval.__dataclass_fields__)


def add(connection: Connection, approval: Approval) -> None:
    """Keep a new one, with a digest of its arguments."""
    row = {name: getattr(approval, name) for name in _COLUMNS}
    digest = {"kind": "call", "arguments_sha256": _digest(approval.arguments)}
    connection.execute(approvals.insert().values(**row, **digest))


def get(connection: Connection, host: str, approval_id: str) -> Approval | None:
    """Return one.

    Raises:
        ValueError: its arguments do not have their digest.
    """
    row = connection.execute(_of(host).where(approvals.c.id == approval_id)).mappings().first()
    if row is None:
        return None
    if _digest(row["arguments"]) != row["arguments_sha256"]:
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
    change = (
        update(approvals)
        .where(approvals.c.id == approval_id, approvals.c.state == "pending")
        .values(state=state, decided_at=at, decided_by=by, reason=reason)
    )
    return connection.execute(change).rowcount == 1


def use(connection: Connection, approval_id: str, at: float) -> bool:
    """Use one up, if it is approved and was not used."""
    change = update(approvals).where(approvals.c.id == approval_id, _to_be_run()).values(used_at=at)
    return connection.execute(change).rowcount == 1


def still_open(connection: Connection, host: str) -> list[Approval]:
    """Return those that somebody has to see to."""
    query = _of(host).where(or_(approvals.c.state == "pending", _to_be_run())).limit(_MOST)
    return [_approval(row) for row in connection.execute(query).mappings()]


def _of(host: str) -> Select[Any]:
    of_host = executions.c.host == host
    return select(approvals).join(executions, executions.c.id == approvals.c.execution_id).where(of_host)


def _to_be_run() -> ColumnElement[bool]:
    return and_(approvals.c.state == "approved", approvals.c.used_at.is_(None))


def _approval(row: RowMapping) -> Approval:
    return Approval(**{name: row[name] for name in _COLUMNS})


def _digest(arguments: str) -> str:
    return hashlib.sha256(arguments.encode()).hexdigest()
