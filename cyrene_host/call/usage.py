"""A tool's arguments in one short line, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["usage"]

MOST_NAMES = 12


def usage(parameters: Mapping[str, Any]) -> str:
    """Return the names that a schema declares, such as `city, days?`; a `?` marks what may be left out."""
    properties, required = parameters.get("properties"), parameters.get("required")
    needed = required if isinstance(required, list) else ()
    names = [name if name in needed else f"{name}?" for name in (properties if isinstance(properties, dict) else ())]
    return ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
