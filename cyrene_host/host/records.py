"""All that a host keeps of its calls, opened when it is first needed."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from cyrene_host.errors import CallFailedError
from cyrene_host.record.approvals import ApprovalRecords
from cyrene_host.record.execution import Execution
from cyrene_host.record.executions import ExecutionRecords
from cyrene_host.record.idempotency import KeyRecords
from cyrene_host.record.instances import HostKind, Instance, Instances, Living
from cyrene_host.record.notifications import Notifications
from cyrene_host.record.storage import PluginStorage
from cyrene_host.record.store import Store
from cyrene_sdk.errors import CyreneError, ErrorKind
from cyrene_sdk.types import ToolResult

__all__ = ["Records"]

_log = logging.getLogger("cyrene.executions")


class Records:
    """The database of one state directory, and this host's claim on the directory.

    Args:
        kind: what this host claims to be.
        interrupted: makes the result of an execution whose host ended before it did, and records that.
    """

    def __init__(
        self, state_dir: Path, url: str | None, *, kind: HostKind, interrupted: Callable[[Execution], ToolResult]
    ) -> None:
        self.instance = token_hex(16)
        self.store = Store(state_dir, url)
        instances = self._instances = Instances(state_dir)
        host = functools.cache(instances.host_id)
        self.executions = ExecutionRecords(self.store, host=host, instance=self.instance, is_alive=instances.alive)
        self.approvals = ApprovalRecords(self.store, host=host, instance=self.instance)
        self.keys = KeyRecords(self.store, instance=self.instance)
        self.notifications = Notifications(self.store)
        self._kind: HostKind = kind
        self._interrupted = interrupted
        self._claim: Instance | None = None
        self._one = anyio.Lock()
        self._is_ready = False

    @property
    def is_resident(self) -> bool:
        """Whether this host serves until it is stopped, so that it has the time for what others leave to it."""
        return self._kind == "resident"

    def storage(self, plugin: str) -> PluginStorage:
        """Return the key-value pairs of one plugin."""
        return PluginStorage(self.store, plugin)

    async def claim(self) -> None:
        """Claim the state directory, before anything is started or kept; once is enough.

        Raises:
            StateInUseError: a host is alive beside which this one must not run.
            StateDirError: the state directory cannot be written.
        """
        if self._claim is None:
            async with self._one:
                if self._claim is None:
                    claim = functools.partial(self._instances.claim, self._kind, self.instance)
                    self._claim = await anyio.to_thread.run_sync(claim)

    async def claim_for_call(self) -> None:
        """Claim the state directory on behalf of a call.

        Raises:
            CallFailedError: `plugin_unavailable`, where it cannot be claimed.
        """
        try:
            await self.claim()
        except CyreneError as error:
            raise CallFailedError(
                ErrorKind.PLUGIN_UNAVAILABLE, error.what, where=error.where, mend=error.mend, retryable=True
            ) from error

    async def resident(self) -> Living | None:
        """Return the other host that is at work on this state directory until it is stopped, if there is one."""
        living = await anyio.to_thread.run_sync(self._instances.living)
        return next((other for other in living if other.kind == "resident" and other.id != self.instance), None)

    async def is_alive(self, instance: str) -> bool:
        """Whether a host with this instance id still runs."""
        return await anyio.to_thread.run_sync(self._instances.alive, instance)

    async def ready(self) -> None:
        """Return when what dead hosts left under way is marked as interrupted: before anybody reads.

        Raises:
            StoreError: the database cannot be used; the next who asks tries again.
        """
        if self._is_ready:
            return
        async with self._one:
            if not self._is_ready:
                await self.recover()
                self._is_ready = True

    async def recover(self) -> None:
        """Mark what dead hosts left under way as interrupted.

        Raises:
            StoreError: the database cannot be used.
        """
        for execution in await self.executions.recover(self._interrupted):
            _log.warning("execution '%s' of '%s' was interrupted", execution.id, execution.tool_id)

    async def close(self) -> None:
        """Finish what is being written, and give up the claim."""
        with anyio.CancelScope(shield=True):
            await self.store.close()
            if self._claim is not None:
                await anyio.to_thread.run_sync(self._claim.release)
