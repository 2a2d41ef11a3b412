"""An audit in a folder of its own, and records to put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cyrene_host.record.audit import Audit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the audit goes; it is not there yet."""
    return tmp_path / "state" / "audit"


@pytest.fixture
def open_audit(folder: Path) -> Iterator[Callable[..., Audit]]:
    """Return a function that opens the audit, as another process would."""
    opened: list[Audit] = []

    def make(**more: Any) -> Audit:
        opened.append(Audit(folder, **{"instance": "test", **more}))
        return opened[-1]

    yield make
    for audit in opened:
        audit._writer.close()
