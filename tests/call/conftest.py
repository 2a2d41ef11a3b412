"""Hosts with misbehaving plugins, in each runtime: the same call gives the same result in all of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host

RUNTIMES = ["inline", "process"]
PLUGINS = Path(__file__).parent / "plugins"

HostWith = Callable[..., Any]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def plugins_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests: a plugin's manifest is found out once, not for each of them."""
    return tmp_path_factory.mktemp("call")


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    """Each runtime in turn; `@pytest.mark.parametrize("runtime", ["inline"], indirect=True)` for one alone."""
    return str(request.param)


@pytest.fixture
def host_with(runtime: str, plugins_folder: Path) -> HostWith:
    """Return a function that makes a host with one plugin; `async with host_with(…) as host:`.

    Args:
        plugin: the stem of a file in `plugins/`, and the plugin's name.
        source: the plugin's text, instead of a file.
        approver: who is asked; other keywords are keys of the plugin's entry.
        overrides: settings by dotted name.
    """

    def made(
        plugin: str = "faulty",
        *,
        source: str | None = None,
        approver: Any = None,
        overrides: dict[str, Any] | None = None,
        **entry: Any,
    ) -> Any:
        text = source or (PLUGINS / f"{plugin}.py").read_text(encoding="utf-8")
        module = f"call_{plugin}" if source is None else f"call_{plugin}_{next(_numbers)}"
        folder = plugins_folder / module
        if not folder.exists():
            folder.mkdir()
            (folder / f"{module}.py").write_text(text, encoding="utf-8")
        limits = {"kill_grace_s": 0.1, **entry.pop("limits", {})}
        named = {"name": plugin, "path": module, "runtime": runtime, "limits": limits, **entry}
        file = plugins_folder / f"{next(_numbers)}.json"
        file.write_text(json.dumps([named]), encoding="utf-8")
        file.chmod(0o600)
        settings = {"host.state_dir": str(plugins_folder / "state"), **(overrides or {})}
        return Host.open(file, approver=approver, overrides=settings)

    return made
