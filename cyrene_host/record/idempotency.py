"""Which requests were made under which key: a repeated one is the same call."""

from __future__ import annotations

from types import ModuleType

from cyrene_host.record.key_use import KeyUse
from cyrene_host.record.store import Store
from cyrene_sdk.types import ToolResult

__all__ = ["KeyRecords"]


class KeyRecords:
    """The idempotency keys in the database, each of one principal."""

    def __init__(self, store: Store, *, instance: str) -> None:
        self._store = store
        self._instance = instance

    async def take(
        self, principal: str, key: str, request_sha256: str, execution_id: str | None, *, now: float
    ) -> KeyUse | None:
        """Take a key for a call or an execution; return what it was taken for before, or None: it is this one's now."""
        use = KeyUse(request_sha256, self._instance, None, execution_id)
        return await self._store.write(lambda connection: _rows().take(connection, principal, key, use, now))

    async def keep(self, principal: str, key: str, result: ToolResult) -> None:
        """Keep what the call came to."""
        told = result.to_dict()
        await self._store.write(lambda connection: _rows().keep(connection, principal, key, told))

    async def free(self, principal: str, key: str) -> None:
        """Let the key be used again: nothing has happened under it."""
        await self._store.write(lambda connection: _rows().free(connection, principal, key))

    async def get(self, principal: str, key: str) -> KeyUse | None:
        """Return what a key was taken for."""
        found: KeyUse | None = await self._store.read(lambda connection: _rows().get(connection, principal, key))
        return found


def _rows() -> ModuleType:
    """The statements; with SQLAlchemy, so that only a thread of the store imports them."""
    from cyrene_host.record import idempotency_rows

    return idempotency_rows
