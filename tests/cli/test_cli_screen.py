"""Tables: wide characters keep the columns of a pipe straight, a terminal gets one that fits it."""

from __future__ import annotations

import io

import pytest

from cyrene_host.cli.screen import Screen
from cyrene_sdk.errors import CyreneError


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_wide_characters_take_two_columns() -> None:
    out = io.StringIO()
    Screen(out, io.StringIO()).table(("a", "b"), [("文字", "x"), ("abcd", "y"), ("e\u0301f", "z")])
    assert out.getvalue() == "A     B\n文字  x\nabcd  y\ne\u0301f    z\n"


def test_a_cell_is_one_line() -> None:
    out = io.StringIO()
    Screen(out, io.StringIO()).table(("a",), [("one\n  two\x1b[2J",)])
    assert out.getvalue() == "A\none two\n"


def test_a_terminal_gets_cells_that_fit_it_and_no_markup_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    Screen(out, io.StringIO()).table(("tool", "text"), [("[red]x[/red]", "a text of some length")])
    head, *rows = out.getvalue().splitlines()
    assert "TOOL" in head
    assert [row.rstrip() for row in rows] == ["[red]x[/red]  a text of some", "              length"]


def test_what_happened_stands_out_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    error = CyreneError("it broke\x1b[2J", where="here", mend="mend it")
    monkeypatch.delenv("NO_COLOR", raising=False)
    err = Terminal()
    Screen(io.StringIO(), err).error(error)
    assert err.getvalue() == "\x1b[1;31mit broke\x1b[0m\n  where: here\n  mend:  mend it\n"


def test_no_color_leaves_errors_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    err = Terminal()
    Screen(io.StringIO(), err).error(CyreneError("it broke"))
    assert err.getvalue() == "it broke\n"
