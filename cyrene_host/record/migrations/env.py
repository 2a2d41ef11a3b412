"""What alembic runs: the steps, on the connection and in the transaction that it is given."""

from __future__ import annotations

from alembic import context

# One transaction on SQLite too: its tables are made whole or not at all.
context.configure(**context.config.attributes["configure"], transactional_ddl=True)
context.run_migrations()
