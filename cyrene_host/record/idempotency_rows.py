"""The statements behind `KeyRecords`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

from cyrene_host.record.key_use import KEPT_S, KeyUse
from cyrene_host.record.tables import idempotency, insert_new
from cyrene_sdk.types import ToolResult

__all__ = ["free", "get", "keep", "take"]

_EXECUTION = "execution"


def take(connection: Connection, principal: str, key: str, use: KeyUse, now: float) -> KeyUse | None:
    """Insert the key, unless it is there and young."""
    connection.execute(delete(idempotency).where(_is(principal, key), idempotency.c.created_at < now - KEPT_S))
    row = {
        "principal": principal,
        "key": key,
        "request_sha256": use.request_sha256,
        "instance": use.instance,
        "state": "running" if use.execution_id is None else _EXECUTION,
        "call_id": use.execution_id or "",
        "created_at": now,
    }
    return None if insert_new(connection, idempotency, row) else get(connection, principal, key)


def keep(connection: Connection, principal: str, key: str, result: dict[str, Any]) -> None:
    """Set the result."""
    change = {"state": "done", "call_id": result.get("call_id", ""), "result": result}
    connection.execute(update(idempotency).where(_is(principal, key)).values(**change))


def free(connection: Connection, principal: str, key: str) -> None:
    """Delete the key."""
    connection.execute(delete(idempotency).where(_is(principal, key)))


def get(connection: Connection, principal: str, key: str) -> KeyUse | None:
    """Return one."""
    row = connection.execute(select(idempotency).where(_is(principal, key))).mappings().first()
    if row is None:
        return None
    result = None if row["result"] is None else ToolResult.from_json(row["result"])
    execution_id = row["call_id"] if row["state"] == _EXECUTION else None
    return KeyUse(row["request_sha256"], row["instance"], result, execution_id)


def _is(principal: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency.c.principal == principal, idempotency.c.key == key)
