"""What the options of every command read."""

from __future__ import annotations

import os
from pathlib import Path

from cyrene_host.catalog.plugins_file import find_plugins_file
from cyrene_host.catalog.settings import Settings, find_settings_file, read_settings
from cyrene_host.cli.options import Choices
from cyrene_host.host.inventory import Inventory

__all__ = ["read_inventory", "read_settings_alone"]


def read_inventory(choices: Choices) -> Inventory:
    """Read settings and plugins as the options say, and tell what is worth knowing.

    Raises:
        PluginsFileError, SettingsError: a file that cannot be used.
    """
    inventory = Inventory.read(choices.plugins, config=choices.config, overrides=choices.overrides)
    choices.screen.notes([*inventory.catalog.notes, *inventory.store.notes])
    return inventory


def read_settings_alone(choices: Choices) -> Settings:
    """Read the settings as the options say, for what works whatever the plugins are.

    Raises:
        PluginsFileError, SettingsError: a file that is named and not there, or settings that cannot be used.
    """
    plugins, config = (Path(path) if path else None for path in (choices.plugins, choices.config))
    beside = find_plugins_file(plugins, os.environ, Path.cwd())
    found = find_settings_file(config, os.environ, plugins_file=beside, cwd=Path.cwd())
    return read_settings(found, os.environ, choices.overrides)
