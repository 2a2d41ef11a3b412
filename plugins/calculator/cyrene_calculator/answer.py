"""Write a number as a person reads it and as a program does."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypedDict

from cyrene_calculator.arithmetic import Number

__all__ = ["Answer", "answer", "text"]

_SAFE_WHOLE = 2**53  # beyond it, JSON readers that know floating numbers only would lose digits
_LONGEST_WHOLE = 1e16  # where Python itself changes to 1e+16


class Answer(TypedDict):
    """A result for programs.

    `value` is the nearest floating number, of a floating result rounded to 15 digits; None beyond 1.8e308.
    `exact` is a whole number or a fraction as text; None where the result is floating.
    """

    value: int | float | None
    exact: str | None


def text(number: Number) -> str:
    """Return the digits for a person: 0.3 for 0.1 + 0.2, 2/3 for a fraction."""
    if not isinstance(number, float):
        return str(number)
    rounded = _rounded(number)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < _LONGEST_WHOLE else repr(rounded)


def answer(number: Number) -> Answer:
    """Return the number for a program."""
    if isinstance(number, float):
        return {"value": _rounded(number), "exact": None}
    return {"value": _nearest(number), "exact": str(number)}


def _nearest(number: int | Fraction) -> int | float | None:
    if number.denominator == 1 and -_SAFE_WHOLE < number < _SAFE_WHOLE:
        return int(number)
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return None


def _rounded(number: float) -> float:
    """Round to 15 digits, which hides what binary fractions add, and turn -0.0 into 0.0."""
    rounded = float(f"{number:.15g}")
    return rounded + 0.0 if math.isfinite(rounded) else number  # the largest floats round up to infinity
