"""What is wrong, or could be better, with a plugin as its manifest describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jsonschema  # type: ignore[import-untyped]  # it ships no types
from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # as above

from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.manifests import Manifest
from cyrene_host.catalog.names import NamedTool, ToolNames
from cyrene_host.catalog.schemas import CompiledSchema, SchemaInvalidError
from cyrene_host.catalog.versions import VersionError, parse_range, parse_version
from cyrene_host.host.tool_schemas import compile_schemas
from cyrene_host.version import __version__
from cyrene_sdk.types import PluginMetadata, ToolDefinition

__all__ = ["Finding", "config_findings", "metadata_findings", "name_findings", "tool_findings"]

FEW_TRIGGERS = 3
"""With fewer, the choice of tools for a message has little to go by."""

_EVERY_MODEL_TAKES = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SAYS_WHEN = re.compile(r"\b(when|if|whenever|call|use)\b|当|时|如果|若|调用|使用|用于", re.IGNORECASE)


class Finding(NamedTuple):
    """One remark: an error keeps the plugin or a tool from working, a warning does not."""

    level: Literal["error", "warning"]
    what: str
    where: str
    mend: str

    def to_dict(self) -> dict[str, str]:
        """Return the JSON object."""
        return {"what": self.what, "where": self.where, "mend": self.mend}


def metadata_findings(metadata: PluginMetadata, entry_name: str) -> Iterator[Finding]:
    """Check what the plugin says of itself."""
    if not metadata.name:
        yield _error("the plugin has no name", "metadata, name", "give it one, in lower-case letters")
    elif metadata.name != entry_name:
        what = f"its entry is called '{entry_name}' and the plugin '{metadata.name}'"
        yield _warning(what, "metadata, name", "call both alike, so that logs and dependencies are easy to read")
    if not metadata.description:
        yield _warning("the plugin has no description", "metadata, description", "say in one sentence what it is for")
    try:
        parse_version(metadata.version)
    except VersionError as error:
        yield _error(error.what, "metadata, version", error.mend or "")
    yield from _host_version_findings(metadata.min_cyrene_version)
    for name, wanted in metadata.dependencies.items():
        try:
            parse_range(wanted)
        except VersionError as error:
            yield _error(error.what, f"metadata, dependencies, '{name}'", error.mend or "")


def tool_findings(tool: CatalogTool) -> Iterator[Finding]:
    """Check one tool: its name, its texts, its schemas by two validators, its examples."""
    definition, where = tool.definition, f"tool '{tool.definition.name}'"
    if tool.fault is not None:
        yield _error(tool.fault.what, where, tool.fault.mend or "")
    if definition.name and not _EVERY_MODEL_TAKES.fullmatch(definition.name.partition("#")[0]):
        what = f"not every model takes the name '{definition.name[:80]}', so it is offered under another"
        yield _warning(what, where, "use 1 to 64 letters, digits, '_' and '-'")
    yield from _text_findings(definition, where)
    if definition.danger_level is None:
        mend = "declare danger_level: low, medium or high"
        yield _warning("it does not say how dangerous it is, and counts as medium", where, mend)
    yield from _schema_findings(tool, where)


def name_findings(tools: tuple[CatalogTool, ...], names: ToolNames | None = None) -> Iterator[Finding]:
    """Check that every tool is offered under the name that its author, or the operator, gave it.

    Args:
        names: those of the whole host; None where the plugin stands alone.
    """
    known = names or ToolNames(NamedTool(t.plugin, t.definition.name, t.definition.id) for t in tools)
    for tool in tools:
        where, offered = f"tool '{tool.id}'", known.offered(tool.id)
        alias = tool.override.alias if tool.override else None
        others = [f"'{other}'" for other in known.meanings(alias or tool.definition.name) if other != tool.id]
        if alias and others:
            what = f"its alias '{alias}' is hidden by {' and '.join(others)}, so models see '{offered}'"
            yield _error(what, where, "give it another alias in its entry's tools")
        elif others:
            what = f"'{tool.definition.name}' means {' and '.join(others)} too, so models see '{offered}'"
            yield _warning(what, where, "rename one of them, or give it an alias in its entry's tools")


def config_findings(manifest: Manifest, config: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Check the schema of the plugin's `config`, and the entry's `config` against it; None: there is no entry."""
    if manifest.config_schema is None:
        return
    try:
        schema = CompiledSchema(manifest.config_schema, close=False)
    except SchemaInvalidError as error:
        yield _error(error.what, f"config_schema {error.where or ''}".rstrip(), error.mend or "")
        return
    for fault in schema.faults(dict(config)) if config is not None else ():
        yield _error(fault.message, f"the entry's config{fault.path}", "correct 'config' in the plugin's entry")


def _host_version_findings(wanted: str) -> Iterator[Finding]:
    where = "metadata, minCyreneVersion"
    try:
        if wanted and parse_version(wanted) > parse_version(__version__):
            what = f"it wants Cyrene {wanted} or newer, and this is {__version__}"
            yield _error(what, where, "upgrade cyrene-host, or ask for less")
    except VersionError as error:
        yield _error(error.what, where, error.mend or "")


def _text_findings(definition: ToolDefinition, where: str) -> Iterator[Finding]:
    if not definition.description.strip():
        mend = "write what it does, when to call it, and when not"
        yield _error("it has no description, so no model can know when to call it", where, mend)
    elif not _SAYS_WHEN.search(definition.description):
        mend = 'add a sentence such as "Call it when …; not when …"'
        yield _warning("its description does not say when to call it", where, mend)
    if len(definition.triggers) < FEW_TRIGGERS:
        what = f"it has {len(definition.triggers) or 'no'} triggers"
        yield _warning(what, where, f"give at least {FEW_TRIGGERS} whole requests that should reach it")
    for trigger in [*definition.triggers, *definition.not_when]:
        if len(trigger) > 1 and trigger.startswith("/") and trigger.endswith("/"):
            try:
                re.compile(trigger[1:-1])
            except re.error as error:
                what = f"the trigger '{trigger[:80]}' is no regular expression: {error}"
                yield _error(what, where, "correct it, or leave the slashes out for a plain request")


def _schema_findings(tool: CatalogTool, where: str) -> Iterator[Finding]:
    definition = tool.definition
    try:
        parameters, _ = compile_schemas(tool)
    except SchemaInvalidError as error:
        yield _error(error.what, error.where or where, error.mend or "")
        return
    for name, schema in (("parameters", definition.parameters), ("returns", definition.returns)):
        yield from _second_opinion(schema, f"{where}, {name}")
    properties = parameters.enforced.get("properties", {})
    silent = [f"'{key}'" for key, value in properties.items() if isinstance(value, dict) and not _says_something(value)]
    if silent:
        mend = 'describe each argument: Annotated[type, "…"], or the docstring\'s Args'
        yield _warning(f"these arguments have no description: {', '.join(silent)}", where, mend)
    for number, example in enumerate(definition.examples, 1):
        for fault in parameters.faults(example):
            what = f"its example {number} does not fit: {fault}"
            yield _error(what, where, "correct the example or the parameters")
    unknown = [f"'{name}'" for name in definition.secret_arguments if name not in properties]
    if unknown:
        yield _error(f"secret_arguments names what is no argument: {', '.join(unknown)}", where, "correct the names")


def _says_something(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("description") or "$ref" in schema)


def _second_opinion(schema: dict[str, Any], where: str) -> Iterator[Finding]:
    """Ask the reference validator, which other hosts and clients may use."""
    try:
        validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as error:
        what = f"a second validator refuses the schema: {error.message[:160]}"
        pointer = "".join(f"/{part}" for part in error.absolute_path)
        yield _warning(what, f"{where} {pointer}".rstrip(), "write it so that every validator takes it")


def _error(what: str, where: str, mend: str) -> Finding:
    return Finding("error", what, where, mend)


def _warning(what: str, where: str, mend: str) -> Finding:
    return Finding("warning", what, where, mend)
