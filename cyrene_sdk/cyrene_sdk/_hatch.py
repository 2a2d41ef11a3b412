"""The hatch build hook `cyrene`: describes a plugin while its wheel is built and ships the manifest in its package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from cyrene_sdk._worker.manifest_file import document, locate, manifest_path, manifest_text
from cyrene_sdk.errors import CyreneError

__all__ = ["CyreneBuildHook", "ManifestBuildError", "hatch_register_build_hook"]

GROUP = "cyrene.plugins"
LIMIT_S = 120.0
"""Seconds for one plugin: in a fresh build environment, the first import of large packages compiles them."""

GRACE_S = 5.0


class ManifestBuildError(CyreneError):
    """A wheel cannot be built, since its plugin cannot be described."""


class CyreneBuildHook(BuildHookInterface[BuilderConfig]):
    """Adds `cyrene-plugin.json` to each plugin's package in a wheel, in place of a committed one.

    Editable installs and source distributions are left as they are.
    """

    PLUGIN_NAME = "cyrene"

    def dependencies(self) -> list[str]:
        """Return what describing the plugin needs: all that it needs at run time."""
        return list(self.metadata.core.dependencies) if self.target_name == "wheel" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Describe the project's plugins before a wheel is built.

        Raises:
            ManifestBuildError: a plugin is not there, fails to import, or has a tool that is at fault.
        """
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="cyrene-manifest-")
        for count, (target, text) in enumerate(self._manifests().items()):
            file = Path(self._folder.name, f"{count}.json")
            file.write_text(text, encoding="utf-8", newline="\n")
            build_data["force_include"][str(file)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  # hatch's
        """Remove what `initialize` wrote."""
        if self.target_name == "wheel" and version != "editable":
            self._folder.cleanup()

    def _manifests(self) -> dict[str, str]:
        """Return the text of each manifest by its place in the wheel."""
        declared = self.metadata.core.entry_points.get(GROUP, {})
        if not declared:
            raise ManifestBuildError(
                "the project declares no plugin",
                where="pyproject.toml",
                mend=f'add [project.entry-points."{GROUP}"] with a line such as hello = "cyrene_hello:HelloPlugin"',
            )
        manifests: dict[str, str] = {}
        for name, reference in declared.items():
            module, _, attribute = (part.strip() for part in reference.partition(":"))
            root, location = self._locate(name, module)
            target = manifest_path(location).relative_to(root).as_posix()
            text = _described(name, module, attribute or None, root)
            if manifests.setdefault(target, text) != text:
                raise ManifestBuildError(
                    f"another plugin has its manifest at '{target}' already",
                    plugin=name,
                    where=f'pyproject.toml, [project.entry-points."{GROUP}"]',
                    mend="give each plugin a package of its own, or build without the hook 'cyrene'",
                )
        return manifests

    def _locate(self, name: str, module: str) -> tuple[Path, Path]:
        """Return the folder that is imported from and the plugin's package or module in it."""
        project = Path(self.root)
        roots = [*((project / package).parent for package in self.build_config.packages), project, project / "src"]
        for root in dict.fromkeys(roots):
            location = locate(module, [str(root)]) if root.is_dir() else None
            if location is not None:
                return root, location
        raise ManifestBuildError(
            f"module '{module}' is not in the project",
            plugin=name,
            where=f'pyproject.toml, [project.entry-points."{GROUP}"]',
            mend="correct the module's name; it is looked for beside pyproject.toml and in src/",
        )


@hookimpl
def hatch_register_build_hook() -> type[CyreneBuildHook]:
    """Tell hatch of the hook."""
    return CyreneBuildHook


def _described(name: str, module: str, attribute: str | None, root: Path) -> str:
    request = {"module": module, "attribute": attribute, "folder": str(root), "limit_s": LIMIT_S}
    answer, printed = _ask(request)
    if answer is None:
        what = f"its interpreter ended, or took over {LIMIT_S:g} s, while it was described"
        told: Mapping[str, Any] = {"what": f"{what}; it printed last: {printed}" if printed else what}
    else:
        told = answer.get("error") or {}
    described = answer.get("manifest", {}) if answer else {}
    if faults := described.get("tool_faults"):
        told = {"what": "; ".join(faults.values())}
    if told:
        raise ManifestBuildError(
            told["what"],
            plugin=name,
            where=told.get("where") or f"entry point '{name}' of pyproject.toml",
            mend=told.get("mend") or "make `cyrene check` agree with the plugin first",
        )
    return manifest_text(document(described, attribute))


def _ask(request: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return what a throw-away interpreter answers (None where it does not), and the last that it printed."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as printed:
        # Not -I: an isolated build environment may reach its packages through PYTHONPATH. -B: leaves the project clean.
        argv = [sys.executable, "-P", "-B", "-m", "cyrene_sdk._worker", "describe", "--fd", str(answer.fileno())]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                argv,
                input=json.dumps(request).encode(),
                stdout=printed,
                stderr=printed,
                pass_fds=(answer.fileno(),),
                timeout=LIMIT_S + GRACE_S,
                check=False,
            )
        answer.seek(0)
        size = printed.seek(0, os.SEEK_END)
        printed.seek(max(0, size - 500))
        last = printed.read().decode("utf-8", "replace").strip()
        try:
            return json.loads(answer.read()), last
        except ValueError:
            return None, last
