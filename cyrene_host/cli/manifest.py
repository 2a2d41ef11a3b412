"""`cyrene manifest`: writes `cyrene-plugin.json` into plugins' packages, and shows what the host knows of one."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cyrene_host.catalog.manifests import drift, write_manifest
from cyrene_host.catalog.state import PluginState
from cyrene_host.cli.options import Choices
from cyrene_host.cli.targets import Target, describe, find_targets
from cyrene_host.host.views import error_object
from cyrene_sdk._worker.manifest_file import manifest_path
from cyrene_sdk.errors import CyreneError

__all__ = ["build_manifests", "show_manifest"]


def build_manifests(choices: Choices, words: Sequence[str], *, only_check: bool) -> int:
    """Write the manifests anew where they differ; or, to check, say which do.

    Returns:
        1 if a plugin cannot be described, or if a manifest that was only checked differs; else 0.
    """
    targets = [target for target in find_targets(choices, words) if words or _is_own(target)]
    builds = [_build(target, only_check=only_check) for target in targets]
    if choices.as_json:
        choices.screen.json([build.to_dict() for build in builds])
    else:
        for build in builds:
            choices.screen.answer(build.told(only_check=only_check))
    failed = any(build.error is not None or (only_check and build.changes) for build in builds)
    return 1 if failed else 0


@dataclass(frozen=True, slots=True)
class _Build:
    """What became of one plugin's manifest."""

    plugin: str
    file: str
    changes: Sequence[str] = ()
    error: CyreneError | None = None

    def to_dict(self) -> dict[str, Any]:
        error = error_object(self.error)
        return {"plugin": self.plugin, "file": self.file, "changes": list(self.changes), "error": error}

    def told(self, *, only_check: bool) -> str:
        if self.error is not None:
            return str(self.error)
        if not self.changes:
            return f"{self.file} is up to date"
        verb = "differs from the plugin" if only_check else "was written"
        return "\n".join([f"{self.file} {verb}:", *(f"  {change}" for change in self.changes)])


def show_manifest(choices: Choices, name: str) -> int:
    """Write the manifest that the host goes by; 1 if there is none."""
    record = find_targets(choices, [name])[0].record
    if record.manifest is None:
        choices.screen.error(
            record.error or CyreneError("it has no manifest", plugin=name, mend=f"`cyrene check {name}` tells more")
        )
        return 1
    choices.screen.json({**record.manifest.to_dict(), "origin": record.manifest.origin})
    return 0


def _is_own(target: Target) -> bool:
    """Whether the plugin is someone's work: enabled, and no wheel that an installer put in its place."""
    source = target.source
    if source is None or source.location is None:
        return target.record.state is not PluginState.DISABLED
    return not source.location.is_relative_to(sysconfig.get_path("purelib"))


def _build(target: Target, *, only_check: bool) -> _Build:
    source = target.source
    file = str(manifest_path(source.location)) if source and source.location else ""
    try:
        live = describe(target)
        assert source is not None, "what was described has code"
        return _Build(target.name, file, drift(source, live) if only_check else write_manifest(source, live))
    except CyreneError as error:
        return _Build(target.name, file, error=error)
