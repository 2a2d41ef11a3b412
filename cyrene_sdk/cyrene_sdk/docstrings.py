"""What a docstring says: the description of a function, and of each of its parameters."""

from __future__ import annotations

import inspect
import re

__all__ = ["read_docstring"]

_ARGS_HEADER = re.compile(r"(Args|Arguments|Parameters|Params|参数)\s*[:：]\s*$")
_ARGS_ENTRY = re.compile(r"(?P<indent>\s+)\*{0,2}(?P<name>\w+)\s*(?:\(.*?\))?\s*[:：]\s*(?P<text>.*)$")
_FIELD = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+)\s*:\s*(?P<text>.*)$")
_FIELD_TYPE = re.compile(r":type\s+\w+\s*:")


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return the description, and the text of each parameter by name.

    Google's `Args:` section and Sphinx's `:param name:` fields are read and taken out of the description;
    everything else stays in it.
    """
    kept: list[str] = []
    texts: dict[str, str] = {}
    lines = inspect.cleandoc(docstring or "").splitlines()
    while lines:
        line = lines.pop(0)
        if _ARGS_HEADER.match(line):
            _read_args(_indented(lines), texts)
        elif field := _FIELD.match(line):
            texts[field["name"]] = _joined(field["text"], _indented(lines))
        elif not _FIELD_TYPE.match(line):
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), texts


def _indented(lines: list[str]) -> list[str]:
    """Take the indented lines (and the blank ones among them) from the front of `lines`."""
    taken = []
    while lines and (not lines[0].strip() or lines[0][0].isspace()):
        taken.append(lines.pop(0))
    if taken and lines and not taken[-1].strip():
        lines.insert(0, "")  # the paragraphs around the section stay apart
    return taken


def _read_args(section: list[str], texts: dict[str, str]) -> None:
    indent, name = None, None
    for line in section:
        entry = _ARGS_ENTRY.match(line)
        if entry and (indent is None or entry["indent"] == indent):
            indent, name = entry["indent"], entry["name"]
            texts[name] = entry["text"].strip()
        elif name is not None:
            texts[name] = _joined(texts[name], [line])


def _joined(text: str, lines: list[str]) -> str:
    return " ".join(part for part in (text.strip(), *(line.strip() for line in lines)) if part)
