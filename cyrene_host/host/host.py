"""The host: settings, plugins, pipeline and their lives, put together in one place."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread

from cyrene_host.call.context import CallContext
from cyrene_host.call.hooks import Hooks
from cyrene_host.call.pipeline import Pipeline
from cyrene_host.call.policy import Approver
from cyrene_host.catalog.accepted import Accepted
from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.secrets import Redactor
from cyrene_host.catalog.state import PluginState
from cyrene_host.catalog.vouched import Vouched
from cyrene_host.errors import HostStateError
from cyrene_host.host.api import Offer, PluginAccess
from cyrene_host.host.changes import Changes, Standing, changes, stands_for
from cyrene_host.host.hook_packages import hook_packages
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.outlets import Asker, Messenger, Outlets
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

if TYPE_CHECKING:
    from cyrene_host.record.execution import Execution
    from cyrene_host.record.instances import HostKind

__all__ = ["Host", "Opening"]

_log = logging.getLogger("cyrene.host")


class Host:
    """Plugins at work: `async with Host.open("plugins.json") as host:`.

    Attributes:
        plugins: list, get and explain plugins.
        tools: list, get, register and explain tools.
        executions: list, read, follow and cancel calls that run long or wait for a person.
        approvals: list and decide calls that wait for a person.
        audit: the log of all calls: read, verify, export.
        notifications: what plugins left for users.
    """

    _sleep = staticmethod(anyio.sleep)  # with the clock, the time between restarts: replaced in tests
    _clock = staticmethod(time.monotonic)

    def __init__(
        self, read: Callable[[], Inventory], *, outlets: Outlets, start: Literal["all", "called"], kind: HostKind
    ) -> None:
        from cyrene_host.host.desk import Desk

        if not logging.getLogger("cyrene").handlers:  # a program that sets up no log sees none
            logging.getLogger("cyrene").addHandler(logging.NullHandler())
        inventory = read()
        self._read = read
        self._inventory = inventory
        self._folder = inventory.base.resolve()
        self._start = start
        self._is_open = False
        self._hooks = Hooks(hook_packages(inventory))
        self._lives: dict[str, Life] = {}
        self._places = Places(inventory.state_dir)
        self._marks = FailureMarks(inventory.state_dir)
        self._supervisor = Supervisor(
            inventory.catalog, self._lives, stop_total_s=inventory.settings.limits.stop_total_s
        )
        self._standing = _standing(inventory)
        for record in inventory.catalog.plugins.values():
            self._take_in(record)
        self._registry = Registry(
            inventory.settings, inventory.catalog, self._lives, accepted=Accepted(inventory.state_dir).read
        )
        self._vouch()
        desk = self._desk = Desk(inventory, self._registry, kind=kind)
        self._pipeline = Pipeline(
            self._registry,
            hooks=self._hooks,
            approver=outlets.approver,
            desk=desk.executions,
            recorder=desk.auditor,
        )
        desk.serve(self._pipeline)
        self._offer = Offer(
            storage=desk.records.storage,
            call=self._pipeline.call_from,
            may_call=lambda name: self._inventory.catalog.needed_by(name) | {name},
            notify=desk.records.notifications.leave,
            redact=self._redacted,
            outlets=outlets,
        )
        self._changing = anyio.Lock()  # one reload or restart at a time
        self.plugins = Plugins(self._lives, self._registry, switch=self._switch, restart=self._restart)
        self.tools = Tools(self._registry, self.plugins)
        self.executions = desk.executions
        self.approvals = desk.approvals
        self.audit = desk.audit
        self.notifications = desk.records.notifications

    @classmethod
    def open(
        cls,
        plugins: str | Path | None = None,
        *,
        config: str | Path | None = None,
        overrides: Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        messenger: Messenger | None = None,
        asker: Asker | None = None,
        start: Literal["all", "called"] = "all",
        only: str | None = None,
        kind: HostKind | None = None,
    ) -> Opening:
        """Open a host; use it as `async with Host.open(…) as host:`.

        Args:
            plugins: plugins.json; None looks at `CYRENE_PLUGINS`, then in the current folder.
            config: cyrene.toml; None looks at `CYRENE_CONFIG`, then beside plugins.json.
            overrides: settings by dotted name, such as `danger.high`, above file and environment.
            approver: asks a person where the danger policy says `confirm`; without one such calls wait in
                `host.approvals`.
            messenger: delivers what plugins send to conversations; without one they cannot.
            asker: asks a person what a plugin wants to know; without one plugins are told None.
            start: `all` starts every plugin before the body runs, `called` each with its first call.
            only: describe no other plugin than this one and what it needs.
            kind: `resident`, alone on its state directory, or `command`, beside others of its kind; left out, a
                host that starts all is resident.
        Raises:
            PluginsFileError, SettingsError: a file that cannot be used, with all its faults.
            StartAbortedError: a plugin with `on_failure: abort` did not start.
            HostStateError: `start` is none of the two words, or a hook package that is enabled is not there.
            StateInUseError: another host is at work on the state directory; its process id is told.
        """
        if start not in ("all", "called"):
            raise HostStateError(
                f"'{start[:80]}' is no way to start", where="Host.open, start", mend="write 'all' or 'called'"
            )
        read = functools.partial(
            Inventory.read, plugins, config=config, overrides=overrides, only=only, vouched=Vouched
        )
        kind = kind or ("resident" if start == "all" else "command")
        return Opening(read, outlets=Outlets(approver, messenger, asker), start=start, kind=kind)

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
        if context is not None and (context.idempotency_key or context.approval_id):
            return self._call_again(str(name), arguments, context, deadline_s)
        # A model's answer may hold anything in the place of a name.
        return self._pipeline.call(str(name), arguments, context, deadline_s)

    async def start_execution(
        self,
        name: str,
        arguments: object = None,
        *,
        context: CallContext | None = None,
        deadline_s: float | None = None,
    ) -> Execution:
        """Begin a call and return its execution at once; `host.executions` follows, reads and cancels it.

        It goes on whatever becomes of the caller, and ends with the host at the latest. A call that cannot be made
        is an execution that has failed, with the same error in its `result` that `call` would return. Under an
        idempotency key that was used for it before it is the execution of then.

        Args:
            name, arguments, context, deadline_s: as for `call`.
        Raises:
            HostStateError: the host is not open.
            CallFailedError: another host is at work on the state directory (`plugin_unavailable`), or the
                idempotency key was used for another call (`denied`).
            StoreError: whether the idempotency key was used before cannot be told.
        """
        self._check_open("start_execution")
        if context is not None and context.idempotency_key:
            return await self._desk.start_again(str(name), arguments, context, deadline_s)
        return await self.executions.start(
            str(name), arguments, context=context or CallContext(), deadline_s=deadline_s
        )

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
            if self._start == "all":
                await self._desk.records.claim()
            self._is_open = True
            await anyio.to_thread.run_sync(self._places.clear)
            if self._start == "all":
                if self._desk.records.is_resident:
                    self._supervisor.spawn(self._desk.take_up)
                    self._supervisor.spawn(self._desk.forget)
                self._supervisor.watch(self._inventory.settings.limits.health_every_s)
                await self._supervisor.start_all()
                self._supervisor.demand()
        except BaseException:  # also who waits for it may leave: nothing stays behind
            await self._close()
            raise

    async def _close(self) -> None:
        self._is_open = False
        with anyio.CancelScope(shield=True):
            await self._desk.end_all()
            try:
                await self._supervisor.close()
            finally:
                await self._places.close()
                await self._desk.close()

    async def _call_again(
        self, name: str, arguments: object, context: CallContext, deadline_s: float | None
    ) -> ToolResult:
        return await self._desk.call_again(
            name, arguments, context, lambda context: self._pipeline.call(name, arguments, context, deadline_s)
        )

    async def _activate(self, name: str) -> None:
        """Start a plugin for a call."""
        await self._desk.records.claim_for_call()
        await self._supervisor.activate(name)

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
        self._folder = inventory.base.resolve()
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
            config=PluginConfig(standing.config, name=record.name, version=version, folder=self._folder),
            redactor=Redactor(standing.secrets) if standing.secrets else None,
            surroundings=Surroundings(
                store=self._inventory.store,
                api=lambda name: PluginAccess(name, self._inventory.state_dir / "data" / name, self._offer),
                announce=self._hooks.plugin_state_changed,
                redefined=self._redefined,
                activate=self._activate,
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

    def _redacted(self, name: str, text: str) -> str:
        """Return a plugin's text without its secrets."""
        life = self._lives.get(name)
        return text if life is None or life.redactor is None else life.redactor.redact(text)

    def _redefined(self, name: str) -> None:
        _log.info("the tools of plugin '%s' are read anew", name)
        self._registry.rebuild()


class Opening:
    """A host that is about to open; `async with` opens and closes it."""

    def __init__(
        self, read: Callable[[], Inventory], *, outlets: Outlets, start: Literal["all", "called"], kind: HostKind
    ) -> None:
        self._read = read
        self._outlets = outlets
        self._kind: HostKind = kind
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
        return Host(self._read, outlets=self._outlets, start=self._start, kind=self._kind)


def _standing(inventory: Inventory) -> dict[str, Standing]:
    return {name: stands_for(record, inventory) for name, record in inventory.catalog.plugins.items()}
