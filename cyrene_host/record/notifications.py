"""Messages that plugins leave for users, kept until they are delivered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import anyio

from cyrene_host.record.store import Store
from cyrene_sdk.errors import CyreneError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Notification", "NotificationError", "Notifications"]

MOST_USER_CHARACTERS = 256
MOST_TEXT_BYTES = 65_536
MOST_PENDING = 10_000


class NotificationError(CyreneError):
    """A message that cannot be left."""


class Notification(NamedTuple):
    """A message that is not delivered yet.

    Attributes:
        id: grows from one to the next; never used twice.
        user_id: for whom it is.
        plugin: who left it.
        text: what it says.
        created_at: when it was left, in seconds since the epoch.
    """

    id: int
    user_id: str
    plugin: str
    text: str
    created_at: float


class Notifications:
    """The messages in the host's database. A user has at most 10,000 that are not delivered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left = anyio.Event()  # set at the next message, then replaced

    async def leave(self, user_id: str, plugin: str, text: str, *, key: str | None = None) -> int | None:
        """Keep a message until it is delivered, and return its id.

        Args:
            user_id: for whom it is, 1 to 256 characters.
            plugin: who leaves it.
            text: what it says, at most 64 KiB of UTF-8.
            key: names the occasion: a second message of the plugin to this user with the same key is not left,
                whether or not the first is delivered (for 30 days); the answer is then None.
        Raises:
            NotificationError: there is no such user or text, or too many messages wait for the user.
            StoreError: the database cannot be used.
        """
        _check(user_id, plugin, text)
        row = {"user_id": user_id, "plugin": plugin, "text": text, "key": key, "created_at": time.time()}
        number = await self._store.write(lambda connection: _leave(connection, row))
        if number == _TOO_MANY:
            raise _refusal(
                f"{MOST_PENDING:,} messages wait for this user already", plugin, "deliver them: GET /api/notifications"
            )
        if number is not None:
            self._left.set()
            self._left = anyio.Event()
        return number

    async def pending(self, user_id: str | None = None, *, after: int = 0, limit: int = 100) -> list[Notification]:
        """Return messages that are not delivered, the oldest first.

        Args:
            user_id: for whom; None for all.
            after: only those with a greater id.
            limit: at most so many.
        Raises:
            StoreError: the database cannot be used.
        """
        return await self._store.read(lambda connection: _pending(connection, user_id, after, limit))

    async def newer(
        self, after: int, user_id: str | None = None, *, limit: int = 100, wait_s: float = 30
    ) -> list[Notification]:
        """Return what `pending` does, but wait for the next message while there is none.

        Messages that this host leaves are seen at once; those of other hosts on one PostgreSQL at the next call.

        Args:
            after, user_id, limit: as in `pending`.
            wait_s: seconds to wait at most; then the list is empty.
        Raises:
            StoreError: the database cannot be used.
        """
        with anyio.move_on_after(wait_s):
            while True:
                left = self._left  # before the look, so that none in between is missed
                found = await self.pending(user_id, after=after, limit=limit)
                if found:
                    return found
                await left.wait()
        return []

    async def delivered(self, ids: Sequence[int]) -> None:
        """Note that messages were delivered; unknown ids and those noted before are no error.

        Raises:
            StoreError: the database cannot be used.
        """
        numbers = list(ids)
        await self._store.write(lambda connection: _deliver(connection, numbers))


_TOO_MANY = -1
_MOST_IDS = 500  # of one statement: SQLite takes no more than 32,766 values


def _check(user_id: object, plugin: str, text: object) -> None:
    if not isinstance(user_id, str) or not 1 <= len(user_id) <= MOST_USER_CHARACTERS:
        raise _refusal(f"a user's id is text of 1 to {MOST_USER_CHARACTERS} characters", plugin, "give the user's id")
    if not isinstance(text, str) or not text:
        raise _refusal("a message is text, and not empty", plugin, "give a text")
    if len(text.encode("utf-8", "replace")) > MOST_TEXT_BYTES:
        raise _refusal(f"a message has at most {MOST_TEXT_BYTES:,} bytes", plugin, "leave a shorter one")


def _refusal(what: str, plugin: str, mend: str) -> NotificationError:
    return NotificationError(what, plugin=plugin, where="HostAPI.notify", mend=mend)


def _leave(connection: Connection, row: dict[str, str | float | None]) -> int | None:
    from cyrene_host.record.tables import count, insert_new, notifications

    waits = (notifications.c.user_id == row["user_id"], notifications.c.delivered_at.is_(None))
    if count(connection, notifications, *waits) >= MOST_PENDING:
        return _TOO_MANY
    key = insert_new(connection, notifications, row)
    return None if key is None else int(key[0])


def _pending(connection: Connection, user_id: str | None, after: int, limit: int) -> list[Notification]:
    from cyrene_host.record.tables import notifications as table

    found = (
        table.select()
        .with_only_columns(table.c.id, table.c.user_id, table.c.plugin, table.c.text, table.c.created_at)
        .where(table.c.delivered_at.is_(None), table.c.id > after)
        .order_by(table.c.id)
        .limit(limit)
    )
    if user_id is not None:
        found = found.where(table.c.user_id == user_id)
    return [Notification(*row) for row in connection.execute(found)]


def _deliver(connection: Connection, numbers: list[int]) -> None:
    from cyrene_host.record.tables import notifications as table

    for start in range(0, len(numbers), _MOST_IDS):
        some = table.c.id.in_(numbers[start : start + _MOST_IDS])
        connection.execute(table.update().where(some, table.c.delivered_at.is_(None)).values(delivered_at=time.time()))
