"""What the database forgets, and when."""

from __future__ import annotations

from typing import Any

import pytest

from cyrene_host.record.retention import MOST_AT_ONCE, Forgotten, forget_old
from cyrene_host.record.store import Store

pytestmark = pytest.mark.anyio

DAY = 86_400.0
NOW = 1_000 * DAY


def execution(name: str, state: str, ended_days_ago: float | None) -> dict[str, Any]:
    """A row of the table `executions`."""
    ended_at = None if ended_days_ago is None else NOW - ended_days_ago * DAY
    texts = ("host", "instance", "tool_id", "plugin", "principal", "surface", "call_id")
    return {
        **dict.fromkeys(texts, "x"),
        "id": name,
        "state": state,
        "arguments": {},
        "created_at": 0.0,
        "ended_at": ended_at,
    }


def approval(name: str, state: str, days_old: float, execution_id: str | None = None) -> dict[str, Any]:
    """A row of the table `approvals`."""
    texts = (
        "kind", "tool_id", "plugin", "fingerprint", "arguments", "arguments_sha256", "danger", "principal", "surface",
        "description",
    )  # fmt: skip
    row = {**dict.fromkeys(texts, "x"), "id": name, "state": state, "created_at": NOW - days_old * DAY}
    return {**row, "execution_id": execution_id}


def fill(connection: Any) -> None:
    """Write rows of all kinds, old and new."""
    from cyrene_host.record.tables import approvals, execution_events, executions, idempotency, notifications

    states = ("waiting", "queued", "running", "completed", "failed", "cancelled", "interrupted")
    rows = [execution(f"{state} old", state, 31) for state in states]
    rows += [execution(f"{state} new", state, 29) for state in states]
    rows += [execution(f"{state} unended", state, None) for state in ("waiting", "queued", "running")]
    connection.execute(executions.insert(), rows)
    events = [{"execution_id": row["id"], "seq": seq, "at": 0.0, "kind": "x"} for row in rows for seq in (1, 2)]
    connection.execute(execution_events.insert(), events)
    for row in [
        approval("of old", "approved", 31, "completed old"), approval("of new", "approved", 31, "completed new"),
        approval("of waiting", "pending", 31, "waiting unended"), approval("definition old", "denied", 31),
        approval("definition pending", "pending", 31), approval("definition new", "approved", 29),
    ]:  # fmt: skip
        connection.execute(approvals.insert(), row)
    for text, delivered in (("old", 31), ("new", 29), ("undelivered", None)):
        delivered_at = None if delivered is None else NOW - delivered * DAY
        row = {"user_id": "u", "plugin": "p", "text": text, "created_at": 0.0, "delivered_at": delivered_at}
        connection.execute(notifications.insert(), row)
    for number in range(2 * MOST_AT_ONCE + 1):
        row = {
            "principal": "p", "key": f"old {number}", "request_sha256": "x", "instance": "i", "state": "done",
            "call_id": "c", "created_at": NOW - 1.1 * DAY,
        }  # fmt: skip
        connection.execute(idempotency.insert(), row)
    connection.execute(idempotency.insert(), {**row, "key": "new", "created_at": NOW - 0.9 * DAY})


def left(connection: Any) -> dict[str, set[Any]]:
    """What is left of each kind."""
    from cyrene_host.record import tables

    def all_of(column: Any) -> set[Any]:
        return {*connection.execute(column.table.select().with_only_columns(column)).scalars()}

    return {
        "executions": all_of(tables.executions.c.id),
        "events": all_of(tables.execution_events.c.execution_id),
        "approvals": all_of(tables.approvals.c.id),
        "notifications": all_of(tables.notifications.c.text),
        "idempotency": all_of(tables.idempotency.c.key),
    }


async def test_what_is_old_and_over_goes_and_nothing_else(store: Store) -> None:
    await store.write(fill)
    before = await store.read(left)
    forgotten = await forget_old(store, clock=lambda: NOW)
    after = await store.read(left)

    gone = {f"{state} old" for state in ("completed", "failed", "cancelled", "interrupted")}
    assert after["executions"] == before["executions"] - gone
    assert after["events"] == before["events"] - gone
    assert after["approvals"] == {"of new", "of waiting", "definition pending", "definition new"}
    assert after["notifications"] == {"new", "undelivered"}
    assert after["idempotency"] == {"new"}
    # The approval of an execution goes with it.
    assert forgotten == Forgotten(executions=4, approvals=1, notifications=1, idempotency_keys=2 * MOST_AT_ONCE + 1)
    assert await forget_old(store, clock=lambda: NOW) == Forgotten(0, 0, 0, 0)


async def test_an_empty_database_has_nothing_to_forget(store: Store) -> None:
    assert await forget_old(store) == Forgotten(0, 0, 0, 0)
