"""What a plugin keeps from one start to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cyrene_host.record import storage
from cyrene_host.record.storage import PluginStorage, StorageError
from cyrene_host.record.store import Store

pytestmark = pytest.mark.anyio

VALUES = [
    None, True, 0, -1.5, 10**300, "", "字 \0 \u2028 🙂", [], {}, {"a": [{"b": None}]}, ("tuple", 1), "x" * 1_000_000,
]  # fmt: skip


@pytest.fixture
def pairs(store: Store) -> PluginStorage:
    """The storage of the plugin `weather`."""
    return PluginStorage(store, "weather")


async def test_values_come_back_as_they_were(pairs: PluginStorage) -> None:
    for number, value in enumerate(VALUES):
        await pairs.set(f"{number}", value)
    for number, value in enumerate(VALUES):
        assert await pairs.get(f"{number}", "missing") == (list(value) if isinstance(value, tuple) else value)


async def test_a_value_outlives_the_store_and_is_its_plugins_alone(open_store: Callable[[], Store]) -> None:
    store = open_store()
    await PluginStorage(store, "weather").set("city", "Rome")
    await PluginStorage(store, "clock").set("city", "Oslo")
    await store.close()
    store = open_store()
    assert await PluginStorage(store, "weather").get("city") == "Rome"
    assert await PluginStorage(store, "clock").get("city") == "Oslo"
    assert await PluginStorage(store, "other").get("city") is None
    assert await PluginStorage(store, "other").keys() == []


async def test_keys_are_set_again_deleted_and_listed_in_order(pairs: PluginStorage) -> None:
    for key in ("b", "a", "Z", "é", "🙂", "k" * 512, "🙂" * 512):
        await pairs.set(key, 1)
    await pairs.set("a", 2)
    await pairs.delete("b")
    await pairs.delete("never there")
    assert await pairs.get("a") == 2
    assert await pairs.get("b", "gone") == "gone"
    assert await pairs.keys() == ["Z", "a", "k" * 512, "é", "🙂", "🙂" * 512]


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("", "a key has 1 to 512 characters, this one 0"),
        ("k" * 513, "a key has 1 to 512 characters, this one 513"),
        ("a\0b", "the key holds NUL or a lone surrogate"),
        ("a\ud800", "the key holds NUL or a lone surrogate"),
        (7, "a key is text, not 'int'"),
    ],
)
async def test_a_key_that_is_none_is_refused_by_every_use(pairs: PluginStorage, key: Any, what: str) -> None:
    for use in (pairs.get(key), pairs.set(key, 1), pairs.delete(key)):
        with pytest.raises(StorageError) as error:
            await use
        assert (error.value.what, error.value.plugin) == (what, "weather")
        str(error.value).encode()


@pytest.mark.parametrize("value", [{1, 2}, b"x", float("nan"), "\ud800", {"a": object()}, "x" * 1_048_576])
async def test_a_value_that_is_no_json_or_too_large_leaves_the_old_one(pairs: PluginStorage, value: Any) -> None:
    await pairs.set("a", "old")
    with pytest.raises(StorageError) as error:
        await pairs.set("a", value)
    assert await pairs.get("a") == "old"
    assert error.value.what.startswith("the value cannot be kept: ")
    assert error.value.where == "HostAPI.storage key 'a'"
    assert error.value.mend == "store plain JSON of at most 1 MiB"


async def test_a_plugin_with_too_many_keys_may_change_but_not_add(
    pairs: PluginStorage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MOST_KEYS", 2)
    await pairs.set("a", 1)
    await pairs.set("b", 1)
    await pairs.set("a", 2)
    with pytest.raises(StorageError) as error:
        await pairs.set("c", 1)
    assert str(error.value) == (
        "plugin 'weather': there are 2 keys, and no room for more\n"
        "  where: HostAPI.storage key 'c'\n"
        "  mend:  delete some first"
    )
    await PluginStorage(store, "clock").set("c", 1)
    await pairs.delete("a")
    await pairs.set("c", 1)
    assert await pairs.keys() == ["b", "c"]
