"""Describe a plugin in a throw-away interpreter: its manifest as JSON, or why there is none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from cyrene_sdk._worker.faults import StageError
from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.runner import Runner

__all__ = ["answer"]

MANIFEST_BYTES = 3 * 1024 * 1024
MANIFEST_DEPTH = 200
MANIFEST_NODES = 1_000_000


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the plugin that `request` names.

    Args:
        request: `module`, `attribute`, `folder` as in `Code`; `limit_s`; `sys_path`, the caller's own, so that
            both find the same modules.
    Returns:
        `{"manifest": {…}}`, or `{"error": {"stage", "what", "where", "mend", "trace"}}`.
    """
    sys.path.extend(entry for entry in request.get("sys_path", ()) if entry not in sys.path)
    runner = Runner(Code.from_dict(request), grace_s=1.0, threads=4)
    try:
        manifest = asyncio.run(runner.describe(float(request.get("limit_s", 30.0))))
        return {
            "manifest": checked(manifest, max_bytes=MANIFEST_BYTES, max_depth=MANIFEST_DEPTH, max_nodes=MANIFEST_NODES)
        }
    except StageError as error:
        return {"error": _told(error.stage, error.what, error.where, error.mend, error.trace)}
    except GateError as refused:
        mend = "let metadata, definitions and config_schema hold JSON values only"
        return {"error": _told("tools", f"the manifest is refused: {refused}", None, mend, "")}


def _told(stage: str, what: str, where: str | None, mend: str | None, trace: str) -> dict[str, Any]:
    return {"stage": stage, "what": what, "where": where, "mend": mend, "trace": trace}
