"""Descriptions are taken out of docstrings."""

from __future__ import annotations

import pytest

from cyrene_sdk.docstrings import read_docstring


def test_googles_args_section_becomes_the_parameters_texts() -> None:
    description, texts = read_docstring(
        """Find a city.

        Call it for places only.

        Args:
            city (str, optional): the name: as
                people: write it
            limit: how many

            *rest: more
        Returns:
            The cities.
        """
    )
    assert description == "Find a city.\n\nCall it for places only.\n\nReturns:\n    The cities."
    assert texts == {"city": "the name: as people: write it", "limit": "how many", "rest": "more"}


def test_sphinx_fields_become_the_parameters_texts() -> None:
    description, texts = read_docstring(
        """Find a city.

        :param city: the name,
            as people write it
        :type city: str
        :param int limit: how many
        :returns: the cities
        """
    )
    assert description == "Find a city.\n\n:returns: the cities"
    assert texts == {"city": "the name, as people write it", "limit": "how many"}


def test_full_width_colons_are_read() -> None:
    assert read_docstring("查天气。\n\n参数：\n    city：城市") == ("查天气。", {"city": "城市"})


@pytest.mark.parametrize("docstring", [None, "", "  \n "])
def test_no_docstring_says_nothing(docstring: str | None) -> None:
    assert read_docstring(docstring) == ("", {})


def test_prose_after_the_section_stays_a_paragraph_of_its_own() -> None:
    assert read_docstring("One.\nArgs:\n    a: x\n\nTwo.") == ("One.\n\nTwo.", {"a": "x"})


def test_prose_with_a_colon_stays() -> None:
    prose = "Example: hello\n\n    code: sample\nEnd."
    assert read_docstring(prose) == (prose, {})


def test_a_section_that_does_not_begin_with_a_name_says_nothing_of_parameters() -> None:
    assert read_docstring("One.\n\nArgs:\n    - first of all\n") == ("One.", {})
