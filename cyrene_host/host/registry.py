"""The tools of a host, compiled for calling, and the one resolver of their names."""

from __future__ import annotations

from collections.abc import Mapping

from cyrene_host.call.policy import effective_danger
from cyrene_host.call.tool import CallableTool, Provider
from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.names import NamedTool, NameMode, ToolNames
from cyrene_host.catalog.schemas import CompiledSchema, SchemaInvalidError
from cyrene_host.catalog.settings import Settings
from cyrene_host.errors import CallFailedError
from cyrene_host.supervise.life import Life
from cyrene_sdk.errors import CyreneError, ErrorKind
from cyrene_sdk.types import DangerLevel, ToolComplexity

__all__ = ["Registry"]

SHOWN_CHARS = 80


class Registry:
    """Every tool by every spelling that means it; the index of the call pipeline.

    Args:
        settings: danger policy and the way names are offered.
        lives: the plugins behind the tools, by entry name.
    """

    def __init__(self, settings: Settings, catalog: Catalog, lives: Mapping[str, Life]) -> None:
        self._settings = settings
        self._catalog = catalog
        self._lives = lives
        self._own: dict[str, CallableTool] = {}
        self._tools: dict[str, CallableTool] = {}
        self._spellings: dict[str, CallableTool] = {}
        self.rebuild()

    def rebuild(self) -> None:
        """Compile all tools anew, after a plugin's definitions changed."""
        self._tools = dict(self._own)
        for tool in self._catalog.tools:
            self._tools[tool.id] = self._compiled(tool, self._lives[tool.plugin])
        self._names = ToolNames(
            [
                *(NamedTool(t.provider.name, t.name, t.definition.id) for t in self._own.values()),
                *(self._named(tool) for tool in self._catalog.tools),
            ]
        )
        self._spellings = dict(self._tools)

    def add(self, tool: CatalogTool, provider: Provider) -> CallableTool:
        """Add a tool of the embedding program.

        Raises:
            SchemaInvalidError: its schema cannot be used.
        """
        compiled = self._compiled(tool, provider)
        if compiled.fault is not None:
            raise compiled.fault
        self._own[tool.id] = compiled
        self.rebuild()
        return compiled

    @property
    def tools(self) -> Mapping[str, CallableTool]:
        """All tools by id, those that cannot be called too."""
        return self._tools

    def offered(self, tool_id: str, mode: NameMode | None = None) -> str:
        """Return the name that models see for a tool."""
        return self._names.offered(tool_id, mode or self._settings.tools.names or "short")

    def find(self, name: str) -> CallableTool:
        """Return the tool that a spelling means, one that is switched off too.

        Raises:
            CallFailedError: `unknown_tool`; or `plugin_unavailable`, where the plugin's tools are not known.
        """
        tool = self._spellings.get(name)
        if tool is None:
            tool_id = self._names.resolve(name)
            if tool_id is None:
                raise self._unknown(name)
            tool = self._spellings[name] = self._tools[tool_id]
        return tool

    def resolve(self, name: str) -> CallableTool:
        """Return the tool that a call means.

        Raises:
            CallFailedError: as `find`; or `denied`, where the operator switched the tool off.
        """
        tool = self._spellings.get(name) or self.find(name)
        if tool.is_enabled:
            return tool
        raise CallFailedError(
            ErrorKind.DENIED,
            f"the operator has switched the tool '{tool.name}' off",
            plugin=tool.provider.name,
            where=f"tool '{tool.id}', its entry's tools.{tool.name}.enabled",
            mend="ask the operator, or set it to true in plugins.json",
        )

    def _unknown(self, name: str) -> CallFailedError:
        shown = name[:SHOWN_CHARS].encode("utf-8", "replace").decode()
        meanings = self._names.meanings(name)
        if meanings:
            choice = ", ".join(f"'{tool_id}'" for tool_id in meanings)
            return CallFailedError(
                ErrorKind.UNKNOWN_TOOL, f"'{shown}' means several tools", where="tool name", mend=f"say which: {choice}"
            )
        life = self._lives.get(name.partition(".")[0])
        if life is not None and life.record.manifest is None:
            return _not_known_yet(life, shown)
        near = self._names.near(name[:SHOWN_CHARS])
        hint = f"did you mean {' or '.join(repr(known) for known in near)}?" if near else "`cyrene tools` lists all"
        return CallFailedError(ErrorKind.UNKNOWN_TOOL, f"there is no tool '{shown}'", where="tool name", mend=hint)

    def _named(self, tool: CatalogTool) -> NamedTool:
        alias = tool.override.alias if tool.override else None
        return NamedTool(tool.plugin, tool.definition.name, tool.definition.id, alias or "")

    def _compiled(self, tool: CatalogTool, provider: Provider) -> CallableTool:
        definition, override, fault = tool.definition, tool.override, tool.fault
        schema = returns = None
        if fault is None:
            try:
                schema = CompiledSchema(definition.parameters)
                returns = CompiledSchema(definition.returns, close=False) if definition.returns else None
            except SchemaInvalidError as error:
                error.plugin = tool.plugin
                error.where = f"tool '{tool.id}', its schema" + (f", {error.where}" if error.where else "")
                fault, schema = error, None
        policy = self._settings.danger
        life = self._lives.get(tool.plugin)
        danger = effective_danger(
            definition.danger_level,
            override.danger_level if override else None,
            undeclared=DangerLevel(policy.undeclared),
            trusted=life is not None and life.record.entry is not None and life.record.entry.trust == "full",
        )
        return CallableTool(
            id=tool.id,
            name=definition.name,
            provider=provider,
            definition=definition,
            schema=schema,
            returns=returns,
            danger=danger,
            decision=getattr(policy, danger.value),
            limit_s=_limit_s(tool, life),
            fault=fault,
            secret_arguments=frozenset(definition.secret_arguments),
            is_enabled=override is None or override.enabled is not False,
        )


def _limit_s(tool: CatalogTool, life: Life | None) -> float:
    definition = tool.definition
    if definition.complexity is ToolComplexity.COMPLEX and definition.timeout_ms is None and life is not None:
        return life.limits.max_duration_s
    return definition.limit_ms / 1000


def _not_known_yet(life: Life, shown: str) -> CallFailedError:
    error: CyreneError | None = life.error
    cause = f": {error.what}" if error else ""
    return CallFailedError(
        ErrorKind.PLUGIN_UNAVAILABLE,
        f"it is {life.state}, so its tool '{shown}' is not known{cause}",
        plugin=life.name,
        where=error.where if error else None,
        mend=(error.mend if error else None) or "`cyrene health` tells more",
    )
