"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cyrene_host.record.failures import StoreError

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables and their indexes."""
    _executions()
    _approvals()
    _others()


def downgrade() -> None:
    """Refuse: nothing older can use this database."""
    raise StoreError.no_way_back(revision)


def _executions() -> None:
    op.create_table(
        "executions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("instance", sa.Text, nullable=False),
        sa.Column("tool_id", sa.Text, nullable=False),
        sa.Column("plugin", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("surface", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("parent_call_id", sa.Text),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("progress", sa.Double, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text),
        sa.Column("plugin_execution_id", sa.Text),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("approval_id", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("ended_at", sa.Double),
    )
    op.create_table(
        "execution_events",
        sa.Column("execution_id", sa.Text, primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text),
        sa.Column("progress", sa.Double),
        sa.Column("message", sa.Text),
        sa.Column("body", sa.Text),
    )
    op.create_index("executions_of_principal", "executions", ["principal", "created_at"])
    op.create_index("executions_of_host", "executions", ["host", "state"])
    op.create_index("executions_by_end", "executions", ["ended_at"])


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("execution_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("tool_id", sa.Text, nullable=False),
        sa.Column("plugin", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("arguments_sha256", sa.Text, nullable=False),
        sa.Column("danger", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("surface", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text),
        sa.Column("conversation_id", sa.Text),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("decided_at", sa.Double),
        sa.Column("decided_by", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("used_at", sa.Double),
    )
    op.create_index("approvals_by_state", "approvals", ["state", "created_at"])
    op.create_index("approvals_of_execution", "approvals", ["execution_id"])


def _others() -> None:
    op.create_table(
        "idempotency",
        sa.Column("principal", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("request_sha256", sa.Text, nullable=False),
        sa.Column("instance", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("result", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "storage",
        sa.Column("plugin", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )
    op.create_table(
        "notifications",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("plugin", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("delivered_at", sa.Double),
        sa.UniqueConstraint("plugin", "user_id", "key", name="notifications_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("idempotency_by_age", "idempotency", ["created_at"])
    op.create_index("notifications_by_delivery", "notifications", ["delivered_at", "id"])
