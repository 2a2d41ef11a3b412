"""The tools of an open host, for programs and surfaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from cyrene_host.call.admission import Admission
from cyrene_host.call.tool import CallableTool
from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.entries import Limits
from cyrene_host.catalog.names import NameMode
from cyrene_host.catalog.secrets import Redactor
from cyrene_host.catalog.state import CALLABLE_STATES, PluginState
from cyrene_host.errors import CallFailedError
from cyrene_host.host.plugins import Plugins
from cyrene_host.host.registry import Registry
from cyrene_host.host.views import ToolReport
from cyrene_host.host.why import Why, why_own, why_tool, why_unknown
from cyrene_host.supervise.life import Life
from cyrene_sdk._worker.runner import Runner
from cyrene_sdk.errors import DefinitionError
from cyrene_sdk.protocols import Tool
from cyrene_sdk.tools import ToolOptions, function_tool

__all__ = ["OWN_PLUGIN", "Tools"]

OWN_PLUGIN = "app"
"""The name that stands before the tools of the embedding program."""


class Tools:
    """`host.tools`: list, get and explain tools, and register the embedding program's own."""

    def __init__(self, registry: Registry, plugins: Plugins) -> None:
        self._registry = registry
        self._plugins = plugins
        self._own = _OwnPlugin()

    def list(self, *, mode: NameMode | None = None) -> list[ToolReport]:
        """Return a report on every tool.

        Args:
            mode: `short` or `qualified` names for models; None as `[tools] names` says.
        """
        return [self._report(tool, mode) for tool in self._registry.tools()]

    def get(self, name: str) -> ToolReport:
        """Return the report on one tool, by any spelling that means it.

        Raises:
            CallFailedError: there is no such tool, or the name means several.
        """
        return self._report(self._registry.find(name), None)

    def register(self, tool: Tool | Callable[..., Any], **options: Unpack[ToolOptions]) -> ToolReport:
        """Add a function of the embedding program as a tool; it goes through the same pipeline as any other.

        Args:
            tool: a typed function (`def` or `async def`), or an object of the Tool protocol.
            options: fields of ToolDefinition for a function, such as `danger_level="low"`.
        Returns:
            The report; its id is `app.<name>`.
        Raises:
            DefinitionError: a parameter is untyped, an option is unknown or given beside a Tool, or a plugin is
                named `app`.
            SchemaInvalidError: the parameters cannot be used as a schema.
        """
        if not isinstance(tool, Tool):
            tool = function_tool(tool, **options)
        elif options:
            raise DefinitionError(
                f"options were given beside the tool {type(tool).__name__}: {', '.join(options)}",
                where="host.tools.register",
                mend="say them in its definition: only a function takes options",
            )
        definition = self._own.runner.adopt(tool)
        return self._report(self._registry.add(CatalogTool(OWN_PLUGIN, definition), self._own), None)

    def why(self, name: str) -> Why:
        """Return why a tool, or all of a plugin, can be called or not; names that mean nothing are answered too."""
        try:
            tool = self._registry.find(name)
        except CallFailedError as error:
            known = any(report.name == name for report in self._plugins.list())
            return self._plugins.why(name) if known else why_unknown(name, error)
        report = self._report(tool, None)
        return why_own(report) if tool.provider is self._own else why_tool(report, self._plugins.get(report.plugin))

    def _report(self, tool: CallableTool, mode: NameMode | None) -> ToolReport:
        provider = tool.provider
        state = provider.state if isinstance(provider, Life) else PluginState.STARTED
        return ToolReport(
            id=tool.id,
            name=self._registry.offered(tool.id, mode),
            plugin=provider.name,
            definition=tool.definition,
            danger=tool.danger,
            decision=tool.decision,
            is_offered=tool.withheld is None and tool.fault is None and state in CALLABLE_STATES,
            state=state,
            error=tool.fault,
            withheld=tool.withheld,
        )


class _OwnPlugin:
    """The provider behind the embedding program's own tools."""

    name = OWN_PLUGIN
    redactor: Redactor | None = None

    def __init__(self) -> None:
        limits = Limits()
        self.runner = Runner(None, grace_s=limits.kill_grace_s, threads=limits.concurrency)
        self.runtime: Runner | None = self.runner
        self.admission = Admission(concurrency=limits.concurrency, queue_size=limits.queue_size)

    async def ready(self) -> Runner:
        """Return the runner, which is there from the beginning."""
        return self.runner
