"""The host: settings, plugins, pipeline and their lives, put together in one place."""

from __future__ import annotations

import functools
import importlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import anyio
import anyio.to_thread

from cyrene_host.call.context import CallContext
from cyrene_host.call.hooks import Hooks
from cyrene_host.call.pipeline import Pipeline
from cyrene_host.call.policy import Approver
from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.secrets import Redactor
from cyrene_host.catalog.state import PluginState
from cyrene_host.catalog.vouched import Vouched
from cyrene_host.errors import HostStateError
from cyrene_host.host.api import PluginAccess
from cyrene_host.host.changes import Changes, Standing, changes, stands_for
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.plugins import Plugins
from cyrene_host.host.registry import Registry
from cyrene_host.host.tools import Tools
from cyrene_host.host.views import PluginReport
from cyrene_host.runtimes.places import Places
from cyrene_host.supervise.life import Life, Surroundings
from cyrene_host.supervise.marks import FailureMarks
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

    _sleep = staticmethod(anyio.sleep)  # with the clock, the time between restarts: replaced in tests
    _clock = staticmethod(time.monotonic)

    def __init__(
        self, read: Callable[[], Inventory], *, approver: Approver | None, start: Literal["all", "called"]
    ) -> None:
        if not logging.getLogger("cyrene").handlers:  # a program that sets up no log sees none
            logging.getLogger("cyrene").addHandler(logging.NullHandler())
        inventory = read()
        self._read = read
        self._inventory = inventory
        self._start = start
        self._is_open = False
        self._hooks = Hooks(_hook_packages(inventory))
        self._lives: dict[str, Life] = {}
        self._places = Places(inventory.state_dir)
        self._marks = FailureMarks(inventory.state_dir)
        self._supervisor = Supervisor(
            inventory.catalog, self._lives, stop_total_s=inventory.settings.limits.stop_total_s
        )
        self._standing = _standing(inventory)
        for record in inventory.catalog.plugins.values():
            self._take_in(record)
        self._registry = Registry(inventory.settings, inventory.catalog, self._lives)
        self._vouch()
        self._pipeline = Pipeline(self._registry, hooks=self._hooks, approver=approver)
        self._changing = anyio.Lock()  # one reload or restart at a time
        self.plugins = Plugins(self._lives, self._registry, switch=self._switch, restart=self._restart)
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
            overrides: settings by dotted name, such as `danger.high`, above file and environment.
            approver: asks a person where the danger policy says `confirm`; without one such calls are refused.
            start: `all` starts every plugin before the body runs, `called` each with its first call.
            only: describe no other plugin than this one and what it needs.
        Raises:
            PluginsFileError, SettingsError: a file that cannot be used, with all its faults.
            StartAbortedError: a plugin with `on_failure: abort` did not start.
            HostStateError: `start` is none of the two words, or a hook package that is enabled is not there.
        """
        if start not in ("all", "called"):
            raise HostStateError(
                f"'{start[:80]}' is no way to start", where="Host.open, start", mend="write 'all' or 'called'"
            )
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
            HostStateError: the host is not open, or was opened in another event loop. Nothing a plugin or a
                model does raises.
        Source: MCP 2025-11-25 tools/call; JSON Schema 2020-12 (validation).
        """
        if not self._is_open:
            raise HostStateError(
                "the host is not open", where="Host.call", mend="call inside `async with Host.open(…) as host:`"
            )
        # A model's answer may hold anything in the place of a name.
        return self._pipeline.call(str(name), arguments, context=context, deadline_s=deadline_s)

    async def health(self) -> list[PluginReport]:
        """Ask all started plugins for their health, side by side, and report on every plugin."""
        await self._supervisor.check_all()
        return self.plugins.list()

    async def reload(self) -> Changes:
        """Read settings, plugins.json and the plugins' files again; stop, start and restart only what changed.

        Calls under way finish first, where they do within 5 s. What cannot be read changes nothing.

        Raises:
            HostStateError: the host is not open.
            PluginsFileError, SettingsError: with all faults of the file.
        """
        async with self._changing:
            return await self._reload()

    @property
    def notes(self) -> list[str]:
        """What the operator should know though nothing is wrong."""
        return [*self._inventory.catalog.notes, *self._inventory.store.notes]

    async def _enter(self) -> None:
        try:
            await self._supervisor.open()
            self._pipeline.belong()
            self._is_open = True
            await anyio.to_thread.run_sync(self._places.clear)
            if self._start == "all":
                self._supervisor.watch(self._inventory.settings.limits.health_every_s)
                await self._supervisor.start_all()
                self._supervisor.demand()
        except BaseException:  # also who waits for it may leave: nothing stays behind
            await self._close()
            raise

    async def _close(self) -> None:
        self._is_open = False
        try:
            await self._supervisor.close()
        finally:
            with anyio.CancelScope(shield=True):
                await self._places.close()

    async def _reload(self) -> Changes:
        """Do what `reload` says, one at a time."""
        self._check_open("reload")
        inventory = await anyio.to_thread.run_sync(self._read)
        catalog, standing = inventory.catalog, await anyio.to_thread.run_sync(_standing, inventory)
        found = changes(self._standing, standing)
        for name in found.unchanged:
            self._lives[name].record.switched = catalog.plugins[name].switched
            catalog.plugins[name] = self._lives[name].record
        await self._supervisor.stop([*found.removed, *found.changed])
        for name in found.removed:
            del self._lives[name]
        self._inventory, self._standing = inventory, standing
        for name in (*found.changed, *found.added):
            self._take_in(catalog.plugins[name])
        for name in catalog.plugins:  # in the order of plugins.json again
            self._lives[name] = self._lives.pop(name)
        self._registry.take(inventory.settings, catalog)
        self._vouch()
        self._supervisor.take(catalog)
        if self._start == "all":
            await self._supervisor.start_all()
        return found

    async def _switch(self, name: str, is_on: bool) -> None:
        self._check_open("plugins")
        self._inventory.switches.set(name, is_on)
        await self.reload()

    async def _restart(self, name: str) -> None:
        async with self._changing:
            self._check_open("plugins.restart")
            if self._lives[name].record.state is not PluginState.DISCOVERED:
                await self._reload()  # nothing but its files can have mended it
            if name in self._lives:
                await self._supervisor.restart(name)

    def _check_open(self, what: str) -> None:
        if not self._is_open:
            raise HostStateError(
                "the host is not open", where=f"Host.{what}", mend="use it inside `async with Host.open(…) as host:`"
            )

    def _take_in(self, record: CatalogPlugin) -> None:
        standing = self._standing[record.name]
        version = record.manifest.metadata.version if record.manifest else ""
        self._lives[record.name] = Life(
            record,
            limits=standing.limits,
            config=PluginConfig(
                standing.config, name=record.name, version=version, folder=self._inventory.base.resolve()
            ),
            redactor=Redactor(standing.secrets) if standing.secrets else None,
            surroundings=Surroundings(
                store=self._inventory.store,
                api=lambda name: PluginAccess(name, self._inventory.state_dir / "data" / name),
                announce=self._hooks.plugin_state_changed,
                redefined=self._redefined,
                activate=self._supervisor.activate,
                spawn=self._supervisor.spawn,
                marks=self._marks,
                place=self._places.make,
                sleep=self._sleep,
                clock=self._clock,
            ),
        )

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

    def __init__(
        self, read: Callable[[], Inventory], *, approver: Approver | None, start: Literal["all", "called"]
    ) -> None:
        self._read = read
        self._approver = approver
        self._start: Literal["all", "called"] = start
        self._host: Host | None = None

    async def __aenter__(self) -> Host:
        if self._host is not None:
            raise HostStateError(
                "this host is open already", where="Host.open", mend="open another one: Host.open(…) again"
            )
        host = await anyio.to_thread.run_sync(self._made)
        await host._enter()  # noqa: SLF001 - this class is the host's own door
        self._host = host
        return host

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._host is not None
        host, self._host = self._host, None
        await host._close()  # noqa: SLF001

    def _made(self) -> Host:
        return Host(self._read, approver=self._approver, start=self._start)


def _standing(inventory: Inventory) -> dict[str, Standing]:
    return {name: stands_for(record, inventory) for name, record in inventory.catalog.plugins.items()}


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
