"""One plugin's life: its stages in order, its state, and what a call needs of it."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from cyrene_host.call.admission import Admission
from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import Limits
from cyrene_host.catalog.manifests import Manifest, ManifestStore
from cyrene_host.catalog.schemas import CompiledSchema, SchemaInvalidError
from cyrene_host.catalog.secrets import Redactor
from cyrene_host.catalog.state import CALLABLE_STATES, PluginState
from cyrene_host.errors import CallFailedError
from cyrene_host.runtimes.inline import InlineRuntime
from cyrene_host.runtimes.runtime import Runtime
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.faults import StageError
from cyrene_sdk.errors import CyreneError, ErrorKind
from cyrene_sdk.protocols import HostAPI, PluginConfig

__all__ = ["Life", "Surroundings"]

_log = logging.getLogger("cyrene.plugins")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a plugin's life needs of the host around it.

    Args:
        store: keeps a manifest that the live definitions correct.
        api: makes the plugin's access to the host.
        announce: told each change of state: plugin, old, new, reason.
        redefined: told the name of a plugin whose live definitions differ from its manifest.
        activate: starts a plugin that waits for its first call, with what it depends on.
    """

    store: ManifestStore
    api: Callable[[str], HostAPI]
    announce: Callable[[str, str, str, str], Awaitable[None]]
    redefined: Callable[[str], None]
    activate: Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class Life:
    """One plugin from discovered to stopped; the provider behind its tools.

    `error` and `stage` say what went wrong last, `stage_s` how many seconds each stage took.
    """

    record: CatalogPlugin
    limits: Limits
    config: PluginConfig
    redactor: Redactor | None
    surroundings: Surroundings
    admission: Admission = field(init=False)
    runtime: Runtime | None = field(init=False, default=None)
    state: PluginState = field(init=False)
    error: CyreneError | None = field(init=False)
    stage: str = field(init=False)
    stage_s: dict[str, float] = field(init=False, default_factory=dict)
    last_healthy: float | None = field(init=False, default=None)
    _place: Runtime | None = field(init=False, default=None)
    _is_initialised: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.admission = Admission(concurrency=self.limits.concurrency, queue_size=self.limits.queue_size)
        self.state, self.error, self.stage = self.record.state, self.record.error, self.record.stage

    @property
    def name(self) -> str:
        """The entry's name."""
        return self.record.name

    @property
    def abandoned(self) -> int:
        """How many given-up calls still run."""
        return self._place.abandoned if self._place else 0

    async def ready(self) -> Runtime:
        """Return the runtime of the started plugin; start it first if it waits for a call.

        Raises:
            CallFailedError: `plugin_unavailable`, with the state and its cause.
        """
        if self.state in (PluginState.DISCOVERED, PluginState.STARTING, PluginState.LOADED):
            await self.surroundings.activate(self.name)
        if self.runtime is not None:
            return self.runtime
        cause = f": {self.error.what}" if self.error else ""
        raise CallFailedError(
            ErrorKind.PLUGIN_UNAVAILABLE,
            f"it {self.state.claim}{cause}",
            plugin=self.name,
            where=self.error.where if self.error else None,
            mend=(self.error.mend if self.error else None) or self.state.mend,
        )

    async def start(self) -> None:
        """Go through load, init, start and tools; on failure undo what was done and be `failed`.

        Cancelled, it undoes what was done and is `stopped`.
        """
        if self.state is not PluginState.DISCOVERED:
            return
        await self._become(PluginState.STARTING, "it is wanted")
        try:
            await self._go_through_stages()
        except StageError as failure:
            await self._undo(failure)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._release(self.limits.stop_s)
                await self._become(PluginState.STOPPED, "the host ends")
            raise
        else:
            self.runtime = self._place
            self.last_healthy = time.time()
            await self._become(PluginState.STARTED, "start ended")

    async def stop(self, limit_s: float) -> None:
        """Stop the plugin, if its `init` ended; the state is `stopped` only if `stop` ended well."""
        if self.runtime is None:
            return
        await self._become(PluginState.STOPPING, "it is told to")
        self.runtime = None
        if await self._release(min(limit_s, self.limits.stop_s)):
            await self._become(PluginState.STOPPED, "stop ended")

    async def check(self) -> None:
        """Ask a started plugin for its health; one that is ill, or whose given-up calls still run, is `degraded`."""
        if self.runtime is None:
            return
        started = time.monotonic()
        try:
            await self.runtime.health(self.limits.health_timeout_s)
            self._check_abandoned()
        except StageError as failure:
            self._blame(failure)
            if self.state is not PluginState.DEGRADED:
                await self._become(PluginState.DEGRADED, failure.what)
        else:
            self.last_healthy = time.time()
            if self.state is PluginState.DEGRADED:
                self.error = None
                await self._become(PluginState.STARTED, "its health check passes again")
        self.stage_s["health"] = time.monotonic() - started

    def _check_abandoned(self) -> None:
        if self.abandoned:
            raise StageError(
                f"calls that were given up still run inside the host: {self.abandoned}",
                stage="health",
                mend="let the tool end when it is cancelled; what does not ends only with the host",
            )

    async def refuse(self, cause: CyreneError) -> None:
        """Be incompatible because of a plugin that this one needs."""
        self.record.fail(PluginState.INCOMPATIBLE, cause, "check")
        self.error, self.stage = cause, "check"
        await self._become(PluginState.INCOMPATIBLE, cause.what)

    async def _go_through_stages(self) -> None:
        source = self.record.source
        assert source is not None, "a plugin without code is never discovered"
        limits = self.limits
        place = self._place = InlineRuntime(source, grace_s=limits.kill_grace_s, threads=limits.concurrency)
        with self._timed("load"):
            metadata = await place.load(limits.load_s)
        with self._timed("init"):
            self._check_config(place)
            await place.init(self.config, limits.init_s)
        self._is_initialised = True
        self.state = PluginState.LOADED
        with self._timed("start"):
            await place.start(self.surroundings.api(self.name), limits.start_s)
        with self._timed("tools"):
            listing = await place.tools(limits.start_s)
        known = self.record.manifest
        live = Manifest(
            sdk_contract=CONTRACT,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            attribute=known.attribute if known else source.attribute,
            metadata=metadata,
            tools=tuple(listing.definitions),
            tool_faults=listing.faults,
            config_schema=known.config_schema if known else None,
        )
        changes = self.surroundings.store.keep(source, self.name, live)
        if changes:
            note = f"plugin '{self.name}' says otherwise than its manifest, which is replaced: {'; '.join(changes)}"
            self.record.notes.append(note)
            _log.warning("%s", note)
            self.record.describe(live)
            self.surroundings.redefined(self.name)

    def _check_config(self, place: Runtime) -> None:
        """Hold the entry's `config` against the plugin's schema, where the plugin does not do so itself."""
        schema = self.record.manifest.config_schema if self.record.manifest else None
        if not schema or place.checks_config:
            return
        try:
            faults = CompiledSchema(schema, close=False).faults(dict(self.config))
        except SchemaInvalidError as error:
            raise StageError(
                f"its config_schema cannot be used: {error.what}", stage="init", mend=error.mend
            ) from error
        if faults:
            told = "; ".join(map(str, faults))
            raise StageError(
                f"the configuration does not fit: {told}",
                stage="init",
                pointers=tuple((fault.path, fault.message) for fault in faults),
                mend="correct the `config` of the plugin's entry",
            )

    def _timed(self, stage: str) -> _Timed:
        self.stage = stage
        return _Timed(self.stage_s, stage)

    async def _undo(self, failure: StageError) -> None:
        self._blame(failure)
        _log.error("%s%s", self.error, f"\n{failure.trace}" if failure.trace else "")
        await self._release(self.limits.stop_s)
        await self._become(PluginState.FAILED, failure.what)

    async def _release(self, limit_s: float) -> bool:
        """Stop what was initialised and take the place down; return whether `stop` ended well."""
        place, self._place = self._place, None
        if place is None:
            return True
        is_well = True
        if self._is_initialised:
            self._is_initialised = False
            try:
                with _Timed(self.stage_s, "stop"):
                    await place.stop(limit_s)
            except StageError as failure:
                is_well = False
                _log.error("%s", self._placed(failure))
                if self.error is None:
                    self._blame(failure)
        await place.close()
        return is_well

    def _blame(self, failure: StageError) -> None:
        self.error, self.stage = self._placed(failure), failure.stage

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
        await self.surroundings.announce(self.name, old, state, reason)

    @property
    def is_callable(self) -> bool:
        """Whether its tools are offered."""
        return self.state in CALLABLE_STATES


class _Timed:
    """Notes the seconds that a stage took, also when it fails."""

    def __init__(self, stage_s: dict[str, float], stage: str) -> None:
        self._stage_s = stage_s
        self._stage = stage

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *exc: object) -> None:
        self._stage_s[self._stage] = time.monotonic() - self._started
