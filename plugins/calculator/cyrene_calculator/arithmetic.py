"""Numbers of bounded size: the operators, functions and constants of floating and of exact arithmetic."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cyrene_sdk import ArgumentError

__all__ = ["EXACT", "FLOATING", "MAX_COUNT", "MAX_DIGITS", "Arithmetic", "Number", "refused"]

Number = int | float | Fraction
Operation = Callable[..., Any]

MAX_DIGITS = 1000  # keeps the slowest expression of 1000 characters under 50 ms
MAX_COUNT = 1000  # for what grows like a factorial
_TOO_LARGE = 10**MAX_DIGITS
_MAX_BITS = _TOO_LARGE.bit_length()


@dataclass(frozen=True)
class Arithmetic:
    """What an expression may use; every operation refuses what grows out of bounds.

    Args:
        literal: takes a number as Python read it, and its text, which may say more.
        operators: by the class of their syntax node.
    """

    literal: Callable[[int | float, str], Number]
    operators: Mapping[type[ast.AST], Operation]
    functions: Mapping[str, Operation]
    constants: Mapping[str, Number]


def refused(sentence: str) -> ArgumentError:
    """Return the error that tells the model what is wrong with its expression."""
    return ArgumentError(sentence, path="/expression")


def _too_large() -> ArgumentError:
    return refused(f"a number in the expression grows beyond {MAX_DIGITS} digits, which is the limit")


def _floating(value: Any) -> Number:
    """Check a result of floating arithmetic, where whole numbers stay whole."""
    if isinstance(value, complex):
        raise refused("a negative number has no real power of this kind")
    if isinstance(value, float) and not math.isfinite(value):
        raise refused("a number in the expression is too large for floating arithmetic (about 1.8e308)")
    if abs(value) >= _TOO_LARGE:
        raise _too_large()
    return value  # type: ignore[no-any-return]  # int or float, as checked


def _exact(value: Any) -> Number:
    """Check a result of exact arithmetic, where every number is a fraction."""
    fraction = Fraction(value)
    if max(abs(fraction.numerator), fraction.denominator) >= _TOO_LARGE:
        raise _too_large()
    return fraction


def _bounded(operation: Operation, check: Callable[[Any], Number]) -> Operation:
    @functools.wraps(operation)
    def run(*numbers: Number) -> Number:
        return check(operation(*numbers))

    return run


def _power(number: Any, exponent: Any) -> Any:
    if isinstance(exponent, Fraction) and exponent.denominator != 1:
        raise refused("exact powers need a whole exponent; call again with exact=false")
    if not isinstance(number, float) and not isinstance(exponent, float):
        fewest_bits = max(number.numerator.bit_length(), number.denominator.bit_length()) - 1
        if fewest_bits * abs(exponent) > _MAX_BITS:
            raise _too_large()
    return number**exponent


def _whole(number: Number, *, within: int | None = None) -> int:
    if number != int(number):
        raise refused(f"{str(number)[:40]} is no whole number, which this function needs")
    if within is not None and not -within <= number <= within:
        raise refused(f"this function takes numbers up to {within} only")
    return int(number)


def _of_wholes(operation: Callable[..., int], *, within: int | None = None) -> Operation:
    @functools.wraps(operation)
    def run(*numbers: Number) -> int:
        return operation(*(_whole(number, within=within) for number in numbers))

    return run


def _round(number: Number, digits: Number = 0) -> Number:
    """Round half away from zero, as schools teach it; 2.675 counts as written, not as stored."""
    scale = Fraction(10) ** _whole(digits, within=MAX_DIGITS)
    written = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    rounded = math.floor(abs(written) * scale + Fraction(1, 2)) / scale
    return type(number)(-rounded if written < 0 else rounded)


def _within_noise(result: float, number: float) -> float:
    """Return 0 where the result is smaller than the rounding of its argument, as sin(pi) is."""
    return 0.0 if abs(result) <= abs(number) * 2**-52 else result


def _sin(number: float) -> float:
    return _within_noise(math.sin(number), number)


def _cos(number: float) -> float:
    return _within_noise(math.cos(number), number)


def _tan(number: float) -> float:
    return _sin(number) / _cos(number)


def _exact_root(number: Number) -> Fraction:
    fraction = Fraction(number)
    root = Fraction(math.isqrt(fraction.numerator), math.isqrt(fraction.denominator))
    if root * root != fraction:
        raise refused("the square root is no fraction; call again with exact=false")
    return root


def _exact_literal(value: int | float, text: str) -> Number:
    if isinstance(value, int):
        return value
    exponent = text.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > MAX_DIGITS:
        raise _too_large()
    return Fraction(text)


_OPERATORS: Mapping[type[ast.AST], Operation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Operation] = {
    "abs": abs,
    "ceil": math.ceil,
    "comb": _of_wholes(math.comb, within=MAX_COUNT),
    "factorial": _of_wholes(math.factorial, within=MAX_COUNT),
    "floor": math.floor,
    "gcd": _of_wholes(math.gcd),
    "lcm": _of_wholes(math.lcm),
    "max": max,
    "min": min,
    "perm": _of_wholes(math.perm, within=MAX_COUNT),
    "pow": _power,
    "round": _round,
}
_FLOATING_FUNCTIONS: Mapping[str, Operation] = {
    "acos": math.acos,
    "asin": math.asin,
    "atan": math.atan,
    "atan2": math.atan2,
    "cbrt": math.cbrt,
    "cos": _cos,
    "cosh": math.cosh,
    "degrees": math.degrees,
    "exp": math.exp,
    "hypot": math.hypot,
    "lg": math.log10,
    "ln": math.log,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "radians": math.radians,
    "sin": _sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "tan": _tan,
    "tanh": math.tanh,
}


def _arithmetic(
    check: Callable[[Any], Number],
    *,
    literal: Callable[[int | float, str], Number],
    functions: Mapping[str, Operation],
    constants: Mapping[str, Number],
) -> Arithmetic:
    return Arithmetic(
        literal=lambda value, text: check(literal(value, text)),
        operators={node: _bounded(operation, check) for node, operation in _OPERATORS.items()},
        functions={name: _bounded(operation, check) for name, operation in functions.items()},
        constants=constants,
    )


FLOATING = _arithmetic(
    _floating,
    literal=lambda value, _: value,
    functions={**_FUNCTIONS, **_FLOATING_FUNCTIONS},
    constants={"e": math.e, "pi": math.pi, "tau": math.tau},
)
EXACT = _arithmetic(
    _exact,
    literal=_exact_literal,
    functions={**_FUNCTIONS, "sqrt": _exact_root},
    constants={},
)
