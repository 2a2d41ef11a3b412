"""Plugins and tools as an inventory alone tells of them, with nothing started and no schema compiled."""

from __future__ import annotations

from cyrene_host.catalog.accepted import Accepted, ChangedDefinition, fingerprint_of
from cyrene_host.catalog.catalog import CatalogPlugin
from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.names import NameMode
from cyrene_host.catalog.state import CALLABLE_STATES, PluginState
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.standing import standing_of
from cyrene_host.host.unknown import unknown_tool
from cyrene_host.host.views import PluginReport, ToolReport, plugin_report
from cyrene_host.host.why import Why, why_plugin, why_tool, why_unknown
from cyrene_host.supervise.marks import FailureMarks, GivenUpError
from cyrene_sdk.errors import CyreneError

__all__ = ["Listing"]


class Listing:
    """What `host.plugins` and `host.tools` list, without a host; a plugin that was given up counts as failed.

    A tool's schema is compiled only where `why` asks for that tool, so a faulty one is not seen in the lists.
    """

    def __init__(self, inventory: Inventory) -> None:
        _fail_given_up(inventory)
        self._settings = inventory.settings
        self._catalog = inventory.catalog
        self._names = inventory.catalog.names
        self._accepted = Accepted(inventory.state_dir).read()

    def plugins(self) -> list[PluginReport]:
        """Return a report on every plugin, in the order of plugins.json."""
        return [plugin_report(record) for record in self._catalog.plugins.values()]

    def tools(self, *, mode: NameMode | None = None) -> list[ToolReport]:
        """Return a report on every tool.

        Args:
            mode: `short` or `qualified` names for models; None as `[tools] names` says.
        """
        plugins = self._catalog.plugins
        return [self._report(tool, record, mode, tool.fault) for record in plugins.values() for tool in record.tools]

    def changed(self) -> list[ChangedDefinition]:
        """Return the tools whose definition is another than the accepted one."""
        found = []
        for tool in self._catalog.tools:
            accepted = self._accepted.get(tool.id)
            if accepted is not None and accepted.fingerprint != fingerprint_of(tool.definition):
                now = tool.definition.to_dict()
                at, by = accepted.accepted_at, accepted.accepted_by
                found.append(ChangedDefinition(tool.id, accepted.definition, now, at, by))
        return found

    def why(self, name: str) -> Why:
        """Return why a tool, or all of a plugin, can be called or not; names that mean nothing are answered too."""
        tool_id = self._names.resolve(name)
        if tool_id is not None:
            return self._why_tool(tool_id)
        record = self._catalog.plugins.get(name)
        if record is not None:
            return why_plugin(plugin_report(record))
        record = self._catalog.plugins.get(name.partition(".")[0])
        undescribed = record if record is not None and record.manifest is None else None
        return why_unknown(name, unknown_tool(name, self._names, undescribed))

    def _why_tool(self, tool_id: str) -> Why:
        tool = next(tool for tool in self._catalog.tools if tool.id == tool_id)
        record = self._catalog.plugins[tool.plugin]
        return why_tool(self._report(tool, record, None, tool.fault or _schema_fault(tool)), plugin_report(record))

    def _report(
        self, tool: CatalogTool, record: CatalogPlugin, mode: NameMode | None, fault: CyreneError | None
    ) -> ToolReport:
        standing = standing_of(tool, record.entry, self._settings, self._accepted)
        return ToolReport(
            id=tool.id,
            name=self._names.offered(tool.id, mode or self._settings.tools.names or "short"),
            plugin=tool.plugin,
            definition=tool.definition,
            danger=standing.danger,
            decision=standing.decision,
            is_offered=standing.withheld is None and fault is None and record.state in CALLABLE_STATES,
            state=record.state,
            error=fault,
            withheld=standing.withheld,
        )


def _fail_given_up(inventory: Inventory) -> None:
    plugins = inventory.catalog.plugins
    usable = [record for record in plugins.values() if record.state is PluginState.DISCOVERED]
    for name, why in FailureMarks(inventory.state_dir).find_all(usable).items():
        plugins[name].fail(PluginState.FAILED, GivenUpError(plugins[name], why), "start")


def _schema_fault(tool: CatalogTool) -> CyreneError | None:
    from cyrene_host.host.tool_schemas import compile_schemas  # listing needs no compiler

    try:
        compile_schemas(tool)
    except CyreneError as error:
        return error
    return None
