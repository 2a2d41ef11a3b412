"""Turn what people type into a Python expression of plain ASCII."""

import re

from cyrene_sdk import ArgumentError

__all__ = ["MAX_CHARACTERS", "plain"]

MAX_CHARACTERS = 1000

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SIGNS = str.maketrans(
    {
        "\u3000": " ",
        "×": "*",
        "·": "*",
        "⋅": "*",
        "∙": "*",
        "÷": "/",
        "∕": "/",
        "−": "-",
        "–": "-",
        "【": "(",
        "】": ")",
        "^": "**",
        "√": "sqrt",
        "π": "pi",
    }
)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_UNREADABLE = re.compile(r"[^0-9A-Za-z_+\-*/%(),. ]")
_INSTEAD = {
    "!": "write factorial(5) for 5!",
    "[": "use round brackets only",
    "{": "use round brackets only",
    "=": "give one side only; there are no equations or comparisons",
    "&": "there are no bit operations",
    "|": "write abs(x) for |x|",
    "<": "there are no comparisons or shifts",
    ">": "there are no comparisons or shifts",
}


def plain(text: str) -> str:
    """Return `text` as a Python expression on one line.

    `×`, `÷`, `√`, `π`, raised digits and full-width characters are translated; `^` means power, as
    people type it.

    Raises:
        ArgumentError: the text is empty, longer than 1000 characters, or holds a character that is
            no arithmetic.
    """
    if len(text) > MAX_CHARACTERS:
        raise ArgumentError(
            f"the expression has {len(text)} characters; {MAX_CHARACTERS} is the limit", path="/expression"
        )
    translated = text.translate(_FULL_WIDTH).translate(_SIGNS)
    raised = _RAISED.sub(lambda digits: f"**({digits[0].translate(_RAISED_DIGITS)})", translated)
    line = " ".join(raised.split())
    if not line:
        raise ArgumentError("the expression is empty; write one such as 12*(3+4)", path="/expression")
    if unreadable := _UNREADABLE.search(line):
        character = unreadable[0]
        instead = _INSTEAD.get(character, "use digits, + - * / // % ^, round brackets and function names")
        raise ArgumentError(f"'{character}' cannot be used in an expression; {instead}", path="/expression")
    return line
