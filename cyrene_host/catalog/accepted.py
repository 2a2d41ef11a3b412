"""Which definition of a tool a person has accepted: one that changes later is not used until it is accepted too."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cyrene_host.catalog.whole_file import replace_whole
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import ToolDefinition

__all__ = ["Acceptance", "Accepted", "AcceptedError", "ChangedDefinition", "fingerprint_of"]

SCHEME = 1
"""How fingerprints are made. Another number has the accepted definitions fingerprinted anew: nobody is asked again."""

# What the tool is and does. Left out is how the operator lets it run, and how a model comes to choose it.
_BINDING = frozenset(
    {
        *("id", "name", "description", "parameters", "returns", "complexity", "danger_level"),
        *("read_only", "idempotent", "secret_arguments", "serial", "makes", "accepts"),
    }
)

_log = logging.getLogger("cyrene.catalog")


class AcceptedError(CyreneError):
    """What was accepted could not be kept."""


class Acceptance(NamedTuple):
    """One tool's definition as somebody accepted it; `accepted_at` in seconds since the epoch."""

    scheme: int
    fingerprint: str
    definition: dict[str, Any]
    accepted_at: float
    accepted_by: str


class ChangedDefinition(NamedTuple):
    """A tool whose definition has changed since somebody accepted it; both as the JSON objects of ToolDefinition."""

    tool_id: str
    accepted: Mapping[str, Any]
    now: Mapping[str, Any]
    accepted_at: float
    accepted_by: str


def fingerprint_of(definition: ToolDefinition | Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of what a definition promises; fields at their default do not count.

    Source: RFC 8785 for the idea of one text for one value.
    """
    told = definition.to_dict() if isinstance(definition, ToolDefinition) else definition
    binding = {key: value for key, value in told.items() if key in _BINDING}
    text = json.dumps(binding, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Accepted:
    """The file `accepted.json` in the state directory: tool id → the definition that was accepted last."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "accepted.json"

    def read(self) -> Mapping[str, Acceptance]:
        """Return what was accepted.

        Raises:
            AcceptedError: the file is there and cannot be read: to go on as if nothing were accepted would let a
                changed definition through.
        """
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            return {tool_id: _current(Acceptance(**told)) for tool_id, told in kept.items()}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise AcceptedError(
                f"the accepted definitions cannot be read: {error}",
                where=str(self._file),
                mend="restore the file from a backup; without it every tool counts as accepted as it is now",
            ) from error

    def accept(self, tool_id: str, definition: ToolDefinition, *, by: str) -> None:
        """Keep this definition as the accepted one.

        Raises:
            AcceptedError: the state directory cannot be written.
        """
        told = definition.to_dict()
        acceptance = Acceptance(SCHEME, fingerprint_of(told), told, time.time(), by)
        kept = {**self.read(), tool_id: acceptance}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            text = json.dumps({name: kept[name]._asdict() for name in sorted(kept)}, ensure_ascii=False, indent=1)
            replace_whole(self._file, text + "\n")
        except OSError as error:
            raise AcceptedError(
                f"the definition of '{tool_id}' could not be accepted: {error}",
                where=str(self._file),
                mend="make the folder writable",
            ) from error


def _current(acceptance: Acceptance) -> Acceptance:
    if acceptance.scheme == SCHEME:
        return acceptance
    told = acceptance.definition
    return Acceptance(SCHEME, fingerprint_of(told), told, acceptance.accepted_at, acceptance.accepted_by)
