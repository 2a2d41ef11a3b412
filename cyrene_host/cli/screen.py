"""Where a command's answer goes: data to one stream, everything else to the other."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOBase
from typing import Any, TextIO, cast

from cyrene_host.cli.safe_text import cleaned, fit_for_json
from cyrene_sdk.errors import CyreneError

__all__ = ["Screen"]

_STRONG, _PLAIN = "\x1b[1;31m", "\x1b[0m"


class Screen:
    """Writes for people, or one JSON document for programs.

    Args:
        out: for data.
        err: for all the rest.
        as_json: whether programs read `out`; the caller then writes its answer with `json` and leaves tables out.
    """

    def __init__(self, out: TextIO, err: TextIO, *, as_json: bool = False) -> None:
        self._out = out
        self._err = err
        self.as_json = as_json

    @property
    def err(self) -> TextIO:
        """Where all but data goes."""
        return self._err

    @property
    def can_animate(self) -> bool:
        """Whether what is written to `err` can be drawn anew: it is a terminal that moves its cursor."""
        return self._err.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")

    @contextmanager
    def through(self, err: TextIO | TextIOBase) -> Iterator[None]:
        """Write to another stream in the place of `err`, as long as this lasts."""
        before, self._err = self._err, cast("TextIO", err)
        try:
            yield
        finally:
            self._err = before

    def data(self, text: str) -> None:
        """Write text that a plugin made: unchanged, unless a terminal would obey it."""
        shown = cleaned(text) if self._out.isatty() else text
        self._write(self._out, shown if shown.endswith("\n") else f"{shown}\n")

    def json(self, document: Any) -> None:
        """Write the answer as a JSON document."""
        self._write(self._out, fit_for_json(json.dumps(document, ensure_ascii=False, indent=2)) + "\n")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table: at a terminal with cells wrapped to fit it, else one line a row."""
        heads = [column.upper() for column in columns]
        cells = [[" ".join(cleaned(cell).split()) for cell in row] for row in rows]
        if self._out.isatty():
            self._rich_table(heads, cells)
        else:
            self._plain_table([heads, *cells])

    def say(self, text: str) -> None:
        """Tell the person something that is no data."""
        self._write(self._err, cleaned(text).rstrip("\n") + "\n")

    def answer(self, text: str) -> None:
        """Write the answer in words."""
        self._write(self._out, cleaned(text).rstrip("\n") + "\n")

    def error(self, error: CyreneError | str) -> None:
        """Write an error's four parts, or their text; at a terminal what happened stands out."""
        lines = cleaned(str(error)).splitlines()
        if self._err.isatty() and not os.environ.get("NO_COLOR"):
            lines = [line if line.startswith("  ") else f"{_STRONG}{line}{_PLAIN}" for line in lines]
        self._write(self._err, "\n".join(lines) + "\n")

    def notes(self, notes: Iterable[str]) -> None:
        """Write what is worth knowing though nothing is wrong."""
        for note in notes:
            self.say(f"note: {note}")

    def _rich_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.console import Console  # only a person at a terminal pays for it
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console(file=self._out).print(table)
        self._out.flush()

    def _plain_table(self, rows: Sequence[Sequence[str]]) -> None:
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
        self._write(self._out, "\n".join(lines) + "\n")

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text)
        stream.flush()


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
