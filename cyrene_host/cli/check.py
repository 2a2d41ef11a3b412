"""`cyrene check`: everything that can be said of a plugin before it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cyrene_host.catalog.definitions import tools_of
from cyrene_host.catalog.faults import FaultsError
from cyrene_host.catalog.manifests import Manifest, drift, read_shipped
from cyrene_host.catalog.secrets import SecretError, resolve
from cyrene_host.cli.findings import Finding, config_findings, metadata_findings, name_findings, tool_findings
from cyrene_host.cli.imports import log_hijacks
from cyrene_host.cli.options import Choices
from cyrene_host.cli.screen import Screen
from cyrene_host.cli.targets import Target, describe, find_targets
from cyrene_sdk.errors import CyreneError

__all__ = ["check_plugins"]


def check_plugins(choices: Choices, words: Sequence[str]) -> int:
    """Check the plugins that the words name and show what was found; 1 if there is an error."""
    verdicts = [_verdict(target) for target in find_targets(choices, words)]
    if choices.as_json:
        choices.screen.json([verdict.to_dict() for verdict in verdicts])
    else:
        _show(choices.screen, verdicts)
    return 1 if any(verdict.errors for verdict in verdicts) else 0


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was found out about one plugin."""

    plugin: str
    source: str
    manifest: Manifest | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "warning"]

    def to_dict(self) -> dict[str, Any]:
        return {
            "plugin": self.plugin,
            "source": self.source,
            "version": self.manifest.metadata.version if self.manifest else "",
            "tools": [tool.name for tool in self.manifest.tools] if self.manifest else [],
            "errors": [finding.to_dict() for finding in self.errors],
            "warnings": [finding.to_dict() for finding in self.warnings],
        }


def _verdict(target: Target) -> _Verdict:
    record = target.record
    found: list[Finding] = []
    if record.error is not None:
        error = record.error
        found += map(_of_error, error.faults if isinstance(error, FaultsError) else (error,))
    live = None
    if record.source is not None:
        try:
            live = describe(target)
        except CyreneError as error:
            found.append(_of_error(error))
        else:
            found += _found_in(target, live)
        if record.source.location is not None:
            found += [_hijack(place) for place in log_hijacks(record.source.location)]
    return _Verdict(record.name, record.place, live, tuple(dict.fromkeys(found)))


def _found_in(target: Target, live: Manifest) -> Iterator[Finding]:
    record, source, inventory = target.record, target.record.source, target.inventory
    tools = tools_of(record.name, record.entry, live, where=record.place)
    yield from metadata_findings(live.metadata, record.name)
    if not tools:
        yield Finding("warning", "the plugin has no tools", record.place, "add a method with @tool")
    for tool in tools:
        yield from tool_findings(tool)
    known = inventory.catalog.names if inventory is not None and record.tools == tools else None
    yield from name_findings(tools, known)
    yield from _config_findings(target, live)
    if source is not None and source.location is not None:
        for difference in drift(source, live) if _ships_one(target) else ():
            what = f"its cyrene-plugin.json says otherwise: {difference}"
            yield Finding("error", what, str(source.location), f"`cyrene manifest build {_spelled(target)}`")


def _config_findings(target: Target, live: Manifest) -> Iterator[Finding]:
    entry, inventory = target.record.entry, target.inventory
    config = None
    if entry is not None and inventory is not None:
        try:
            config, _ = resolve(entry.config, inventory.base, os.environ, plugin=entry.name, where=entry.where)
        except SecretError as error:
            yield _of_error(error)
    yield from config_findings(live, config)


def _ships_one(target: Target) -> bool:
    try:
        return target.source is not None and read_shipped(target.source) is not None
    except CyreneError:
        return True


def _spelled(target: Target) -> str:
    folder = target.record.place if target.inventory is None else target.name
    return str(folder)


def _hijack(place: str) -> Finding:
    what = "logging.basicConfig at import would take over the log of every program that loads the plugin"
    return Finding("warning", what, place, "take it out; the plugin's own log is `self.host.logger`")


def _of_error(error: CyreneError) -> Finding:
    return Finding("error", error.what, error.where or "", error.mend or "")


def _show(screen: Screen, verdicts: Sequence[_Verdict]) -> None:
    for verdict in verdicts:
        screen.answer("\n".join(_lines(verdict)))
    errors = sum(len(verdict.errors) for verdict in verdicts)
    warnings = sum(len(verdict.warnings) for verdict in verdicts)
    screen.answer(f"{_many(len(verdicts), 'plugin')}: {_many(errors, 'error')}, {_many(warnings, 'warning')}")


def _lines(verdict: _Verdict) -> Iterator[str]:
    manifest = verdict.manifest
    tools = ", ".join(tool.name for tool in manifest.tools) if manifest else ""
    yield f"{verdict.plugin} {manifest.metadata.version if manifest else ''}".rstrip() + (f": {tools}" if tools else "")
    places: dict[tuple[str, str, str], list[str]] = {}
    for finding in (*verdict.errors, *verdict.warnings):
        places.setdefault((finding.level, finding.what, finding.mend), []).append(finding.where)
    for (level, what, mend), where in places.items():
        yield f"  {level}: {what}"
        if any(where):
            yield f"    where: {'; '.join(where)}"
        if mend:
            yield f"    mend:  {mend}"


def _many(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"
