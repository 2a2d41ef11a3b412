"""The tables of the database, and the two statements whose form depends on which database it is.

Times are seconds since the epoch (UTC). What changes here needs a migration, which sets `SCHEMA`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

__all__ = [
    "SCHEMA",
    "JsonText",
    "PlainText",
    "approvals",
    "count",
    "execution_events",
    "executions",
    "idempotency",
    "insert_new",
    "metadata",
    "notifications",
    "put",
    "storage",
]

SCHEMA = "0001"
"""The newest migration: what a database must be at."""

_UNKEEPABLE = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


class PlainText(TypeDecorator[str]):
    """Text; NUL and lone surrogates, which not every database can keep, become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's
        """Return what is kept."""
        return value if value is None or (value.isascii() and "\0" not in value) else value.translate(_UNKEEPABLE)


class JsonText(TypeDecorator[Any]):
    """A JSON value, kept as ASCII text; None is the database's NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's
        """Return the text that is kept."""
        return None if value is None else json.dumps(value, separators=(",", ":"), allow_nan=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLAlchemy's
        """Return the value that was kept."""
        return None if value is None else json.loads(value)


metadata = MetaData()

executions = Table(
    "executions",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("host", PlainText, nullable=False),
    Column("instance", PlainText, nullable=False),
    Column("tool_id", PlainText, nullable=False),
    Column("plugin", PlainText, nullable=False),
    Column("principal", PlainText, nullable=False),
    Column("surface", PlainText, nullable=False),
    Column("conversation_id", PlainText),
    Column("user_id", PlainText),
    Column("parent_call_id", PlainText),
    Column("call_id", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("progress", Double, nullable=False, default=0.0),
    Column("message", PlainText, nullable=False, default=""),
    Column("arguments", JsonText),
    Column("plugin_execution_id", PlainText),
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("approval_id", PlainText),
    Column("result", JsonText),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Index("executions_of_principal", "principal", "created_at"),
    Index("executions_of_host", "host", "state"),
    Index("executions_by_end", "ended_at"),
)

execution_events = Table(
    "execution_events",
    metadata,
    Column("execution_id", PlainText, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("status", PlainText),
    Column("progress", Double),
    Column("message", PlainText),
    Column("body", JsonText),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("execution_id", PlainText),
    Column("kind", PlainText, nullable=False),
    Column("tool_id", PlainText, nullable=False),
    Column("plugin", PlainText, nullable=False),
    Column("fingerprint", PlainText, nullable=False),
    Column("arguments", PlainText, nullable=False),
    Column("arguments_sha256", PlainText, nullable=False),
    Column("danger", PlainText, nullable=False),
    Column("principal", PlainText, nullable=False),
    Column("surface", PlainText, nullable=False),
    Column("user_id", PlainText),
    Column("conversation_id", PlainText),
    Column("description", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("decided_at", Double),
    Column("decided_by", PlainText),
    Column("reason", PlainText),
    Column("used_at", Double),
    Index("approvals_by_state", "state", "created_at"),
    Index("approvals_of_execution", "execution_id"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("principal", PlainText, primary_key=True),
    Column("key", PlainText, primary_key=True),
    Column("request_sha256", PlainText, nullable=False),
    Column("instance", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("call_id", PlainText, nullable=False),
    Column("result", JsonText),
    Column("created_at", Double, nullable=False),
    Index("idempotency_by_age", "created_at"),
)

storage = Table(
    "storage",
    metadata,
    Column("plugin", PlainText, primary_key=True),
    Column("key", PlainText, primary_key=True),
    Column("value", PlainText, nullable=False),
    Column("updated_at", Double, nullable=False),
)

notifications = Table(
    "notifications",
    metadata,
    # SQLite numbers rows only in a column of exactly this type.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("user_id", PlainText, nullable=False),
    Column("plugin", PlainText, nullable=False),
    Column("text", PlainText, nullable=False),
    Column("key", PlainText),
    Column("created_at", Double, nullable=False),
    Column("delivered_at", Double),
    UniqueConstraint("plugin", "user_id", "key", name="notifications_once"),
    Index("notifications_by_delivery", "delivered_at", "id"),
    sqlite_autoincrement=True,
)


def put(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, or change the one that has its primary key."""
    keys = [column.name for column in table.primary_key]
    changes = {name: value for name, value in row.items() if name not in keys}
    connection.execute(_insert(connection, table, row).on_conflict_do_update(index_elements=keys, set_=changes))


def insert_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Insert a row and return its primary key; None where one with its key, or with what is unique, is there."""
    insert = _insert(connection, table, row).on_conflict_do_nothing().returning(*table.primary_key)
    key = connection.execute(insert).one_or_none()
    return None if key is None else tuple(key)


def count(connection: Connection, table: Table, *which: ColumnElement[bool]) -> int:
    """Return how many rows there are of which all of this holds."""
    return int(connection.execute(select(func.count()).select_from(table).where(*which)).scalar_one())


def _insert(connection: Connection, table: Table, row: Mapping[str, Any]) -> postgresql.Insert:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    # Their forms of what is used here are the same.
    return cast("postgresql.Insert", dialect.insert(table).values(**row))
