"""The hook packages that the operator enables."""

from __future__ import annotations

import importlib

from cyrene_host.errors import HostStateError
from cyrene_host.host.inventory import Inventory

__all__ = ["hook_packages"]


def hook_packages(inventory: Inventory) -> list[tuple[str, object]]:
    """Import the hook packages that cyrene.toml enables; return their names and modules in its order.

    Raises:
        HostStateError: one is not installed.
    """
    found = {point.name: point for points in inventory.entry_points.hooks.values() for point in points}
    packages: list[tuple[str, object]] = []
    for name in inventory.settings.hooks.enabled:
        point = found.get(name)
        if point is None:
            raise HostStateError(
                f"there is no hook package '{name}'",
                where="cyrene.toml, [hooks] enabled",
                mend=f"install it, or take it out; installed are: {', '.join(found) or 'none'}",
            )
        module = importlib.import_module(point.module)
        packages.append((name, getattr(module, point.attribute) if point.attribute else module))
    return packages
