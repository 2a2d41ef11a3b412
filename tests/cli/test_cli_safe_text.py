"""Text of others neither steers a terminal nor hides anything."""

from __future__ import annotations

import json

import pytest

from cyrene_host.cli.safe_text import cleaned, escaped, fit_for_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 文字 é\tand\nlines", "plain 文字 é\tand\nlines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdcs\x1b\\after", "after"),
        ("\x1bcreset", "reset"),
        ("over\rwritten\x08\x00\x7f", "overwritten"),
        ("a\u202eb\u2066c\u061cd\ufeffe", "abcde"),
        ("tag\U000e0041\U000e0101ged", "tagged"),
        ("lone\ud800surrogate", "lonesurrogate"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
    ],
)
def test_what_would_steer_a_terminal_is_left_out(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u202e", r"\u202e"),
        ("\u200b", r"\u200b"),
        ("\u00a0", r"\u00a0"),
        ("\u3164", r"\u3164"),
        ("\ufe0f", r"\ufe0f"),
        ("\U000e0041", r"\udb40\udc41"),
        ("\U000e0101", r"\udb40\udd01"),
        ("\x7f", r"\u007f"),
        ("\x9b", r"\u009b"),
        ("文 x\n", "文 x\n"),
    ],
)
def test_what_a_person_approves_shows_all_that_cannot_be_seen(hidden: str, shown: str) -> None:
    assert escaped(hidden) == shown


def test_a_json_text_keeps_its_meaning() -> None:
    value = {"text": "a\x1b\x7f\x9b\u202e\U000e0041文"}
    written = json.dumps(value, ensure_ascii=False)
    assert json.loads(escaped(written)) == json.loads(fit_for_json(written)) == value
    assert not {"\x1b", "\x7f", "\x9b", "\u202e", "\U000e0041"} & set(fit_for_json(written))
