"""The knowledge plugin as callers see it, through a host, in both runtimes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host

PluginsFile = Callable[..., Path]


@pytest.fixture(params=["process", "inline"])
def plugins_file(
    request: pytest.FixtureRequest, tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> PluginsFile:
    """Return a function that writes a plugins.json with the plugin, and a state directory of its own."""
    monkeypatch.setenv("CYRENE_HOST__STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(docs / "deep")  # which relative folders have nothing to do with

    def write(**config: Any) -> Path:
        entry = {"name": "knowledge", "runtime": request.param, "trust": "full", "config": config}
        file = tmp_path / "plugins.json"
        file.write_text(json.dumps([entry]), encoding="utf-8")
        file.chmod(0o600)
        return file

    return write


async def test_documents_are_indexed_and_found(plugins_file: PluginsFile) -> None:
    async with Host.open(plugins_file(folders=["docs"])) as host:
        indexed = await host.call("knowledge.index", {"folder": "docs"})
        chinese = await host.call("knowledge.search", {"query": "报销", "limit": 1})
        english = await host.call("search", {"query": "restarting workers"})
        listed = await host.call("indexed")
        forgotten = await host.call("forget", {"folder": "docs"})

    assert (indexed.success, indexed.output) == (True, "'docs': 4 files read (7 sections), 0 unchanged, 0 removed.")
    assert chinese.output == "1. docs/policy.html › 报销制度\n   差旅费在三十天内«报销»。"
    assert english.data["hits"][0]["heading"] == "Guide › Restarts"
    assert listed.data == {"folders": [{"folder": "docs", "files": 4, "sections": 7, "faulty": 0}]}
    assert forgotten.data == {"removed": 4}


async def test_the_index_outlives_the_host(plugins_file: PluginsFile) -> None:
    file = plugins_file(folders=["docs"])
    async with Host.open(file) as host:
        assert (await host.call("knowledge.index")).success
    async with Host.open(file) as host:
        found = await host.call("search", {"query": "brakes"})

    assert [(hit["path"], hit["page"]) for hit in found.data["hits"]] == [("docs/manual.pdf", 2)]


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "sentence"),
    [
        ("index", {"folder": "/etc"}, "invalid_arguments", "the folder '/etc' may not be indexed"),
        ("index", {"folder": "docs/../.."}, "invalid_arguments", "may not be indexed; allowed are 'docs'"),
        ("search", {"query": "***"}, "invalid_arguments", "the query has no word to search for"),
        ("search", {"query": ""}, "invalid_arguments", "/query"),
        ("search", {"query": "a", "limit": 21}, "invalid_arguments", "/limit"),
    ],
)
async def test_what_may_not_be_is_a_fault_of_the_arguments(
    plugins_file: PluginsFile, tool: str, arguments: dict[str, Any], kind: str, sentence: str
) -> None:
    async with Host.open(plugins_file(folders=["docs"])) as host:
        refused = await host.call(tool, arguments)

    assert (refused.error_kind, refused.success) == (kind, False)
    assert sentence in refused.error


async def test_without_folders_indexing_fails_with_the_way_to_allow_some(plugins_file: PluginsFile) -> None:
    async with Host.open(plugins_file()) as host:
        refused = await host.call("index")

    assert refused.error_kind == "tool_error"
    assert "no folder may be indexed; the operator allows some in plugins.json" in refused.error


async def test_a_configuration_that_does_not_fit_is_told_with_its_place(plugins_file: PluginsFile) -> None:
    async with Host.open(plugins_file(folders="docs")) as host:
        report = host.plugins.get("knowledge")

    assert (report.state, report.stage) == ("failed", "init")


async def test_a_call_that_is_cancelled_leaves_an_index_that_can_be_searched_and_gone_on_with(
    plugins_file: PluginsFile, docs: Path, slow: Callable[[float], float]
) -> None:
    for number in range(3000):
        (docs / f"note{number:04}.txt").write_text(f"Note {number} about elephants.")

    async with Host.open(plugins_file(folders=["docs"])) as host, asyncio.timeout(slow(50)):
        work = await host.start_execution("index")
        while not (so_far := await indexed_files(host)):
            assert not (await host.executions.get(work.id)).is_ended
        assert (await host.call("search", {"query": "elephant"})).success, "while it is being indexed"
        await host.executions.cancel(work.id)
        assert (await host.executions.wait(work.id)).state == "cancelled"
        kept = await indexed_files(host)
        again = await host.call("index")

    assert so_far <= kept < 3004
    assert (again.data["unchanged"], again.data["read"]) == (kept, 3004 - kept)


async def indexed_files(host: Host) -> int:
    """Return how many files are in the index now."""
    listed = await host.call("indexed")
    return int(listed.data["folders"][0]["files"])
