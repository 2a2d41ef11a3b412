"""What a database that cannot be used raises."""

from __future__ import annotations

from typing import Literal, TypeAlias

from cyrene_sdk.errors import CyreneError

__all__ = ["StoreError", "StoreFault"]

StoreFault: TypeAlias = Literal[
    "full", "locked", "read_only", "damaged", "unreachable", "newer", "refused", "disk", "busy", "closed"
]
"""What is wrong: no room; held by another for too long; not writable; no database or a broken one; not there;
made by a newer version; settings or rights that the database does not take; a device that fails; too much at once;
a store that was closed."""


class StoreError(CyreneError):
    """The database cannot be used now, or this host must not use it; the next use tries again.

    Attributes:
        fault: which of the things that can be wrong it is.
        maybe_written: whether what was to be written may be there all the same (the connection was lost while it
            was being committed).
    """

    def __init__(
        self,
        what: str,
        *,
        fault: StoreFault,
        where: str | None = None,
        mend: str | None = None,
        maybe_written: bool = False,
    ) -> None:
        super().__init__(what, where=where, mend=mend)
        self.fault: StoreFault = fault
        self.maybe_written = maybe_written

    @classmethod
    def no_way_back(cls, revision: str) -> StoreError:
        """What a step of the schema raises when it is asked to undo itself."""
        return cls(
            f"the step '{revision}' of the database's schema cannot be undone",
            fault="newer",
            mend="restore the copy of the database that was made before the upgrade",
        )
