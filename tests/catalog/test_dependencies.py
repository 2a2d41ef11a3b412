"""Plugins follow what they need; each that cannot be used is told why."""

from __future__ import annotations

import pytest

from cyrene_host.catalog.dependencies import DependencyError, Needs, order_and_check
from cyrene_sdk.errors import CyreneError


def _check(*plugins: Needs) -> tuple[list[str], dict[str, CyreneError]]:
    return order_and_check({plugin.name: plugin for plugin in plugins})


def _needs(name: str, *wanted: str, version: str = "1.0") -> Needs:
    return Needs(name, version=version, dependencies=dict.fromkeys(wanted, "*"))


def test_dependencies_come_first_and_the_rest_keeps_its_order() -> None:
    order, causes = _check(_needs("d", "a"), _needs("c"), _needs("b", "c", "a"), _needs("a"))
    assert order == ["c", "a", "d", "b"]
    assert causes == {}


def test_a_missing_dependency_is_told_with_the_nearest_name() -> None:
    order, causes = _check(_needs("a", "geo-codr"), _needs("geo-coder"), _needs("b", "other"))
    assert order == ["geo-coder"]
    assert isinstance(causes["a"], DependencyError)
    assert str(causes["a"]) == (
        "plugin 'a': it needs the plugin 'geo-codr', which is missing\n"
        "  where: the dependencies of its metadata\n"
        "  mend:  did you mean 'geo-coder'? Else install 'geo-codr' and list it in plugins.json"
    )
    assert causes["b"].mend == "install 'other' and list it in plugins.json"


def test_a_disabled_dependency_is_disabled_and_not_missing() -> None:
    order, causes = _check(_needs("a", "b"), Needs("b", usable=False, disabled=True))
    assert order == []
    assert list(causes) == ["a"]
    assert causes["a"].what == "it needs the plugin 'b', which is disabled"
    assert causes["a"].mend == "enable it: cyrene plugins enable b"


@pytest.mark.parametrize(
    ("why_not", "said"),
    [("is blocked: unknown key 'runtim'", "is blocked: unknown key 'runtim'"), ("", "cannot be used")],
)
def test_an_unusable_dependency_is_told_with_its_own_cause(why_not: str, said: str) -> None:
    order, causes = _check(_needs("a", "b"), Needs("b", usable=False, why_not=why_not))
    assert order == []
    assert causes["a"].what == f"it needs the plugin 'b', which {said}"
    assert causes["a"].mend == "mend 'b' first"


def test_a_version_outside_the_range_is_told_with_both() -> None:
    _, causes = _check(Needs("a", dependencies={"b": "^2"}), Needs("b", version="1.4.0"))
    assert causes["a"].what == "it needs the plugin 'b' ^2, but the version here is 1.4.0"
    assert causes["a"].mend == "install a version of 'b' that is ^2"


def test_a_range_that_cannot_be_read_is_told() -> None:
    _, causes = _check(Needs("a", dependencies={"b": "newest"}), Needs("b", version="1.4.0"))
    assert causes["a"].what == "it needs the plugin 'b' newest, but 'newest' is no range of versions"
    assert causes["a"].mend == "write it like 1.2, ^1.2, ~1.2 or >=1.2,<3"


def test_a_dependency_of_unknown_version_is_taken() -> None:
    assert _check(Needs("a", dependencies={"b": "^2"}), Needs("b")) == (["b", "a"], {})


def test_a_dependency_may_be_named_as_its_metadata_names_it() -> None:
    assert _check(Needs("a", dependencies={"geo": "*"}), Needs("my-geo", aliases=("geo",))) == (["my-geo", "a"], {})


def test_of_several_with_one_metadata_name_the_first_that_fits_is_meant() -> None:
    old, new = Needs("x", aliases=("geo",), version="1"), Needs("y", aliases=("geo",), version="2")
    order, causes = _check(Needs("a", dependencies={"geo": "^2"}), old, new)
    assert (order, causes) == (["x", "y", "a"], {})


def test_a_cycle_is_spelled_from_each_of_its_members_and_stops_those_behind_it() -> None:
    order, causes = _check(
        _needs("z", "a"),
        _needs("a", "b"),
        _needs("b", "c"),
        _needs("c", "ok", "a"),
        _needs("ok"),
        _needs("self", "self"),
    )
    assert order == ["ok"]
    assert list(causes) == ["z", "a", "b", "c", "self"]
    assert causes["a"].what == "it depends on itself: a → b → c → a"
    assert causes["b"].what == "it depends on itself: b → c → a → b"
    assert causes["c"].what == "it depends on itself: c → a → b → c"
    assert causes["self"].what == "it depends on itself: self → self"
    assert causes["z"].what == ("it needs the plugin 'a', which is incompatible: it depends on itself: a → b → c → a")
    assert causes["a"].mend == "remove one of these dependencies"


def test_a_long_chain_names_the_plugin_at_its_bottom() -> None:
    chain = [_needs(f"p{number}", f"p{number + 1}") for number in range(500)]
    order, causes = _check(*chain)
    assert order == []
    assert len(causes) == 500
    assert causes["p0"].what == (
        "it needs the plugin 'p1', which is incompatible because of 'p499': "
        "it needs the plugin 'p500', which is missing"
    )
    assert causes["p0"].mend == "mend 'p499' first"


def test_all_faults_of_one_plugin_are_told_together() -> None:
    _, causes = _check(_needs("a", "gone", "off"), Needs("off", usable=False, disabled=True))
    assert causes["a"].what == (
        "it needs the plugin 'gone', which is missing; it needs the plugin 'off', which is disabled"
    )
