"""The tools of a host, compiled for calling, and the one resolver of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cyrene_host.call.tool import CallableTool, Provider
from cyrene_host.catalog.accepted import Acceptance, ChangedDefinition
from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.entries import Limits
from cyrene_host.catalog.names import NamedTool, NameMode, ToolNames
from cyrene_host.catalog.schemas import SchemaInvalidError
from cyrene_host.catalog.settings import Settings
from cyrene_host.errors import CallFailedError
from cyrene_host.host.standing import policy_of, standing_of
from cyrene_host.host.tool_schemas import compile_schemas
from cyrene_host.host.unknown import unknown_tool
from cyrene_host.supervise.life import Life
from cyrene_sdk.errors import CyreneError, DefinitionError, ErrorKind
from cyrene_sdk.types import ToolComplexity

__all__ = ["Registry"]


class Registry:
    """Every tool by every spelling that means it; the index of the call pipeline.

    Args:
        settings: danger policy and the way names are offered.
        lives: the plugins behind the tools, by entry name.
        accepted: reads which definitions were accepted: one that has changed since is withheld.
    """

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        lives: Mapping[str, Life],
        *,
        accepted: Callable[[], Mapping[str, Acceptance]] = dict,
    ) -> None:
        self._settings = settings
        self._read_accepted = accepted
        self._catalog = catalog
        self._lives = lives
        self._own: dict[str, CallableTool] = {}
        self._listed: dict[str, CatalogTool] = {}
        self._compiled: dict[str, CallableTool] = {}  # of those listed
        self._known_names: ToolNames | None = None
        self._found: dict[str, CallableTool] = {}  # by the spellings that were called
        self.rebuild()

    def take(self, settings: Settings, catalog: Catalog) -> None:
        """Go by other settings and another catalog from now on."""
        self._settings, self._catalog = settings, catalog
        self.rebuild()

    def rebuild(self) -> None:
        """Take the tools anew, after a plugin's definitions changed; those that nobody vouches for are compiled now."""
        self._accepted = self._read_accepted()
        self._policy = policy_of(self._settings)
        self._listed = {tool.id: tool for tool in self._catalog.tools}
        self._compiled.clear()
        for tool_id, tool in self._listed.items():
            if not tool.is_vouched:
                self._tool(tool_id)
        self._known_names = None
        self._found.clear()

    def add(self, tool: CatalogTool, provider: Provider) -> CallableTool:
        """Add a tool of the embedding program.

        Raises:
            DefinitionError: a plugin has the name that stands before the program's tools.
            SchemaInvalidError: its schema cannot be used.
        """
        if tool.plugin in self._lives:
            raise DefinitionError(
                f"the tool '{tool.id}' would be one of the plugin '{tool.plugin}'",
                where=self._lives[tool.plugin].record.place,
                mend=f"give the plugin another name: '{tool.plugin}' stands before the program's own tools",
            )
        compiled = self._callable(tool, provider)
        if compiled.fault is not None:
            raise compiled.fault
        if tool.id in self._own or tool.id in self._listed:
            self._known_names = None  # the spellings of the one that is replaced go
        elif self._known_names is not None:
            self._known_names.add(_named(compiled))
        self._own[tool.id] = compiled
        self._found.clear()
        return compiled

    def tools(self) -> list[CallableTool]:
        """Return all tools, those that cannot be called too."""
        return [self._tool(tool_id) for tool_id in {**self._own, **self._listed}]

    def faults(self, tools: Iterable[CatalogTool]) -> tuple[CyreneError, ...]:
        """Return what is wrong with a plugin's tools; one that is vouched for and was not called has nothing."""
        compiled = (self._compiled.get(tool.id) for tool in tools)
        return tuple(tool.fault for tool in compiled if tool is not None and tool.fault is not None)

    def offered(self, tool_id: str, mode: NameMode | None = None) -> str:
        """Return the name that models see for a tool."""
        return self._names.offered(tool_id, mode or self._settings.tools.names or "short")

    def find(self, name: str) -> CallableTool:
        """Return the tool that a spelling means, one that is switched off too.

        Raises:
            CallFailedError: `unknown_tool`; or `plugin_unavailable`, where the plugin's tools are not known.
        """
        tool_id = self._names.resolve(name)
        if tool_id is None:
            life = self._lives.get(name.partition(".")[0])
            undescribed = life if life is not None and life.record.manifest is None else None
            raise unknown_tool(name, self._names, undescribed)
        return self._tool(tool_id)

    def has(self, tool_id: str) -> bool:
        """Whether there is a tool with this id."""
        return tool_id in self._listed or tool_id in self._own

    def changed(self) -> list[ChangedDefinition]:
        """Return the tools whose definition is another than the accepted one."""
        found = []
        for tool_id, accepted in self._accepted.items():
            if self.has(tool_id) and (tool := self._tool(tool_id)).fingerprint != accepted.fingerprint:
                at, by = accepted.accepted_at, accepted.accepted_by
                now = tool.definition.to_dict()
                found.append(ChangedDefinition(tool_id, accepted.definition, now, at, by))
        return found

    def resolve(self, name: str) -> CallableTool:
        """Return the tool that a call means.

        Raises:
            CallFailedError: as `find`; or `denied`, where the operator withholds the tool.
        """
        tool = self._found.get(name)
        if tool is None:
            tool = self._found[name] = self.find(name)
        withheld = tool.withheld
        if withheld is None:
            return tool
        raise CallFailedError(
            ErrorKind.DENIED, withheld.what, plugin=tool.provider.name, where=withheld.where, mend=withheld.mend
        )

    @property
    def _names(self) -> ToolNames:
        """Made when a name is first needed: a host that is only opened needs none."""
        if self._known_names is None:
            self._known_names = ToolNames([*map(_named, self._own.values()), *self._catalog.named_tools()])
        return self._known_names

    def _tool(self, tool_id: str) -> CallableTool:
        tool = self._own.get(tool_id) or self._compiled.get(tool_id)
        if tool is None:
            listed = self._listed[tool_id]
            tool = self._compiled[tool_id] = self._callable(listed, self._lives[listed.plugin])
        return tool

    def _callable(self, tool: CatalogTool, provider: Provider) -> CallableTool:
        schema = returns = None
        fault = tool.fault
        if fault is None:
            try:
                schema, returns = compile_schemas(tool)
            except SchemaInvalidError as error:
                fault = error
        life = self._lives.get(tool.plugin)
        standing = standing_of(tool, life.record.entry if life is not None else None, self._settings, self._accepted)
        return CallableTool(
            id=tool.id,
            name=tool.definition.name,
            provider=provider,
            definition=tool.definition,
            schema=schema,
            returns=returns,
            danger=standing.danger,
            decision=standing.decision,
            policy=self._policy,
            limit_s=_limit_s(tool, life),
            idle_s=_idle_s(tool, life),
            fault=fault,
            secret_arguments=frozenset(tool.definition.secret_arguments),
            withheld=standing.withheld,
        )


def _named(tool: CallableTool) -> NamedTool:
    return NamedTool(tool.provider.name, tool.name, tool.definition.id)


def _idle_s(tool: CatalogTool, life: Life | None) -> float | None:
    if tool.definition.complexity is not ToolComplexity.COMPLEX:
        return None
    return (life.limits if life is not None else Limits()).idle_s


def _limit_s(tool: CatalogTool, life: Life | None) -> float:
    definition = tool.definition
    if definition.complexity is ToolComplexity.COMPLEX and definition.timeout_ms is None:
        return (life.limits if life is not None else Limits()).max_duration_s
    return definition.limit_ms / 1000
