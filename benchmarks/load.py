"""100 plugins of 10 tools, from plugins.json to all schemas known good, beside the compilation of the same schemas."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema
import jsonschema_rs
from _plugins import tool_schema, write_distributions, write_plugins_json
from _rounds import Case, Row, kept, measured, options, publish

from cyrene_host import Host

PLUGINS, TOOLS = 100, 10
LIMIT = "limit: jsonschema-rs compiles the 1,000 schemas"
PACKAGES = ("cyrene-host", "jsonschema-rs", "jsonschema", "pydantic")


def cases_of(folder: Path) -> list[Case]:
    """Install the plugins below `folder` and return the cases."""
    schemas = [tool_schema(number) for number in range(PLUGINS * TOOLS)]
    site = folder / "site"
    plugins_json = write_plugins_json(folder, write_distributions(site, plugins=PLUGINS, tools=TOOLS))
    sys.path.append(str(site))

    def compile_all() -> None:
        for schema in schemas:
            jsonschema_rs.validator_for(schema)

    def check_all() -> None:
        for schema in schemas:
            jsonschema.Draft202012Validator.check_schema(schema)

    async def load() -> None:
        async with Host.open(plugins_json, start="called") as host:
            reports = host.plugins.list()
        usable = sum(len(report.tools) for report in reports if report.is_well)
        if usable != len(schemas):
            raise SystemExit(f"{usable} of {len(schemas)} tools can be used")

    async def load_first() -> None:
        shutil.rmtree(folder / "state", ignore_errors=True)
        await load()

    return [
        Case(LIMIT, compile_all),
        Case("a first start: every schema is checked", load_first, note="also writes down what was checked"),
        Case("a later start: nothing changed since", load, reach=2.0, note="also reads settings and entry points"),
        Case("jsonschema check_schema of the 1,000 schemas", check_all, note="checks only"),
    ]


async def rows(chosen: argparse.Namespace) -> list[Row]:
    """Measure the cases in turns, one load a turn."""
    with TemporaryDirectory() as folder:
        cases = kept(cases_of(Path(folder)), chosen.only, LIMIT)
        rounds = chosen.rounds or (2 if chosen.quick else 9)
        return await measured(cases, limit=LIMIT, rounds=rounds, batch_ms=1, unit="ms", most_calls=1)


def main() -> None:
    """Measure and print the table."""
    chosen = options(__doc__).parse_args()
    tables = {f"{PLUGINS} plugins of {TOOLS} tools": asyncio.run(rows(chosen))}
    publish("Load", tables, packages=PACKAGES, as_json=chosen.json)


if __name__ == "__main__":
    main()
