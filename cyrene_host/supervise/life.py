"""One plugin's life: its state, what starts, stops and restarts it, and what a call needs of it."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import anyio

from cyrene_host.call.admission import Admission
from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import Limits
from cyrene_host.catalog.manifests import Manifest, ManifestStore
from cyrene_host.catalog.secrets import RedactingFilter, Redactor
from cyrene_host.catalog.state import PluginState
from cyrene_host.errors import CallFailedError
from cyrene_host.runtimes.process import WorkerLostError
from cyrene_host.runtimes.runtime import Runtime
from cyrene_host.supervise.marks import FailureMarks, GivenUpError
from cyrene_host.supervise.restarts import Restarts
from cyrene_host.supervise.stages import Stages
from cyrene_sdk._worker.faults import StageError
from cyrene_sdk.errors import CyreneError, ErrorKind
from cyrene_sdk.protocols import HostAPI, PluginConfig

__all__ = ["Life", "Surroundings"]

FAILED_CHECKS = 3
DRAIN_S = 5.0
LOST_MEND = "its author has to look: the plugin's log has what it printed"

_log = logging.getLogger("cyrene.plugins")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a plugin's life needs of the host around it.

    Args:
        store: keeps a manifest that the live definitions correct.
        marks: remembers which plugins nobody tries to start any more.
        place: makes a new place for a plugin's code, as `Places.make` does.
        api: makes the plugin's access to the host.
        announce: told each change of state: plugin, old, new, reason.
        redefined: told the name of a plugin whose live definitions differ from its manifest.
        activate: starts a plugin that waits for its first call, with what it depends on.
        spawn: runs a function in a task that the host owns.
        sleep, clock: replaced in tests.
    """

    store: ManifestStore
    marks: FailureMarks
    place: Callable[..., Runtime]
    api: Callable[[str], HostAPI]
    announce: Callable[[str, str, str, str], Awaitable[None]]
    redefined: Callable[[str], None]
    activate: Callable[[str], Awaitable[None]]
    spawn: Callable[..., None]
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    clock: Callable[[], float] = time.monotonic


class Life:
    """One plugin from discovered to stopped; the provider behind its tools.

    Attributes:
        name: the entry's name.
        runtime: where calls go; None unless it is started or degraded.
        error: what went wrong last.
        retry_at: when a restarting plugin is tried again, in seconds since the epoch.
    """

    def __init__(
        self,
        record: CatalogPlugin,
        *,
        limits: Limits,
        config: PluginConfig,
        redactor: Redactor | None,
        surroundings: Surroundings,
    ) -> None:
        self.record = record
        self.name = record.name
        self.limits = limits
        self.redactor = redactor
        RedactingFilter.put_on(logging.getLogger(f"cyrene.plugin.{self.name}"), redactor)
        self.admission = Admission(concurrency=limits.concurrency, queue_size=limits.queue_size)
        self.runtime: Runtime | None = None
        self.state = record.state
        self.error: CyreneError | None = record.error
        self.last_healthy: float | None = None
        self.retry_at: float | None = None
        self._around = surroundings
        self._stages = Stages(record, limits, config)
        self._restarts = Restarts(surroundings.clock)
        self._place: Runtime | None = None
        self._failed_checks = 0
        self._coming_up: anyio.Event | None = None  # while it is replaced at once; calls wait for that
        self._turn = anyio.Lock()
        self._work: anyio.CancelScope | None = None  # the start or restart under way
        marked = surroundings.marks.find(record) if record.state is PluginState.DISCOVERED else None
        if marked is not None:
            self.state, self.error = PluginState.FAILED, GivenUpError(record, marked)

    @property
    def stage(self) -> str:
        """The last stage that it came to."""
        return self._stages.stage

    @property
    def stage_s(self) -> dict[str, float]:
        """Seconds that each stage took."""
        return self._stages.seconds

    @property
    def abandoned(self) -> int:
        """How many given-up calls still run."""
        return self._place.abandoned if self._place else 0

    @property
    def restarts(self) -> int:
        """How often it was started again within the last 5 minutes."""
        return self._restarts.recent

    @property
    def pid(self) -> int | None:
        """Its worker's process id, while it has one."""
        return self._place.pid if self._place else None

    @property
    def is_refused(self) -> bool:
        """Whether it was not started only because of a plugin that it needs."""
        return self.state is PluginState.INCOMPATIBLE and self.record.state is PluginState.DISCOVERED

    async def ready(self) -> Runtime:
        """Return the runtime of the started plugin; start it first if it waits for a call.

        Raises:
            CallFailedError: `plugin_unavailable`, with the state, its cause, and when it is tried again.
        """
        if self.state in (PluginState.DISCOVERED, PluginState.STARTING, PluginState.LOADED) or self.is_refused:
            await self._around.activate(self.name)
        await self.replaced()
        if self.runtime is not None:
            return self.runtime
        cause = f": {self.error.what}" if self.error else ""
        again = f"; it is tried again in {math.ceil(max(0.0, self.retry_at - time.time()))} s" if self.retry_at else ""
        raise CallFailedError(
            ErrorKind.PLUGIN_UNAVAILABLE,
            f"it {self.state.claim}{cause}{again}",
            plugin=self.name,
            where=self.error.where if self.error else None,
            mend=(self.error.mend if self.error else None) or self.state.mend_of(self.name),
            retryable=self.state is PluginState.RESTARTING,
        )

    async def replaced(self) -> None:
        """Return at once, or when the place that is being replaced at once is there again, or is given up."""
        if self._coming_up is not None:
            await self._coming_up.wait()

    async def start(self) -> None:
        """Go through load, init, start and tools; on failure undo what was done and be `failed`."""
        async with self._at_work():
            if self.state is PluginState.DISCOVERED or self.is_refused:
                await self._become(PluginState.STARTING, "it is wanted")
                await self._bring_up()

    async def stop(self, limit_s: float) -> None:
        """Stop the plugin, also in the middle of a start or restart; if its `stop` fails it stays `stopping`.

        Args:
            limit_s: seconds that are left for it, beside its own limit.
        """
        if self._work is not None:
            self._work.cancel()
        async with self._turn:
            self.retry_at = None
            if self._place is not None:
                await self._become(PluginState.STOPPING, "it is told to")
                if await self._take_down(limit_s, drain_s=DRAIN_S):
                    await self._become(PluginState.STOPPED, "stop ended")
            elif self.state in (PluginState.STARTING, PluginState.LOADED, PluginState.RESTARTING):
                await self._become(PluginState.STOPPED, "it is told to")

    async def reset(self) -> None:
        """Be as before the first start, after a stop or a failure: a person wants it tried again."""
        self._restarts.forget()
        self._around.marks.clear(self.name)
        self.error = self.record.error
        await self._become(self.record.state, "a person wants it tried again")

    async def check(self) -> None:
        """Ask a started plugin for its health: one failure makes it `degraded`, three in a row restart it.

        A plugin that is busy with calls and gives no answer in time is not unhealthy.
        """
        place = self.runtime
        if place is None:
            return
        try:
            await self._stages.check(place)
        except StageError as failure:
            if self.runtime is place and not (failure.timed_out and self.admission.is_busy):
                await self._failed_check(failure)
            return
        self._failed_checks = 0
        self.last_healthy = time.time()
        await self._weigh_abandoned()
        if self.state is PluginState.DEGRADED and not self.abandoned:
            self.error = None
            await self._become(PluginState.STARTED, "its health check passes again")

    async def refuse(self, cause: CyreneError) -> None:
        """Be incompatible because of a plugin that this one needs, until it is started again."""
        self.error = cause
        await self._become(PluginState.INCOMPATIBLE, cause.what)

    @contextlib.asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        """One start or restart at a time, which `stop` ends early."""
        async with self._turn:
            try:
                with anyio.CancelScope() as self._work:
                    yield
            finally:
                self._work = None

    async def _bring_up(self) -> None:
        self.retry_at = None
        place = self._place = self._around.place(
            self.record,
            self.limits,
            on_lost=self._lost,
            on_abandoned=lambda: self._around.spawn(self._weigh_abandoned),
        )
        try:
            await self._stages.prepare(place)
            if self.state is PluginState.STARTING:
                await self._become(PluginState.LOADED, "init ended")
            live = await self._stages.begin(place, self._around.api(self.name))
        except WorkerLostError as failure:
            self._blame(failure)
            await self._recover(failure.what)
        except StageError as failure:
            self._blame(failure)
            _log.error("%s%s", self.error, f"\n{failure.trace}" if failure.trace else "")
            await self._take_down()
            await self._become(PluginState.FAILED, failure.what)
        except BaseException:  # it is told to stop, or the host closes, while it starts
            await self._take_down()
            raise
        else:
            self._compare(live)
            self.runtime, self.error = place, None
            self._failed_checks, self.last_healthy = 0, time.time()
            await self._become(PluginState.STARTED, "start ended")

    def _lost(self, why: str, is_own: bool = True) -> None:
        """The place is gone, or has to be replaced, by its own fault or not: called by it, at most once."""
        if self.runtime is None:
            return  # a stage is under way and fails by itself
        what = self.redactor.redact(why) if self.redactor else why
        self.error = CyreneError(what, plugin=self.name, where=self.record.place, mend=LOST_MEND)
        self._coming_up = anyio.Event()
        self._around.spawn(self._replace, self.runtime, self._coming_up, why, is_own)
        self.runtime = None

    async def _replace(self, lost: Runtime, coming_up: anyio.Event, why: str, is_own: bool) -> None:
        try:
            async with self._at_work():
                if self._place is lost:  # else somebody stopped it first
                    await self._recover(why, is_own=is_own)
        finally:
            self._settle(coming_up)

    async def _recover(self, why: str, *, is_own: bool = True) -> None:
        """Start again, after a wait from the second time on; give up where it is lost too often by its own fault."""
        wait_s = self._restarts.next_wait_s(is_own=is_own)
        if wait_s is None:
            self.error = GivenUpError(self.record, why)
            self._around.marks.mark(self.record, why)
            _log.error("%s", self.error)
            await self._become(PluginState.FAILED, self.error.what)
            self._settle(self._coming_up)
            await self._take_down()
            return
        _log.warning("plugin '%s': %s; it is started again in %g s", self.name, why, wait_s)
        if wait_s:
            self.retry_at = time.time() + wait_s
        await self._become(PluginState.RESTARTING, why)
        if wait_s:
            self._settle(self._coming_up)
        await self._take_down(drain_s=DRAIN_S)
        await self._around.sleep(wait_s)
        await self._bring_up()

    def _settle(self, coming_up: anyio.Event | None) -> None:
        """Let the calls go on that wait for the plugin to come up."""
        if coming_up is not None:
            coming_up.set()
        if self._coming_up is coming_up:
            self._coming_up = None

    async def _weigh_abandoned(self) -> None:
        """Be degraded while a call that was given up still runs inside the host."""
        count = self.abandoned
        if self.runtime is None:
            return
        if count and self.state is PluginState.STARTED:
            what = f"calls that were given up still run inside the host: {count}"
            mend = "restart the host to be rid of them, or let it run as a process: its entry's 'runtime'"
            self.error = CyreneError(what, plugin=self.name, where=self.record.place, mend=mend)
            await self._become(PluginState.DEGRADED, what)
        elif not count and not self._failed_checks and self.state is PluginState.DEGRADED:
            self.error = None
            await self._become(PluginState.STARTED, "the calls that were given up have ended")

    async def _failed_check(self, failure: StageError) -> None:
        self._failed_checks += 1
        if self._failed_checks >= FAILED_CHECKS:
            self._lost(f"{FAILED_CHECKS} health checks in a row failed, the last: {failure.what}")
        else:
            self._blame(failure)
            if self.state is not PluginState.DEGRADED:
                await self._become(PluginState.DEGRADED, failure.what)

    async def _take_down(self, limit_s: float = math.inf, *, drain_s: float = 0.0) -> bool:
        """Let calls under way end, stop what was initialised, take the place down; return whether `stop` ended well.

        Args:
            limit_s: seconds for all of it; the plugin's own limit for `stop` holds too.
        """
        self.runtime = None
        place, self._place = self._place, None
        if place is None:
            return True
        deadline = time.monotonic() + limit_s
        is_well = True
        with anyio.CancelScope(shield=True):
            await self.admission.idle(min(drain_s, limit_s))
            try:
                await self._stages.down(place, max(0.0, min(self.limits.stop_s, deadline - time.monotonic())))
            except WorkerLostError:
                pass  # what is gone needs no stop
            except StageError as failure:
                is_well = False
                _log.error("%s", self._placed(failure))
                self.error = self.error or self._placed(failure)
            await place.close()
        return is_well

    def _compare(self, live: Manifest) -> None:
        """Keep the live definitions where they differ from the manifest."""
        assert self.record.source is not None
        changes = self._around.store.keep(self.record.source, self.name, live)
        if changes:
            note = f"plugin '{self.name}' says otherwise than its manifest, which is replaced: {'; '.join(changes)}"
            self.record.notes.append(note)
            _log.warning("%s", note)
            self.record.describe(live)
            self._around.redefined(self.name)

    def _blame(self, failure: StageError) -> None:
        self.error = self._placed(failure)

    def _placed(self, failure: StageError) -> CyreneError:
        """Say of which plugin, version and source a stage's error is."""
        record = self.record
        version = f" {record.manifest.metadata.version}" if record.manifest else ""
        place = record.source.where if record.source else ""
        if failure.pointers and record.entry:
            place = ", ".join(f"{record.entry.where}/config{pointer}" for pointer, _ in failure.pointers)
        where = f"stage {failure.stage} of '{self.name}'{version}, {place}"
        redact = self.redactor.redact if self.redactor else str
        return CyreneError(
            redact(failure.what),
            plugin=self.name,
            where=redact(f"{where}, {failure.where}" if failure.where else where),
            mend=failure.mend,
        )

    async def _become(self, state: PluginState, reason: str) -> None:
        old, self.state = self.state, state
        _log.info("plugin '%s' is %s (was %s): %s", self.name, state, old, reason)
        await self._around.announce(self.name, old, state, reason)
