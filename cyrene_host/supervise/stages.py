"""The stages of a plugin in one place: up through load, init, start and tools, and down through stop."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import Limits
from cyrene_host.catalog.manifests import Manifest
from cyrene_host.catalog.schemas import CompiledSchema, SchemaInvalidError
from cyrene_host.runtimes.runtime import Runtime
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.faults import StageError
from cyrene_sdk.protocols import HostAPI, PluginConfig
from cyrene_sdk.types import PluginMetadata

__all__ = ["Stages"]


class Stages:
    """Takes a plugin's places up and down, and remembers how far the present one came.

    `stage` is the last one that was entered, `seconds` how long each took.
    """

    def __init__(self, record: CatalogPlugin, limits: Limits, config: PluginConfig) -> None:
        self._record = record
        self._limits = limits
        self._config = config
        self._is_initialised = False
        self._metadata: PluginMetadata
        self.stage = record.stage
        self.seconds: dict[str, float] = {}

    async def prepare(self, place: Runtime) -> None:
        """Go through load and init.

        Raises:
            StageError: one failed.
        """
        self._is_initialised = False
        with self._timed("load"):
            self._metadata = await place.load(self._limits.load_s)
        with self._timed("init"):
            self._check_config(place)
            await place.init(self._config, self._limits.init_s)
        self._is_initialised = True

    async def begin(self, place: Runtime, host: HostAPI) -> Manifest:
        """Go through start and tools, after `prepare`, and return the plugin's live manifest.

        Raises:
            StageError: one failed.
        """
        with self._timed("start"):
            await place.start(host, self._limits.start_s)
        with self._timed("tools"):
            listing = await place.tools(self._limits.start_s)
        known, source = self._record.manifest, self._record.source
        return Manifest(
            sdk_contract=known.sdk_contract if known else CONTRACT,  # it was built with; nothing tells it live
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            attribute=known.attribute if known else source.attribute if source else None,
            metadata=self._metadata,
            tools=tuple(listing.definitions),
            tool_faults=listing.faults,
            config_schema=known.config_schema if known else None,
        )

    async def down(self, place: Runtime, limit_s: float) -> None:
        """Stop the plugin, if its `init` ended.

        Raises:
            StageError: `stop` failed.
        """
        if not self._is_initialised:
            return
        self._is_initialised = False
        with self._timed("stop", is_a_step=False):
            await place.stop(limit_s)

    async def check(self, place: Runtime) -> None:
        """Ask the plugin for its health.

        Raises:
            StageError: it is not well.
        """
        with self._timed("health", is_a_step=False):
            await place.health(self._limits.health_timeout_s)

    @contextlib.contextmanager
    def _timed(self, stage: str, *, is_a_step: bool = True) -> Iterator[None]:
        if is_a_step:
            self.stage = stage
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = time.monotonic() - started

    def _check_config(self, place: Runtime) -> None:
        """Hold the entry's `config` against the plugin's schema, where the plugin does not do so itself."""
        schema = self._record.manifest.config_schema if self._record.manifest else None
        if not schema or place.checks_config:
            return
        try:
            faults = CompiledSchema(schema, close=False).faults(dict(self._config))
        except SchemaInvalidError as error:
            raise StageError(
                f"its config_schema cannot be used: {error.what}", stage="init", mend=error.mend
            ) from error
        if faults:
            told = "; ".join(f"{fault.path or '/'}: {fault.message}" for fault in faults)
            raise StageError(
                f"the configuration does not fit: {told}",
                stage="init",
                pointers=tuple((fault.path, fault.message) for fault in faults),
                mend="correct the `config` of the plugin's entry",
            )
