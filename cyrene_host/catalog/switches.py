"""Which plugins a person has switched on or off: kept in the state directory, over what plugins.json says."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from cyrene_sdk.errors import CyreneError

__all__ = ["SwitchError", "Switches"]

_log = logging.getLogger("cyrene.catalog")


class SwitchError(CyreneError):
    """A switch could not be kept."""


class Switches:
    """The file `switches.json` in the state directory: plugin name → on or off."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "switches.json"

    def read(self) -> Mapping[str, bool]:
        """Return what was switched; a file that cannot be read is left aside with a warning."""
        try:
            switches = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            _log.warning("'%s' was left aside: %s", self._file, error)
            return {}
        kept = switches.items() if isinstance(switches, dict) else ()
        return {name: is_on for name, is_on in kept if isinstance(is_on, bool)}

    def set(self, name: str, is_on: bool) -> None:
        """Switch a plugin on or off, from the next reading of the catalog on.

        Raises:
            SwitchError: the state directory cannot be written.
        """
        switches = {**self.read(), name: is_on}
        temporary = self._file.with_suffix(".tmp")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(switches, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            temporary.replace(self._file)
        except OSError as error:
            raise SwitchError(
                f"'{name}' could not be switched: {error}", where=str(self._file), mend="make the folder writable"
            ) from error
