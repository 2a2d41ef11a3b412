"""Whole processes from start to end: importing the host, `cyrene --help`, and `cyrene tools` with 100 plugins."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from _plugins import write_distributions, write_plugins_json
from _rounds import Case, Row, kept, measured, options, publish

PLUGINS, TOOLS = 100, 2
PACKAGES = ("cyrene-host", "pydantic", "jsonschema-rs", "anyio", "typer")
MODEL = "from pydantic import BaseModel\nclass Model(BaseModel):\n    n: int\n"
WATCHER = '''"""Notes every process that Python code of this interpreter starts."""

import sys
from pathlib import Path

STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system")


def note(event, arguments):
    if event in STARTS:
        Path(__file__).with_name("started").touch()


sys.addaudithook(note)
'''


@dataclass(frozen=True)
class Command:
    """One process to start: its arguments, and the folder and search path it runs with."""

    name: str
    arguments: Sequence[str]
    reach: float | None = None
    folder: Path | None = None
    site: Path | None = None

    def run(self) -> str:
        """Run to the end and return what it printed; anything but success ends the benchmark."""
        ended = subprocess.run(
            self.arguments, cwd=self.folder, env=environ(self.site), capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise SystemExit(f"{self.name}: exit {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout


def environ(site: Path | None) -> Mapping[str, str]:
    """Return this environment without Cyrene's variables, and with `site` on the search path."""
    kept_variables = {name: value for name, value in os.environ.items() if not name.startswith("CYRENE_")}
    return kept_variables if site is None else {**kept_variables, "PYTHONPATH": str(site)}


def tables_of(folder: Path) -> dict[str, list[Command]]:
    """Install the plugins below `folder` and return each table's commands, the limit first."""
    site = folder / "site"
    plugins_json = write_plugins_json(folder / "run", write_distributions(site, plugins=PLUGINS, tools=TOOLS))
    cyrene = str(Path(sys.executable).with_name("cyrene"))
    python = [sys.executable, "-c"]
    imports = f"import asyncio, anyio, jsonschema_rs\n{MODEL}"
    return {
        "import": [
            Command("limit: import asyncio, anyio, jsonschema_rs, one pydantic model", [*python, imports]),
            Command("from cyrene_host import Host", [*python, "from cyrene_host import Host"], reach=1.5),
            Command("python -c pass", [*python, "pass"]),
        ],
        "help": [
            Command("limit: import typer", [*python, "import typer"]),
            Command("cyrene --help", [cyrene, "--help"], reach=1.5),
        ],
        f"tools of {PLUGINS} installed plugins": [
            Command("limit: import typer, one pydantic model", [*python, f"import typer\n{MODEL}"]),
            Command("cyrene tools", [cyrene, "tools"], reach=1.5, folder=plugins_json.parent, site=site),
        ],
    }


def refuse_without_bytecode() -> None:
    """End the run where Python compiles its modules at each start, which doubles every row.

    The console command runs once first, so that what may be compiled is.
    """
    if sys.dont_write_bytecode:
        raise SystemExit("PYTHONDONTWRITEBYTECODE is set: unset it, or every start compiles what it imports")
    listing = (
        "import os, sys, typer, jsonschema_rs, anyio\nfrom cyrene_host import Host\n"
        "specs = [getattr(module, '__spec__', None) for module in list(sys.modules.values())]\n"
        "print(*[s.name for s in specs if s and s.cached and not os.path.exists(s.cached)])"
    )
    probe = Command("the probe for bytecode", [sys.executable, "-c", listing])
    probe.run()
    if uncompiled := probe.run().split():
        raise SystemExit(f"no bytecode for {', '.join(uncompiled[:5])}: reinstall with `make setup`")


def check(folder: Path) -> None:
    """End with an error if `cyrene tools` imports a plugin, starts a process, or leaves a plugin's tools out."""
    command = tables_of(folder)[f"tools of {PLUGINS} installed plugins"][1]
    assert command.site is not None
    (command.site / "sitecustomize.py").write_text(WATCHER)
    listed = command.run()
    missing = [number for number in range(PLUGINS * TOOLS) if f"search_{number:04d}" not in listed]
    imported = [mark.parent.name for mark in command.site.glob("*/imported")]
    if missing or imported or (command.site / "started").exists():
        raise SystemExit(
            f"cyrene tools: {len(missing)} tools missing, plugins imported: {imported}, "
            f"process started: {(command.site / 'started').exists()}"
        )
    print(f"cyrene tools: {PLUGINS * TOOLS} tools listed, no plugin imported, no process started")


async def rows(commands: Sequence[Command], chosen: argparse.Namespace) -> list[Row]:
    """Start the commands in turns, one start a turn."""
    limit = commands[0].name
    cases = [Case(command.name, command.run, reach=command.reach) for command in commands]
    rounds = chosen.rounds or (2 if chosen.quick else 15)
    return await measured(
        kept(cases, chosen.only, limit), limit=limit, rounds=rounds, batch_ms=1, unit="ms", most_calls=1
    )


def main() -> None:
    """Check, or measure and print the tables."""
    parser = options(__doc__)
    parser.add_argument(
        "--check", action="store_true", help="only check that `cyrene tools` imports and starts nothing"
    )
    chosen = parser.parse_args()
    refuse_without_bytecode()
    with TemporaryDirectory() as folder:
        if chosen.check:
            check(Path(folder))
            return
        tables = {name: asyncio.run(rows(commands, chosen)) for name, commands in tables_of(Path(folder)).items()}
    publish("Start-up", tables, packages=PACKAGES, as_json=chosen.json)


if __name__ == "__main__":
    main()
