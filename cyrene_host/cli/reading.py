"""What the options of every command read."""

from __future__ import annotations

from cyrene_host.cli.options import Choices
from cyrene_host.host.inventory import Inventory

__all__ = ["read_inventory"]


def read_inventory(choices: Choices) -> Inventory:
    """Read settings and plugins as the options say, and tell what is worth knowing.

    Raises:
        PluginsFileError, SettingsError: a file that cannot be used.
    """
    inventory = Inventory.read(choices.plugins, config=choices.config, overrides=choices.overrides)
    choices.screen.notes([*inventory.catalog.notes, *inventory.store.notes])
    return inventory
