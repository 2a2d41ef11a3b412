"""What `cyrene doctor` finds out about isolation: it runs a plugin of its own in a worker that tries to break out."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cyrene_host.catalog.catalog import Catalog
from cyrene_host.catalog.manifests import CONTRACTS
from cyrene_host.catalog.probe import interpreter_of
from cyrene_host.cli.symptoms import Symptom
from cyrene_host.cli.waiting import wait_for
from cyrene_host.host.host import Host
from cyrene_host.runtimes.leftovers import find_left_scratch, find_leftovers
from cyrene_host.runtimes.witness import Testimony
from cyrene_sdk.types import ToolResult

__all__ = ["look_at_interpreters", "look_at_isolation", "look_at_leftovers"]

MEMORY_MB, OPEN_FILES = 512, 64
ENTRY = {
    "name": "witness",
    "import": "cyrene_host.runtimes.witness",
    "class": "WitnessPlugin",
    "limits": {"memory_mb": MEMORY_MB, "open_files": OPEN_FILES},
}
INTERPRETER_S = 20.0
ASK = (
    "import json, platform; from importlib import metadata; from cyrene_sdk._worker.contract import CONTRACT;"
    "print(json.dumps([platform.python_version(), metadata.version('cyrene-sdk'), CONTRACT]))"
)


def look_at_isolation() -> Iterator[Symptom]:
    """Start a worker as every plugin gets it, and tell what really confines it on this machine."""
    result = wait_for(_testified)
    if not result.success or not isinstance(result.data, dict):
        mend = '`cyrene doctor --debug` logs more; entries with "runtime": "inline" work without workers'
        yield Symptom("wrong", "isolation", f"no worker can be started here: {result.error}", mend)
        return
    told = Testimony(**result.data)
    start = "forked from the keeper" if told.is_forked else "started afresh"
    session = "in a session of its own" if told.leads_session else "in the host's session"
    yield Symptom("fine", "isolation", f"each plugin has a worker, {start}, {session}, on {told.loop}")
    yield from _endings(told)
    yield from _limits(told)


def _endings(told: Testimony) -> Iterator[Symptom]:
    if told.dies_with_keeper and told.adopts_orphans:
        what = "a worker ends with its host, and all that it starts ends with it (parent-death signal, subreaper)"
        yield Symptom("fine", "isolation", what)
    else:
        what = f"workers notice the end of their host by a pipe alone on {sys.platform}"
        yield Symptom("note", "isolation", f"{what}; what they start in sessions of its own may outlive them")


def _limits(told: Testimony) -> Iterator[Symptom]:
    kinds = {"memory_mb": told.memory_is_limited, "open_files": told.files_are_limited}
    held = [f"limits.{name}" for name, is_held in kinds.items() if is_held]
    broken = [f"limits.{name}" for name, is_held in kinds.items() if not is_held]
    if held:
        yield Symptom("fine", "isolation", f"{' and '.join(held)} take effect")
    if broken:
        yield Symptom("note", "isolation", f"{' and '.join(broken)} take no effect on {sys.platform}")
    if told.can_raise_limits:
        yield Symptom("note", "isolation", "a plugin may take its limits off again", "run the host as another user")
    if told.uid == 0:
        what = "plugins run as root, and isolation is no sandbox: they may do what root may"
        yield Symptom("note", "isolation", what, "run the host as a user of its own")


def look_at_leftovers(state_dir: Path) -> Iterator[Symptom]:
    """Tell what hosts that were killed have left: processes and scratch folders."""
    pids, folders = find_leftovers(state_dir), find_left_scratch(state_dir)
    if not pids and not folders:
        yield Symptom("fine", "leftovers", "no host has left anything behind")
        return
    what = [f"the processes {', '.join(map(str, pids))}"] if pids else []
    what += [f"{len(folders)} scratch folders below '{state_dir / 'scratch'}'"] if folders else []
    mend = "the next start of a host takes them away, such as `cyrene health`"
    yield Symptom("note", "leftovers", f"a host that was killed has left {' and '.join(what)}", mend)


def look_at_interpreters(catalog: Catalog) -> Iterator[Symptom]:
    """Run each interpreter that an entry names, and tell whether it has a cyrene-sdk that fits."""
    users: dict[Path, list[str]] = {}
    for plugin in catalog.plugins.values():
        if plugin.source is not None and plugin.source.python is not None:
            users.setdefault(interpreter_of(plugin.source.python), []).append(plugin.name)
    for interpreter, names in users.items():
        yield _interpreter(interpreter, f"python of {', '.join(names)}")


def _interpreter(interpreter: Path, about: str) -> Symptom:
    install = f"`{interpreter} -m pip install cyrene-sdk`"
    asking = [str(interpreter), "-I", "-c", ASK]
    try:
        ended = subprocess.run(asking, capture_output=True, text=True, timeout=INTERPRETER_S, check=False)
    except OSError as error:
        mend = "correct 'python' in the entry: an interpreter, or the folder of a virtual environment"
        return Symptom("wrong", about, f"'{interpreter}' cannot be started: {error.strerror}", mend)
    except subprocess.TimeoutExpired:
        return Symptom("wrong", about, f"'{interpreter}' gives no answer", "see what it runs when it starts")
    try:
        python, version, contract = json.loads(ended.stdout)
    except ValueError:
        last = ended.stderr.strip().rpartition("\n")[2][:200]
        return Symptom("wrong", about, f"'{interpreter}' has no cyrene-sdk that can be used: {last}", install)
    told = f"Python {python}, cyrene-sdk {version}, {interpreter}"
    if contract in CONTRACTS:
        return Symptom("fine", about, told)
    mend = "upgrade cyrene-host" if contract > CONTRACTS[-1] else f"{install[:-1]} --upgrade`"
    return Symptom("wrong", about, f"{told}: it speaks contract {contract}, which this host does not", mend)


async def _testified() -> ToolResult:
    """Open a host with the witness alone, apart from everything that is set up here."""
    with tempfile.TemporaryDirectory(prefix="cyrene-doctor-") as folder:
        plugins = Path(folder) / "plugins.json"
        plugins.write_text(json.dumps([ENTRY]), encoding="utf-8")
        (Path(folder) / "cyrene.toml").touch(mode=0o600)
        plugins.chmod(0o600)
        settings = {"host.state_dir": str(Path(folder) / "state"), "danger.low": "allow", "hooks.enabled": []}
        allowed = {"tools.allow": ["*"], "tools.deny": []}
        opening = Host.open(plugins, config=Path(folder) / "cyrene.toml", overrides=settings | allowed, start="called")
        async with opening as host:
            return await host.call("witness.testify", {"memory_mb": MEMORY_MB, "open_files": OPEN_FILES})
