"""Evaluate one arithmetic expression: no code runs, nothing grows out of bounds, only ArgumentError is raised."""

from __future__ import annotations

import ast
import difflib
from typing import Any, NoReturn

from simpleeval import InvalidExpression, SimpleEval  # type: ignore[import-untyped]  # ships no types

from cyrene_calculator.arithmetic import EXACT, FLOATING, Number, refused
from cyrene_calculator.notation import plain
from cyrene_sdk import ArgumentError

__all__ = ["MAX_DEPTH", "Evaluator"]

MAX_DEPTH = 200  # simpleeval takes two frames a level, of the thousand that Python allows


class Evaluator:
    """A calculator for one kind of arithmetic: floating, or exact (fractions and whole numbers).

    simpleeval walks the expression; which syntax, operators, functions and names exist is decided here.
    """

    def __init__(self, *, exact: bool = False) -> None:
        self._arithmetic = EXACT if exact else FLOATING
        self._line = ""
        self._walker: Any = SimpleEval(
            operators=dict(self._arithmetic.operators), functions=dict(self._arithmetic.functions), names={}
        )
        walk = self._walker.nodes
        self._walk_call = walk[ast.Call]
        self._walker.nodes = {
            ast.BinOp: walk[ast.BinOp],
            ast.UnaryOp: walk[ast.UnaryOp],
            ast.Call: self._call,
            ast.Constant: self._literal,
            ast.Name: self._constant,
            ast.Tuple: self._comma,
        }

    def evaluate(self, expression: str) -> Number:
        """Return the value of an expression as people type it.

        Raises:
            ArgumentError: the expression is no arithmetic, has no value, or would take too much time or room.
        """
        self._line = plain(expression)
        tree = _parsed(self._line)
        try:
            value: Number = self._walker.eval(self._line, tree)
        except ZeroDivisionError as error:
            raise refused("the expression divides by zero") from error
        except OverflowError as error:
            raise refused("a number in the expression is too large for floating arithmetic (about 1.8e308)") from error
        except InvalidExpression as error:
            raise _no_arithmetic() from error
        return value

    def _literal(self, node: ast.Constant) -> Number:
        written = self._line[node.col_offset : node.end_col_offset]
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise refused(f"'{written}' is no number that this calculator knows")
        return self._arithmetic.literal(node.value, written)

    def _constant(self, node: ast.Name) -> Number:
        if node.id not in self._arithmetic.constants:
            raise self._unknown(node.id)
        return self._arithmetic.constants[node.id]

    def _call(self, node: ast.Call) -> Number:
        if not isinstance(node.func, ast.Name):
            raise refused("a bracket after a number or a bracket means nothing here; write 2*(3+4) for 2(3+4)")
        name = node.func.id
        if name not in self._arithmetic.functions:
            raise self._unknown(name)
        try:
            value: Number = self._walk_call(node)
        except TypeError as error:
            raise refused(f"'{name}' does not take {len(node.args)} numbers") from error
        except ValueError as error:
            raise refused(f"'{name}' has no real value for these numbers") from error
        return value

    def _comma(self, _: ast.Tuple) -> NoReturn:
        raise refused("a comma only parts the numbers given to a function; write 1234 for 1,234")

    def _unknown(self, name: str) -> ArgumentError:
        known = [*self._arithmetic.constants, *self._arithmetic.functions]
        if name in known:
            return refused(f"'{name}' is a constant or needs brackets; write pi or sqrt(2)")
        if name in FLOATING.constants or name in FLOATING.functions:
            return refused(f"'{name}' has no exact value; call again with exact=false")
        near = difflib.get_close_matches(name, known, n=1)
        mend = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(known))}"
        return refused(f"there is no '{name[:80]}' here; {mend}")


def _parsed(line: str) -> ast.expr:
    """Return the syntax tree, of bounded depth."""
    try:
        tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _no_arithmetic() from error
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise refused(f"the expression is nested deeper than {MAX_DEPTH} levels; work it out in parts")


def _no_arithmetic() -> ArgumentError:
    return refused(
        "the expression cannot be read; use numbers, + - * / // % ^, round brackets and functions, as in 2*(3+sqrt(2))"
    )
