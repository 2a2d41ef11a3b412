"""Runs of indexing: what is read, skipped, taken out and told, and that nothing breaks the index."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cyrene_knowledge import KnowledgePlugin, folders, index, run
from cyrene_knowledge.run import IndexRun, Outcome, StoppedError
from cyrene_knowledge.store import Store
from cyrene_sdk import ArgumentError, PluginConfig, ToolFailure, ToolResult

Pdf = Callable[[Sequence[str]], bytes]


def silent(progress: float, message: str = "") -> None:
    """Take a report and do nothing with it."""


async def index_all(plugin: KnowledgePlugin, folder: str | None = None) -> dict[str, Any]:
    """Index, and return the counts; of unreadable files a dict from path to reason."""
    result = await plugin.index(silent, Path(folder) if folder else None)
    assert result.success
    told = dict(result.data)
    return {**told, "unreadable": {one["path"]: one["why"] for one in told["unreadable"]}}


def found(plugin: KnowledgePlugin, query: str) -> list[str]:
    """Return the paths of the hits, best first."""
    return [hit["path"] for hit in plugin.search(query, 20).data["hits"]]


def age(*paths: Path) -> None:
    """Make files look as if they had been written long ago."""
    for path in paths:
        os.utime(path, (1_000_000_000, 1_000_000_000))


async def test_every_kind_of_document_is_found_in_both_languages(plugin: KnowledgePlugin) -> None:
    assert await index_all(plugin, "docs") == {
        "read": 4, "unchanged": 0, "removed": 0, "sections": 7, "unreadable": {},
    }  # fmt: skip

    assert found(plugin, "worker restarting") == ["docs/guide.md"]
    assert found(plugin, "millisecond") == ["docs/deep/notes.txt"]
    assert found(plugin, "差旅") == ["docs/policy.html"]
    assert found(plugin, "报销制度") == ["docs/policy.html"]
    assert found(plugin, "旅") == ["docs/policy.html"]
    assert found(plugin, "销") == ["docs/policy.html"]
    assert found(plugin, "怎么给插件写测试？")[0] == "docs/guide.md"
    assert found(plugin, "brake") == ["docs/manual.pdf"]
    assert found(plugin, "notes") == ["docs/deep/notes.txt"], "a file is found by its name"
    assert found(plugin, "nowhere") == []


async def test_a_hit_tells_place_and_snippet_to_models_and_programs(plugin: KnowledgePlugin) -> None:
    await index_all(plugin)

    restarts, brakes = plugin.search("restarted", 1), plugin.search("brakes", 1)

    assert restarts.output == "1. docs/guide.md › Guide › Restarts\n   A crashed worker is «restarted»."
    (hit,) = brakes.data["hits"]
    assert hit.pop("score") > 0
    assert hit == {
        "path": "docs/manual.pdf", "heading": "", "page": 2, "snippet": "The second page is about «brakes».",
    }  # fmt: skip
    assert brakes.output.startswith("1. docs/manual.pdf, page 2\n")


async def test_the_best_hit_comes_first_and_the_limit_holds(plugin: KnowledgePlugin, docs: Path) -> None:
    (docs / "a.txt").write_text("engines " + "and other things " * 50)
    (docs / "b.txt").write_text("engines, engines: brakes of engines")
    await index_all(plugin)

    assert found(plugin, "brakes of engines")[0] == "docs/b.txt"
    assert len(plugin.search("engines", 2).data["hits"]) == 2


@pytest.mark.parametrize("query", ['"', "restart* OR", "NEAR(a b, 2)", "heading:restart", "(((", "- ^ +", 'a" AND "b'])
async def test_syntax_in_a_query_is_only_text(plugin: KnowledgePlugin, query: str) -> None:
    await index_all(plugin)

    try:
        assert isinstance(plugin.search(query, 5), ToolResult)
    except ArgumentError as refused:
        assert (str(refused), refused.path) == ("the query has no word to search for", "/query")  # noqa: PT017
        assert not any(sign.isalnum() for sign in query)


async def test_unchanged_files_are_not_read_again(plugin: KnowledgePlugin, docs: Path) -> None:
    age(docs / "guide.md", docs / "policy.html", docs / "manual.pdf", docs / "deep" / "notes.txt")
    await index_all(plugin)
    (docs / "guide.md").chmod(0)  # who opened it would fail, but for root
    same_size = (docs / "policy.html").read_bytes()[::-1]
    (docs / "policy.html").write_bytes(same_size)
    age(docs / "policy.html")

    again = await index_all(plugin)

    assert (again["read"], again["unchanged"], again["unreadable"]) == (0, 4, {})


async def test_a_file_that_was_only_touched_is_not_put_in_again(plugin: KnowledgePlugin, docs: Path) -> None:
    await index_all(plugin)
    age(docs / "guide.md")

    assert (await index_all(plugin))["unchanged"] == 4


async def test_a_file_that_was_written_just_now_is_looked_at_again(plugin: KnowledgePlugin, docs: Path) -> None:
    note = docs / "deep" / "notes.txt"
    await index_all(plugin)
    before = note.stat()
    note.write_text(note.read_text().replace("Timeouts", "Deadline"))  # as long as before, in the same instant
    os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert (await index_all(plugin))["read"] == 1
    assert (found(plugin, "timeouts"), found(plugin, "deadline")) == ([], ["docs/deep/notes.txt"])


async def test_a_changed_file_is_replaced_and_a_vanished_one_taken_out(plugin: KnowledgePlugin, docs: Path) -> None:
    await index_all(plugin)
    (docs / "guide.md").write_text("# Guide\n\nAll about elephants.\n")
    (docs / "manual.pdf").unlink()

    again = await index_all(plugin)

    assert (again["read"], again["unchanged"], again["removed"]) == (1, 2, 1)
    assert (found(plugin, "worker"), found(plugin, "elephant")) == ([], ["docs/guide.md"])
    assert found(plugin, "brakes") == []


async def test_a_part_of_a_folder_is_indexed_alone(plugin: KnowledgePlugin, docs: Path) -> None:
    assert (await index_all(plugin, "docs/deep"))["read"] == 1
    assert (await index_all(plugin, str(docs)))["read"] == 3


async def test_what_cannot_be_read_is_named_each_time_and_stops_nothing(plugin: KnowledgePlugin, docs: Path) -> None:
    (docs / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    (docs / "bad.txt").write_bytes(b"\xff\xff\xff")
    (docs / "binary.txt").write_bytes(b"\0\1\2")
    with (docs / "huge.txt").open("wb") as huge:
        huge.truncate(20 * 1024 * 1024 + 1)
    os.mkfifo(docs / "pipe.txt")
    age(docs / "bad.pdf", docs / "bad.txt", docs / "binary.txt")

    for _ in range(2):
        told = (await index_all(plugin))["unreadable"]

        assert told.pop("docs/bad.pdf").startswith("the PDF is broken: ")
        assert told == {
            "docs/bad.txt": "its encoding is neither UTF-8, UTF-16 nor GB 18030",
            "docs/binary.txt": "it is binary, not text",
            "docs/huge.txt": "it is over 20 MiB",
            "docs/pipe.txt": "it is no plain file",
        }
    assert found(plugin, "brakes") == ["docs/manual.pdf"]
    assert plugin.indexed().output == "docs: 9 files, 7 sections, 5 not read or not wholly"


async def test_a_name_that_is_not_utf8_is_told(plugin: KnowledgePlugin, docs: Path) -> None:
    try:
        (docs / os.fsdecode(b"\xff.txt")).write_text("text")
    except OSError:
        pytest.skip("this file system takes no such names")

    assert (await index_all(plugin))["unreadable"] == {"docs/\ufffd.txt": "its name is not UTF-8"}


async def test_many_unreadable_files_are_told_in_few_lines(plugin: KnowledgePlugin, docs: Path) -> None:
    for number in range(25):
        (docs / f"bad{number:02}.txt").write_bytes(b"\0")

    result = await plugin.index(silent)

    assert result.output.splitlines()[0] == "'docs': 4 files read (7 sections), 0 unchanged, 0 removed."
    assert result.output.splitlines()[-1] == "- and 5 more"
    assert len(result.data["unreadable"]) == 25


async def test_links_and_hidden_files_are_left_out(plugin: KnowledgePlugin, docs: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("zebra")
    (docs / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (docs / "link").symlink_to(tmp_path / "outside")
    (docs / "loop").symlink_to(docs)
    (docs / ".hidden.txt").write_text("zebra")
    (docs / ".git").mkdir()
    (docs / ".git" / "note.txt").write_text("zebra")

    told = await index_all(plugin)
    assert (told["read"], told["unreadable"]) == (4, {})
    assert found(plugin, "zebra") == []


async def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_followed(
    plugin: KnowledgePlugin, docs: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("zebra")

    def swap(progress: float, message: str = "") -> None:
        if "reading notes.txt" in message:
            (docs / "deep" / "notes.txt").unlink()
            (docs / "deep" / "notes.txt").symlink_to(tmp_path / "secret.txt")

    result = await plugin.index(swap)

    assert [one["path"] for one in result.data["unreadable"]] == ["docs/deep/notes.txt"]
    assert found(plugin, "zebra") == []


async def test_a_file_that_vanishes_after_it_was_listed_is_taken_out(plugin: KnowledgePlugin, docs: Path) -> None:
    await index_all(plugin)

    def remove(progress: float, message: str = "") -> None:
        if "reading notes.txt" in message:
            (docs / "deep" / "notes.txt").unlink()

    result = await plugin.index(remove)

    assert (result.data["removed"], result.data["unreadable"]) == (1, [])
    assert found(plugin, "timeouts") == []


@pytest.mark.parametrize("folder", ["/etc", "..", "docs/..", "docs/link", "/no/such/folder"])
async def test_only_what_is_allowed_is_indexed(
    plugin: KnowledgePlugin, docs: Path, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "outside").mkdir()
    (docs / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(ArgumentError) as refused:
        await plugin.index(silent, Path(folder))

    what = f"the folder '{folder}' may not be indexed; allowed are 'docs' and the folders in them"
    assert (str(refused.value), refused.value.path) == (what, "/folder")


@pytest.mark.parametrize(
    ("folder", "what"),
    [("docs/none", "the folder 'docs/none' is not there"),
     ("docs/guide.md", "the folder 'docs/guide.md' is a file; name its folder")],
)  # fmt: skip
async def test_a_folder_that_is_none_is_told(plugin: KnowledgePlugin, folder: str, what: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        await plugin.index(silent, Path(folder))

    assert str(refused.value) == what


async def test_without_configuration_nothing_may_be_indexed(plugin: KnowledgePlugin, tmp_path: Path) -> None:
    await index_all(plugin)
    plugin.init(PluginConfig({}, folder=tmp_path))

    with pytest.raises(ToolFailure, match=r'as "config": {"folders": \["docs"\]} of this plugin\'s entry'):
        await plugin.index(silent)
    assert found(plugin, "brakes") == [], "what is no longer allowed is no longer found"
    assert plugin.indexed().output == "No folder may be indexed here."


async def test_folders_that_are_not_there_are_told(plugin: KnowledgePlugin, tmp_path: Path) -> None:
    plugin.init(PluginConfig({"folders": ["gone", "gone/deep"]}, folder=tmp_path))

    with pytest.raises(ToolFailure, match=r"none of the folders that may be indexed is there: 'gone'$"):
        await plugin.index(silent)


async def test_a_folder_of_too_many_documents_is_refused(
    plugin: KnowledgePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_FILES", 3)

    with pytest.raises(ArgumentError, match="there are more than 3 documents below 'docs'; name a folder in it"):
        await plugin.index(silent)
    assert (await index_all(plugin, "docs/deep"))["read"] == 1


async def test_a_forgotten_folder_is_no_longer_found(plugin: KnowledgePlugin, docs: Path) -> None:
    assert plugin.search("brakes", 5).output == "Nothing is indexed yet: call index first."
    await index_all(plugin)

    forgotten = await plugin.forget(Path("docs/deep"))

    assert (forgotten.data, found(plugin, "timeouts")) == ({"removed": 1}, [])
    assert plugin.indexed().data == {"folders": [{"folder": "docs", "files": 3, "sections": 6, "faulty": 0}]}
    assert plugin.search("timeouts", 5).output == "Nothing was found for 'timeouts'."
    assert (await index_all(plugin))["read"] == 1


def store_of(plugin: KnowledgePlugin) -> Store:
    return plugin._store


@pytest.mark.parametrize("damage", ["no database", "broken pages", "another version"])
async def test_an_index_that_is_damaged_or_outdated_is_set_aside_and_made_anew(
    plugin: KnowledgePlugin, damage: str
) -> None:
    await index_all(plugin)
    file = store_of(plugin).file
    if damage == "no database":
        file.write_bytes(b"x" * 10_000)
    elif damage == "broken pages":
        whole = file.read_bytes()
        file.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    else:
        database = sqlite3.connect(file)
        database.execute("PRAGMA user_version = 7")
        database.close()

    with pytest.raises(ToolFailure, match="has been set aside; index the folders again"):
        plugin.search("brakes", 5)
    assert file.with_name("index.damaged.db").exists()
    assert plugin.search("brakes", 5).output == "Nothing is indexed yet: call index first."
    assert (await index_all(plugin))["read"] == 4
    assert found(plugin, "brakes") == ["docs/manual.pdf"]


async def test_a_run_that_meets_a_damaged_index_begins_anew_and_says_so(plugin: KnowledgePlugin) -> None:
    await index_all(plugin)
    store_of(plugin).file.write_bytes(b"x" * 10_000)

    result = await plugin.index(silent)

    assert result.output.startswith("the index was damaged (file is not a database) and has been set aside; all is")
    assert result.data["read"] == 4


async def test_a_full_index_says_so_and_keeps_what_it_has(
    plugin: KnowledgePlugin, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index_all(plugin)
    (docs / "long.txt").write_text(" ".join(f"word{number}" for number in range(50_000)))
    monkeypatch.setattr(index, "MAX_BYTES", 200 * 1024)

    with pytest.raises(ToolFailure, match=r"cannot be used: it is full: .* forget a folder"):
        await plugin.index(silent)
    assert found(plugin, "brakes") == ["docs/manual.pdf"]


async def test_an_index_that_cannot_be_opened_is_told(plugin: KnowledgePlugin) -> None:
    store_of(plugin).file.mkdir()

    with pytest.raises(ToolFailure, match="cannot be used: unable to open database file"):
        plugin.search("brakes", 5)


async def test_a_file_that_takes_too_long_is_left(plugin: KnowledgePlugin, docs: Path) -> None:
    ticks = iter(range(0, 100_000, 50))  # three looks at the clock take longer than one file may
    result = IndexRun([docs], store_of(plugin), silent, clock=lambda: next(ticks))()

    assert result.unreadable == {
        docs / "manual.pdf": "reading it takes over 120 s",
        docs / "policy.html": "reading it takes over 120 s",
    }
    assert found(plugin, "worker") == ["docs/guide.md"]


async def test_progress_names_the_file_and_never_falls(plugin: KnowledgePlugin) -> None:
    told: list[tuple[float, str]] = []

    await plugin.index(lambda progress, message="": told.append((progress, message)))

    assert told[0] == (0.0, "looking for documents (0 found)")
    assert (0.0, "reading guide.md (1/4)") in told
    assert (0.375, "reading manual.pdf (2/4)") in told, "of a PDF each page counts"
    assert [progress for progress, _ in told] == sorted(progress for progress, _ in told)


def test_a_run_that_is_stopped_keeps_what_it_has_put_in(plugin: KnowledgePlugin, docs: Path) -> None:
    def stop(progress: float, message: str = "") -> None:
        if "(3/4)" in message:
            stopped.stop()

    stopped = IndexRun([docs], store_of(plugin), stop)
    with pytest.raises(StoppedError):
        stopped()

    assert [row["files"] for row in plugin.indexed().data["folders"]] == [2]
    assert IndexRun([docs], store_of(plugin), silent)() == Outcome(read=2, unchanged=2, sections=2)


def test_a_run_that_is_stopped_while_it_writes_undoes_that_file(plugin: KnowledgePlugin, docs: Path) -> None:
    (docs / "z.txt").write_text("many words. " * 100_000)
    stopped = IndexRun([docs], store_of(plugin), silent)
    writing = index.index_text

    def write(text: str) -> str:
        if "many" in text:
            stopped.stop()
        return writing(text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index, "index_text", write)
        with pytest.raises(StoppedError):
            stopped()

    assert (found(plugin, "many"), found(plugin, "brakes")) == ([], ["docs/manual.pdf"])


def test_a_replacement_that_fails_halfway_leaves_the_old_text(plugin: KnowledgePlugin, docs: Path) -> None:
    IndexRun([docs], store_of(plugin), silent)()
    (docs / "guide.md").write_text("many words")
    writing = index.index_text

    def write(text: str) -> str:
        if "many" in text:
            raise RuntimeError
        return writing(text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index, "index_text", write)
        with pytest.raises(sqlite3.OperationalError, match="user-defined function raised exception"):
            IndexRun([docs], store_of(plugin), silent)()

    assert found(plugin, "worker") == ["docs/guide.md"]


def test_a_report_that_raises_ends_the_run_and_leaves_the_index_whole(plugin: KnowledgePlugin, docs: Path) -> None:
    def refuse(progress: float, message: str = "") -> None:
        if "(2/4)" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        IndexRun([docs], store_of(plugin), refuse)()

    assert found(plugin, "worker") == ["docs/guide.md"]


def test_a_folder_that_cannot_be_listed_keeps_its_files(
    plugin: KnowledgePlugin, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    IndexRun([docs], store_of(plugin), silent)()
    listed = run.documents_below

    def without_deep(folder: Path, tick: Callable[[int], None]) -> folders.Listing:
        listing = listed(folder, tick)
        files = [path for path in listing.files if path.parent.name != "deep"]
        return folders.Listing(files, {docs / "deep": "Permission denied"})

    monkeypatch.setattr(run, "documents_below", without_deep)  # root may list everything
    outcome = IndexRun([docs], store_of(plugin), silent)()

    assert (outcome.removed, outcome.unreadable) == (0, {docs / "deep": "Permission denied"})
    assert found(plugin, "timeouts") == ["docs/deep/notes.txt"]


def test_what_is_put_in_is_found_while_a_run_goes_on(plugin: KnowledgePlugin, docs: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def wait(progress: float, message: str = "") -> None:
        if "(3/4)" in message:
            reached.set()
            go_on.wait(20)

    thread = threading.Thread(target=IndexRun([docs], store_of(plugin), wait))
    thread.start()
    assert reached.wait(20)
    assert found(plugin, "brakes") == ["docs/manual.pdf"]
    go_on.set()
    thread.join(20)
    assert found(plugin, "差旅") == ["docs/policy.html"]
