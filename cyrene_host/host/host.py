"""The host: settings, plugins, pipeline and their lives, put together in one place."""

from __future__ import annotations

import functools
import importlib
import logging
import os
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import anyio.to_thread

from cyrene_host.call.context import CallContext
from cyrene_host.call.hooks import Hooks
from cyrene_host.call.pipeline import Pipeline
from cyrene_host.call.policy import Approver
from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.secrets import Redactor, SecretError, resolve
from cyrene_host.catalog.settings import limits_for
from cyrene_host.catalog.state import PluginState
from cyrene_host.catalog.vouched import Vouched
from cyrene_host.errors import HostStateError
from cyrene_host.host.api import PluginAccess
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.plugins import Plugins
from cyrene_host.host.registry import Registry
from cyrene_host.host.tools import Tools
from cyrene_host.host.views import PluginReport
from cyrene_host.supervise.life import Life, Surroundings
from cyrene_host.supervise.supervisor import Supervisor
from cyrene_sdk.protocols import PluginConfig
from cyrene_sdk.types import ToolResult

__all__ = ["Host", "Opening"]

_log = logging.getLogger("cyrene.host")


class Host:
    """Plugins at work: `async with Host.open("plugins.json") as host:`.

    Attributes:
        plugins: list, get and explain plugins.
        tools: list, get, register and explain tools.
    """

    def __init__(self, inventory: Inventory, *, approver: Approver | None, start: Literal["all", "called"]) -> None:
        logging.getLogger("cyrene").addHandler(logging.NullHandler())  # a program that sets up no log sees none
        self._inventory = inventory
        self._start = start
        self._is_open = False
        self._hooks = Hooks(_hook_packages(inventory))
        self._lives: dict[str, Life] = {}
        self._supervisor = Supervisor(
            inventory.catalog, self._lives, stop_total_s=inventory.settings.limits.stop_total_s
        )
        self._lives.update((name, self._life(record)) for name, record in inventory.catalog.plugins.items())
        self._registry = Registry(inventory.settings, inventory.catalog, self._lives)
        self._vouch()
        self._pipeline = Pipeline(self._registry, hooks=self._hooks, approver=approver)
        self.plugins = Plugins(self._lives, self._registry)
        self.tools = Tools(self._registry, self.plugins)

    @classmethod
    def open(
        cls,
        plugins: str | Path | None = None,
        *,
        config: str | Path | None = None,
        overrides: Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        start: Literal["all", "called"] = "all",
        only: str | None = None,
    ) -> Opening:
        """Open a host; use it as `async with Host.open(…) as host:`.

        Args:
            plugins: plugins.json; None looks at `CYRENE_PLUGINS`, then in the current folder.
            config: cyrene.toml; None looks at `CYRENE_CONFIG`, then beside plugins.json.
            overrides: settings by dotted name, above file and environment.
            approver: asks a person where the danger policy says `confirm`; without one such calls are refused.
            start: `all` starts every plugin before the body runs, `called` each with its first call.
            only: describe no other plugin than this one and what it needs.
        Raises:
            PluginsFileError, SettingsError: a file that cannot be used, with all its faults.
            StartAbortedError: a plugin with `on_failure: abort` did not start.
        """
        read = functools.partial(
            Inventory.read, plugins, config=config, overrides=overrides, only=only, vouched=Vouched
        )
        return Opening(read, approver=approver, start=start)

    def call(
        self,
        name: str,
        arguments: object = None,
        *,
        context: CallContext | None = None,
        deadline_s: float | None = None,
    ) -> Coroutine[Any, Any, ToolResult]:
        """Run one tool and return its checked result: `await host.call(…)`.

        Arguments are gated and validated before any plugin code runs.

        Args:
            name: a tool id (`plugin.tool`), or any spelling that means one tool.
            arguments: a JSON object, or its text (at most 1 MiB, depth 64); None means no arguments.
            context: who asks and from where; by default this program.
            deadline_s: seconds for all attempts together; None leaves each attempt its own limit.
        Returns:
            The result; `error_kind` says what went wrong, `attempts` how often it was tried.
        Raises:
            HostStateError: the host is not open. Nothing a plugin or a model does raises.
        Source: MCP 2025-11-25 tools/call; JSON Schema 2020-12 (validation).
        """
        if not self._is_open:
            raise HostStateError(
                "the host is not open", where="Host.call", mend="call inside `async with Host.open(…) as host:`"
            )
        return self._pipeline.call(name, arguments, context=context, deadline_s=deadline_s)

    async def health(self) -> list[PluginReport]:
        """Ask all started plugins for their health, side by side, and report on every plugin."""
        await self._supervisor.check_all()
        return self.plugins.list()

    @property
    def notes(self) -> list[str]:
        """What the operator should know though nothing is wrong."""
        return [*self._inventory.catalog.notes, *self._inventory.store.notes]

    async def _enter(self) -> None:
        await self._supervisor.open()
        self._is_open = True
        if self._start == "all":
            try:
                await self._supervisor.start_all()
            except BaseException:  # cancelled, too: `async with` does not close what it did not open
                await self._close()
                raise

    async def _close(self) -> None:
        self._is_open = False
        await self._supervisor.close()

    def _life(self, record: CatalogPlugin) -> Life:
        settings = self._inventory.settings
        entry = record.entry or PluginEntry(name="unusable")
        values, secrets = self._resolved(record, entry)
        version = record.manifest.metadata.version if record.manifest else ""
        return Life(
            record,
            limits=limits_for(entry, settings),
            config=PluginConfig(values, name=record.name, version=version),
            redactor=Redactor(secrets) if secrets else None,
            surroundings=Surroundings(
                store=self._inventory.store,
                api=lambda name: PluginAccess(name, self._inventory.state_dir / "data" / name),
                announce=self._hooks.plugin_state_changed,
                redefined=self._redefined,
                activate=self._supervisor.activate,
            ),
        )

    def _resolved(self, record: CatalogPlugin, entry: PluginEntry) -> tuple[Mapping[str, Any], frozenset[str]]:
        where = f"{entry.where}/config" if entry.where else ""
        try:
            return resolve(entry.config, self._inventory.base, os.environ, plugin=record.name, where=where)
        except SecretError as error:
            if record.state is PluginState.DISCOVERED:
                record.fail(PluginState.BLOCKED, error, "check")
            return {}, frozenset()

    def _vouch(self) -> None:
        """Let the next start believe the manifests whose tools were all found good."""
        plugins = self._inventory.catalog.plugins.values()
        self._inventory.store.vouch(
            plugin.manifest
            for plugin in plugins
            if plugin.manifest is not None and not plugin.manifest.is_vouched
            if not self._registry.faults(plugin.tools)
        )

    def _redefined(self, name: str) -> None:
        _log.info("the tools of plugin '%s' are read anew", name)
        self._registry.rebuild()


class Opening:
    """A host that is about to open; `async with` opens and closes it."""

    def __init__(self, read: Any, *, approver: Approver | None, start: Literal["all", "called"]) -> None:
        self._read = read
        self._approver = approver
        self._start: Literal["all", "called"] = start
        self._host: Host | None = None

    async def __aenter__(self) -> Host:
        self._host = await anyio.to_thread.run_sync(self._made)
        await self._host._enter()  # noqa: SLF001 - this class is the host's own door
        return self._host

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._host is not None
        await self._host._close()  # noqa: SLF001

    def _made(self) -> Host:
        return Host(self._read(), approver=self._approver, start=self._start)


def _hook_packages(inventory: Inventory) -> list[tuple[str, object]]:
    """Import the hook packages that cyrene.toml enables, in its order."""
    found = {point.name: point for points in inventory.entry_points.hooks.values() for point in points}
    packages: list[tuple[str, object]] = []
    for name in inventory.settings.hooks.enabled:
        point = found.get(name)
        if point is None:
            raise HostStateError(
                f"there is no hook package '{name}'",
                where="cyrene.toml, [hooks] enabled",
                mend=f"install it, or take it out; installed are: {', '.join(found) or 'none'}",
            )
        module = importlib.import_module(point.module)
        packages.append((name, getattr(module, point.attribute) if point.attribute else module))
    return packages
