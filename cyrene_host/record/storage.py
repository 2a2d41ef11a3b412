"""What a plugin keeps from one start to the next: `HostAPI.storage`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cyrene_host.record.store import Store
from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk.errors import CyreneError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["PluginStorage", "StorageError"]

MOST_KEYS = 100_000
MOST_KEY_CHARACTERS = 512
MOST_VALUE_BYTES = 1_048_576


class StorageError(CyreneError):
    """A key or value that cannot be kept; what was there before is unchanged."""


class PluginStorage:
    """The durable key-value pairs of one plugin (the SDK's `Storage`); no other plugin sees them.

    Keys have 1 to 512 characters; a value is JSON of at most 1 MiB; a plugin has at most 100,000 keys.

    Args:
        store: the host's database.
        plugin: the plugin's name in this host.
    """

    def __init__(self, store: Store, plugin: str) -> None:
        self._store = store
        self._plugin = plugin

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default`.

        Raises:
            StorageError: the key is none.
            StoreError: the database cannot be used.
        """
        self._check(key)
        kept = await self._store.read(lambda connection: _get(connection, self._plugin, key))
        return default if kept is None else json.loads(kept)

    async def set(self, key: str, value: Any) -> None:
        """Keep `value` under `key`; once this returns it outlives the host.

        Raises:
            StorageError: the key is none, the value is no JSON or too large, or there are too many keys.
            StoreError: the database cannot be used.
        """
        self._check(key)
        try:
            plain = checked(value, max_bytes=MOST_VALUE_BYTES)
        except GateError as error:
            raise self._refusal(
                f"the value cannot be kept: {error}", key, "store plain JSON of at most 1 MiB"
            ) from error
        written = json.dumps(plain, separators=(",", ":"))
        if not await self._store.write(lambda connection: _set(connection, self._plugin, key, written)):
            raise self._refusal(f"there are {MOST_KEYS:,} keys, and no room for more", key, "delete some first")

    async def delete(self, key: str) -> None:
        """Forget `key`; unknown keys are no error.

        Raises:
            StorageError: the key is none.
            StoreError: the database cannot be used.
        """
        self._check(key)
        await self._store.write(lambda connection: _delete(connection, self._plugin, key))

    async def keys(self) -> Sequence[str]:
        """Return all keys, in the order of their characters' code points.

        Raises:
            StoreError: the database cannot be used.
        """
        return sorted(await self._store.read(lambda connection: _keys(connection, self._plugin)))

    def _check(self, key: object) -> None:
        if not isinstance(key, str):
            raise self._refusal(f"a key is text, not '{type(key).__name__[:80]}'", None, "use a str")
        if not 1 <= len(key) <= MOST_KEY_CHARACTERS:
            raise self._refusal(
                f"a key has 1 to {MOST_KEY_CHARACTERS} characters, this one {len(key)}", key, "use a shorter key"
            )
        if "\0" in key or not _is_unicode(key):
            raise self._refusal("the key holds NUL or a lone surrogate", key, "use plain Unicode text")

    def _refusal(self, what: str, key: str | None, mend: str) -> StorageError:
        shown = "" if key is None else f" key {key if len(key) <= 80 else key[:79] + '…'!a}"
        return StorageError(what, plugin=self._plugin, where=f"HostAPI.storage{shown}", mend=mend)


def _is_unicode(key: str) -> bool:
    return key.isascii() or not any("\ud800" <= character <= "\udfff" for character in key)


def _get(connection: Connection, plugin: str, key: str) -> str | None:
    from cyrene_host.record.tables import storage

    found = storage.select().with_only_columns(storage.c.value).where(storage.c.plugin == plugin, storage.c.key == key)
    value: str | None = connection.execute(found).scalar()
    return value


def _set(connection: Connection, plugin: str, key: str, value: str) -> bool:
    from cyrene_host.record.tables import count, put, storage

    is_new = _get(connection, plugin, key) is None
    if is_new and count(connection, storage, storage.c.plugin == plugin) >= MOST_KEYS:
        return False
    put(connection, storage, {"plugin": plugin, "key": key, "value": value, "updated_at": time.time()})
    return True


def _delete(connection: Connection, plugin: str, key: str) -> None:
    from cyrene_host.record.tables import storage

    connection.execute(storage.delete().where(storage.c.plugin == plugin, storage.c.key == key))


def _keys(connection: Connection, plugin: str) -> list[str]:
    from cyrene_host.record.tables import storage

    return [
        *connection.execute(
            storage.select().with_only_columns(storage.c.key).where(storage.c.plugin == plugin)
        ).scalars()
    ]
