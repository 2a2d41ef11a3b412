"""The evaluator: what it answers, what it refuses, and that it never does anything else."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_calculator.arithmetic import MAX_DIGITS
from cyrene_calculator.evaluator import Evaluator
from cyrene_calculator.notation import MAX_CHARACTERS
from cyrene_sdk import ArgumentError


def value_of(expression: str, *, exact: bool = False) -> object:
    return Evaluator(exact=exact).evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("12*(3+4)", 84),
        ("2^10", 1024),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("7//2", 3),
        ("-7 % 3", 2),
        ("7/2", 3.5),
        ("10^900 / 10^899", 10.0),
        ("2^-2", 0.25),
        ("2×（３＋４）÷７", 2.0),
        ("max（1，2）", 2),
        ("√(16) + 3² − 2¹⁰", -1011.0),
        ("0x1f + 1_000 + 1.5e3", 2531.0),
        ("lg(1000) + ln(e) + log(8, 2)", 7.0),
        ("gcd(12, 18, 8) + lcm(4, 6)", 14),
        ("factorial(5) + comb(5, 2) + perm(5, 2)", 150),
        ("round(2.5)", 3),
        ("round(-2.675, 2)", -2.68),
        ("round(1250, -2)", 1300),
        ("floor(-1.5) + ceil(1.2) + abs(-3)", 3),
        ("sin(pi)", 0),
        ("cos(pi/2)", 0),
        ("tan(pi)", 0),
        ("sin(1e-20)", 1e-20),
        ("1 +\n 1", 2),
    ],
)
def test_floating_arithmetic_follows_the_usual_notation(expression: str, value: float) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1/3 + 1/3", Fraction(2, 3)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1e-3 * 1e3", Fraction(1)),
        ("(2/3)^-2", Fraction(9, 4)),
        ("7//2 / 2", Fraction(3, 2)),
        ("floor(2.5)^floor(-1)", Fraction(1, 2)),
        ("sqrt(4/9)", Fraction(2, 3)),
        ("round(2.675, 2)", Fraction(67, 25)),
        ("0.12345678901234567890123", Fraction(12345678901234567890123, 10**23)),
        ("2^1000", Fraction(2**1000)),
    ],
)
def test_exact_arithmetic_loses_nothing(expression: str, value: Fraction) -> None:
    assert value_of(expression, exact=True) == value


GROWS = "a number in the expression grows beyond 1000 digits, which is the limit"
UNREADABLE = (
    "the expression cannot be read; use numbers, + - * / // % ^, round brackets and functions, as in 2*(3+sqrt(2))"
)
BOTH_REFUSE = [
    ("9**9**9", GROWS),
    ("9^9^9^9^9^9^9^9^9^9", GROWS),
    ("10**1000000", GROWS),
    ("10^999 * 10", GROWS),
    ("factorial(1000)", GROWS),
    ("lcm(10^999 - 1, 10^998 - 1, 10^997 - 1)", GROWS),
    ("factorial(10**9)", "this function takes numbers up to 1000 only"),
    ("comb(10**500, 10**400)", "this function takes numbers up to 1000 only"),
    ("round(1, 10**9)", "this function takes numbers up to 1000 only"),
    ("1 << 999999", "'<' cannot be used in an expression; there are no comparisons or shifts"),
    ("[1] * 10**9", "'[' cannot be used in an expression; use round brackets only"),
    ("5!", "'!' cannot be used in an expression; write factorial(5) for 5!"),
    ("1 = 1", "'=' cannot be used in an expression; give one side only; there are no equations or comparisons"),
    ("1,234", "a comma only parts the numbers given to a function; write 1234 for 1,234"),
    ("2(3)", "a bracket after a number or a bracket means nothing here; write 2*(3+4) for 2(3+4)"),
    ("1/0", "the expression divides by zero"),
    ("0**-1", "the expression divides by zero"),
    ("sqrt(-1)", "'sqrt' has no real value for these numbers"),
    ("factorial(-1)", "'factorial' has no real value for these numbers"),
    ("max()", "'max' does not take 0 numbers"),
    ("floor(1, 2)", "'floor' does not take 2 numbers"),
    ("squrt(2)", "there is no 'squrt' here; did you mean 'sqrt'?"),
    ("floor", "'floor' is a constant or needs brackets; write pi or sqrt(2)"),
    ("True", "'True' is no number that this calculator knows"),
    ("2j", "'2j' is no number that this calculator knows"),
    ("", "the expression is empty; write one such as 12*(3+4)"),
    ("1" * 1001, "the expression has 1001 characters; 1000 is the limit"),
    ("-" * 300 + "1", "the expression is nested deeper than 200 levels; work it out in parts"),
    ("+".join("1" * 300), "the expression is nested deeper than 200 levels; work it out in parts"),
    ("(" * 400 + "1" + ")" * 400, UNREADABLE),
    ("1 2", UNREADABLE),
    ("not 1", UNREADABLE),
    ("1 if 1 else 2", UNREADABLE),
    ("(x for x in x)", UNREADABLE),
    ("max(*max)", UNREADABLE),
    ("e.__class__", UNREADABLE),
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("expression", "sentence"), BOTH_REFUSE)
def test_what_is_no_bounded_arithmetic_is_refused_with_a_sentence(
    expression: str, sentence: str, *, exact: bool
) -> None:
    with pytest.raises(ArgumentError) as refusal:
        value_of(expression, exact=exact)

    assert (str(refusal.value), refusal.value.path) == (sentence, "/expression")


@pytest.mark.parametrize("expression", ["'a' * 9", "f'{1}'", "lambda: 1", "(x := 1)", "__import__('os')", "1; 2", "#"])
def test_code_is_refused_by_its_first_foreign_character(expression: str) -> None:
    with pytest.raises(ArgumentError, match="cannot be used in an expression"):
        value_of(expression)


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("sin(1)", "'sin' has no exact value; call again with exact=false"),
        ("2 * pi", "'pi' has no exact value; call again with exact=false"),
        ("sqrt(2)", "the square root is no fraction; call again with exact=false"),
        ("8^(1/3)", "exact powers need a whole exponent; call again with exact=false"),
        ("1e999999999", GROWS),
        ("(1/3)^999999", GROWS),
    ],
)
def test_what_has_no_exact_value_is_refused_in_exact_arithmetic(expression: str, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        value_of(expression, exact=True)

    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("1e400", "a number in the expression is too large for floating arithmetic (about 1.8e308)"),
        ("1e308 * 10", "a number in the expression is too large for floating arithmetic (about 1.8e308)"),
        ("exp(1000)", "a number in the expression is too large for floating arithmetic (about 1.8e308)"),
        ("10^400 / 3", "a number in the expression is too large for floating arithmetic (about 1.8e308)"),
        ("(-8)^(1/3)", "a negative number has no real power of this kind"),
        ("tan(pi/2)", "the expression divides by zero"),
        ("gcd(1.5)", "1.5 is no whole number, which this function needs"),
        ("sin", "'sin' is a constant or needs brackets; write pi or sqrt(2)"),
    ],
)
def test_what_floating_numbers_cannot_hold_is_refused(expression: str, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        value_of(expression)

    assert str(refusal.value) == sentence


def test_an_unknown_name_is_answered_with_all_that_exist() -> None:
    with pytest.raises(ArgumentError) as refusal:
        value_of("import_os")

    assert str(refusal.value).startswith("there is no 'import_os' here; there are abs, acos, asin, ")


NUMBERS = st.integers(0, 10**6).map(str) | st.decimals(0, 1000, places=3).map(str)
ARITHMETIC = st.recursive(
    NUMBERS,
    lambda parts: (
        st.builds("({} {} {})".format, parts, st.sampled_from(["+", "-", "*", "/"]), parts) | parts.map("(-{})".format)
    ),
    max_leaves=20,
)


@given(ARITHMETIC)
def test_exact_arithmetic_agrees_with_fractions(expression: str) -> None:
    fractions = re.sub(r"[\d.]+", r"Fraction('\g<0>')", expression)
    try:
        expected = eval(fractions, {"Fraction": Fraction})
    except ZeroDivisionError:
        expected = None

    try:
        value = value_of(expression, exact=True)
    except ArgumentError:
        value = None

    assert value == expected


NUMBER_WORDS = "0 1 2 7 9 10 0.1 .5 1e5 1e308 99999 1e999 2j pi e tau True"
MARK_WORDS = "( ) ( ) + - * / // % ** ^ ² ⁹ , . √ × ÷ _ not if else for in"
FUNCTION_WORDS = "sin cos tan sqrt log ln exp gcd lcm factorial comb perm round floor ceil max min pow abs x"
WORDS = st.sampled_from(f"{NUMBER_WORDS} {MARK_WORDS} {FUNCTION_WORDS}".split())
EXPRESSIONS = st.lists(WORDS, max_size=30).map(" ".join) | st.lists(WORDS, max_size=30).map("".join) | st.text()


@pytest.mark.parametrize("exact", [False, True])
@given(expression=EXPRESSIONS)
def test_any_text_gives_a_bounded_number_or_an_argument_error(expression: str, *, exact: bool) -> None:
    try:
        value = Evaluator(exact=exact).evaluate(expression)
    except ArgumentError:
        return

    assert isinstance(value, int | float | Fraction)
    assert math.isfinite(value) if isinstance(value, float) else len(str(value)) <= 2 * MAX_DIGITS + 2


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "part",
    ["(7^1180)%3^2090*", "lcm(10^990-1,9^999-1)+", "1/(9^999+7)+", "comb(999,500)*", "round(1/7,999)-", "9**9**9+"],
)
def test_the_longest_expression_of_the_slowest_parts_ends(part: str, *, exact: bool) -> None:
    expression = part * ((MAX_CHARACTERS - 1) // len(part)) + "1"

    try:
        value = value_of(expression, exact=exact)
    except ArgumentError:
        value = None

    assert value is None or len(str(value)) <= 2 * MAX_DIGITS + 2
