"""What the tools answer: a text for the model, and the same as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyrene_knowledge.folders import Folders
from cyrene_knowledge.index import Counts, Hit
from cyrene_knowledge.run import Outcome
from cyrene_knowledge.snippet import snippet
from cyrene_sdk import ToolResult

__all__ = ["FOLDERS", "HITS", "OUTCOME", "counts_answer", "hits_answer", "outcome_answer"]

NAMED = 20
"""How many unreadable files the text names; the data names more."""

NAMED_IN_DATA = 1000

_COUNT = {"type": "integer", "minimum": 0}
OUTCOME: dict[str, Any] = {
    "type": "object",
    "properties": {
        "read": {**_COUNT, "description": "新读入或有改动的文件数"},
        "unchanged": {**_COUNT, "description": "没有改动的文件数"},
        "removed": {**_COUNT, "description": "已消失而移出索引的文件数"},
        "sections": {**_COUNT, "description": "新写入的段落数"},
        "unreadable": {
            "type": "array",
            "description": "读不了或没有读全的文件，及其原因",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "why": {"type": "string"}},
                "required": ["path", "why"],
            },
        },
    },
    "required": ["read", "unchanged", "removed", "sections", "unreadable"],
}
HITS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "hits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "heading": {"type": "string", "description": "所在标题，由外到内；没有则为空"},
                    "page": {"type": ["integer", "null"], "description": "PDF 页码，从 1 起"},
                    "snippet": {"type": "string", "description": "原文片段，匹配的词在 «» 中"},
                    "score": {"type": "number", "description": "BM25，越高越好"},
                },
                "required": ["path", "heading", "page", "snippet", "score"],
            },
        }
    },
    "required": ["hits"],
}
FOLDERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "folders": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "folder": {"type": "string"},
                    "files": _COUNT,
                    "sections": _COUNT,
                    "faulty": {**_COUNT, "description": "读不了或没有读全的文件数"},
                },
                "required": ["folder", "files", "sections", "faulty"],
            },
        }
    },
    "required": ["folders"],
}


def outcome_answer(outcome: Outcome, done: Sequence[Path], folders: Folders) -> ToolResult:
    """Tell what a run over some folders did."""
    parts = [
        f"{folders.named(done)}: {_files(outcome.read)} read ({_counted(outcome.sections, 'section')})",
        f"{outcome.unchanged} unchanged",
        f"{outcome.removed} removed",
    ]
    lines = [*([f"{outcome.note}; all is read anew."] if outcome.note else []), f"{', '.join(parts)}."]
    unreadable = [(folders.shown(path), why) for path, why in outcome.unreadable.items()]
    if unreadable:
        lines.append(f"{_files(len(unreadable))} could not be read, or not wholly:")
        lines += [f"- {path}: {why}" for path, why in unreadable[:NAMED]]
        lines += [f"- and {len(unreadable) - NAMED} more"] if len(unreadable) > NAMED else []
    told = [{"path": path, "why": why} for path, why in unreadable[:NAMED_IN_DATA]]
    counts = {name: getattr(outcome, name) for name in ("read", "unchanged", "removed", "sections")}
    return ToolResult(success=True, output="\n".join(lines), data={**counts, "unreadable": told})


def hits_answer(hits: Sequence[Hit], query: str, folders: Folders, *, is_empty: bool) -> ToolResult:
    """Tell what was found, best first; `is_empty` says that nothing is indexed at all."""
    found = [
        {
            "path": folders.shown(hit.path),
            "heading": hit.heading,
            "page": hit.page,
            "snippet": snippet(hit.text, hit.marked),
            "score": round(hit.score, 3),
        }
        for hit in hits
    ]
    if is_empty:
        text = "Nothing is indexed yet: call index first."
    elif not found:
        text = f"Nothing was found for '{query}'."
    else:
        text = "\n".join(f"{number}. {_place(hit)}\n   {hit['snippet']}" for number, hit in enumerate(found, 1))
    return ToolResult(success=True, output=text, data={"hits": found})


def counts_answer(counts: Sequence[tuple[Path, Counts]], folders: Folders) -> ToolResult:
    """Tell what is indexed of each folder that is allowed."""
    rows = [
        {"folder": folders.shown(folder), "files": of.files, "sections": of.sections, "faulty": of.faulty}
        for folder, of in counts
    ]
    lines = [
        f"{row['folder']}: {_files(of.files)}, {_counted(of.sections, 'section')}"
        + (f", {of.faulty} not read or not wholly" if of.faulty else "")
        for row, (_, of) in zip(rows, counts, strict=True)
    ]
    return ToolResult(success=True, output="\n".join(lines) or "No folder may be indexed here.", data={"folders": rows})


def _place(hit: dict[str, Any]) -> str:
    page = f", page {hit['page']}" if hit["page"] else ""
    return f"{hit['path']}{page}" + (f" › {hit['heading']}" if hit["heading"] else "")


def _files(count: int) -> str:
    return _counted(count, "file")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
