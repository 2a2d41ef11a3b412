"""Copies of plain JSON."""

from __future__ import annotations

from typing import Any

__all__ = ["copied"]

_NESTED = (dict, list)


def copied(value: Any) -> Any:
    """Return a copy of an object or list that foreign code may change; copy.deepcopy takes five times as long."""
    copy = value.copy()
    for key, part in copy.items() if type(copy) is dict else enumerate(copy):
        if type(part) in _NESTED:
            copy[key] = copied(part)
    return copy
