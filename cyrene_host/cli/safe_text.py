"""Text that others wrote, made fit for a terminal: it must neither steer the terminal nor hide anything."""

from __future__ import annotations

import json
import re
import unicodedata

__all__ = ["cleaned", "escaped", "fit_for_json", "in_one_line"]

# CSI, OSC and the other strings that a terminal swallows, with ESC or the C1 character; then two-character sequences.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# C0 but tab and line feed, C1, then what turns text round or is not seen: marks, tags, further variation selectors.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
# Letters and marks by category, yet nothing is seen of them.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_VISIBLE_SPACE = frozenset(" \n")
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def cleaned(text: str) -> str:
    """Return the text without terminal sequences, control characters (but tab and line feed) and bidi and tag marks."""
    return _STEERING.sub("", _SEQUENCE.sub("", text))


def escaped(text: str) -> str:
    r"""Return the text with all that cannot be seen, or looks like a space, as `\uXXXX`.

    For what a person is to approve: a JSON text keeps its meaning.
    """
    return "".join(_code(character) if _is_unseen(character) else character for character in text)


def in_one_line(text: str) -> str:
    r"""Return the text as `escaped` does, and line feeds as `\n`: for one line of a plugin's among the host's own."""
    return escaped(text).replace("\n", "\\n")


def fit_for_json(text: str) -> str:
    r"""Return a JSON text that means the same, with `\uXXXX` for what would steer a terminal."""
    return _STEERING.sub(lambda found: _code(found[0]), text)


def _is_unseen(character: str) -> bool:
    if character in _VISIBLE_SPACE or "!" <= character <= "~":
        return False
    is_selector = "\U000e0100" <= character <= "\U000e01ef"
    return is_selector or character in _BLANK or unicodedata.category(character) in _UNSEEN_CATEGORIES


def _code(character: str) -> str:
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"
