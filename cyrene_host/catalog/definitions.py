"""A plugin's tools as the operator has set them: its manifest with the entry's `tools` applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cyrene_host.catalog.entries import PluginEntry, ToolOverride
from cyrene_host.catalog.faults import nearest
from cyrene_host.catalog.manifests import Manifest
from cyrene_host.catalog.unread import Unread
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import ToolDefinition

__all__ = ["CatalogTool", "tools_of", "unknown_overrides"]


@dataclass(frozen=True)
class CatalogTool:
    """A tool as the operator has set it.

    `given` is what its manifest says; `override` what the operator said; `fault` is why the definition cannot be used.
    """

    plugin: str
    given: ToolDefinition | Unread
    override: ToolOverride | None = None
    fault: CyreneError | None = None

    @property
    def id(self) -> str:
        """`<entry name>.<tool name>`."""
        return f"{self.plugin}.{self.given.name}"

    @property
    def is_vouched(self) -> bool:
        """Whether its definition and schemas were found good before."""
        return isinstance(self.given, Unread)

    @cached_property
    def definition(self) -> ToolDefinition:
        """The definition with the entry's `tools` applied."""
        given = self.given.read() if isinstance(self.given, Unread) else self.given
        return _overridden(given, self.override)


def unknown_overrides(plugin: str, entry: PluginEntry | None, manifest: Manifest) -> CyreneError | None:
    """Return an error where the entry sets tools that the plugin does not have: a misspelled rule protects nothing."""
    overrides = entry.tools if entry else {}
    if not overrides:
        return None
    names = [tool.name for tool in manifest.listed]
    unknown = [name for name in overrides if name != "*" and name not in names]
    if not unknown or entry is None:
        return None
    near = nearest(unknown[0], names)
    return CyreneError(
        f"its entry sets tools that it does not have: {', '.join(repr(name) for name in unknown)}",
        plugin=plugin,
        where=f"{entry.where}/tools/{unknown[0]}",
        mend=f"did you mean '{near}'?" if near else f"it has {', '.join(repr(name) for name in names) or 'none'}",
    )


def tools_of(plugin: str, entry: PluginEntry | None, manifest: Manifest, *, where: str) -> tuple[CatalogTool, ...]:
    """Return the tools of a manifest with the operator's settings over them.

    Of two tools with one name the second is kept under another name, with its fault.
    """
    overrides = entry.tools if entry else {}
    tools: list[CatalogTool] = []
    seen: set[str] = set()
    for given in manifest.listed:
        name = given.name
        fault = _fault(plugin, name, seen, manifest.tool_faults, where)
        override = _merged(overrides.get("*"), overrides.get(name)) if overrides else None
        own = given if name not in seen else _renamed(given, _twin_name(name, seen))
        tools.append(CatalogTool(plugin, own, override, fault))
        seen.add(own.name)
    return tuple(tools)


def _fault(plugin: str, name: str, seen: set[str], told: Mapping[str, str], where: str) -> CyreneError | None:
    if not name:
        what, mend = "a tool has no name", "give its definition a name"
    elif name in seen:
        what, mend = f"it has two tools named '{name}'; the first is used", "rename one of them"
    elif name in told:
        what, mend = f"tool '{name}': {told[name]}", "let the method and the definition agree"
    else:
        return None
    return CyreneError(what, plugin=plugin, where=f"{where}, tool '{name}'", mend=mend)


def _twin_name(name: str, seen: set[str]) -> str:
    number = 2
    while f"{name}#{number}" in seen:
        number += 1
    return f"{name}#{number}"


def _merged(general: ToolOverride | None, own: ToolOverride | None) -> ToolOverride | None:
    if general is None or own is None:
        return own or general
    return general.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


def _renamed(given: ToolDefinition | Unread, name: str) -> ToolDefinition:
    definition = given.read() if isinstance(given, Unread) else given
    return definition.model_copy(update={"name": name})


def _overridden(definition: ToolDefinition, override: ToolOverride | None) -> ToolDefinition:
    changed: dict[str, Any] = {}
    for key in ("timeout_ms", "max_retries", "triggers", "not_when") if override else ():
        value = getattr(override, key)
        if value is not None:
            changed[key] = list(value) if isinstance(value, tuple) else value
    return definition.model_copy(update=changed) if changed else definition
