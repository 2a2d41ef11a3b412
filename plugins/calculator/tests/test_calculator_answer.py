"""Numbers as people read them and as programs do."""

import json
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrene_calculator.answer import answer, text


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.1 + 0.2, "0.3"),
        (2 / 3, "0.666666666666667"),
        (7.0, "7"),
        (-0.0, "0"),
        (1e15, "1000000000000000"),
        (1e16, "1e+16"),
        (1e-7, "1e-07"),
        (sys.float_info.max, "1.7976931348623157e+308"),
        (2**100, "1267650600228229401496703205376"),
        (Fraction(2, 3), "2/3"),
        (Fraction(6, 3), "2"),
    ],
)
def test_a_number_is_written_without_the_noise_of_binary_fractions(number: float | Fraction, written: str) -> None:
    assert text(number) == written


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0.1 + 0.2, {"value": 0.3, "exact": None}),
        (84, {"value": 84, "exact": "84"}),
        (Fraction(2, 3), {"value": 0.6666666666666666, "exact": "2/3"}),
        (Fraction(2**53 - 1), {"value": 2**53 - 1, "exact": "9007199254740991"}),
        (2**53, {"value": 9007199254740992.0, "exact": "9007199254740992"}),
        (10**400, {"value": None, "exact": "1" + "0" * 400}),
    ],
)
def test_a_program_gets_the_nearest_value_and_the_exact_text(number: int | Fraction, told: dict[str, object]) -> None:
    assert answer(number) == told


def test_zero_has_no_sign() -> None:
    assert str(answer(-0.0)["value"]) == "0.0"


@given(st.integers() | st.fractions() | st.floats(allow_nan=False, allow_infinity=False))
def test_an_answer_is_strict_json_and_near_the_number(number: float | Fraction) -> None:
    told = answer(number)

    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["value"] == pytest.approx(float(number), rel=1e-14, abs=1e-320)
