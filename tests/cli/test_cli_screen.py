"""Tables: wide characters keep the columns of a pipe straight, a terminal gets one that fits it."""

from __future__ import annotations

import io

from cyrene_host.cli.screen import Screen


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


def test_a_terminal_gets_a_table_with_a_rule_and_no_markup_is_obeyed(monkeypatch: object) -> None:
    out = Terminal()
    Screen(out, io.StringIO()).table(("tool", "text"), [("[red]x[/red]", "y")])
    shown = out.getvalue()
    assert "[red]x[/red]" in shown
    assert "───" in shown
