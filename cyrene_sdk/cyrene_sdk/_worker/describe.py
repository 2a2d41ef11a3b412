"""Describe a plugin in a throw-away interpreter: its manifest as JSON, or why there is none."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from cyrene_sdk._worker.faults import StageError, sentence_of, trace_of
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.runner import Runner

__all__ = ["answer"]


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
        json.dumps(manifest, allow_nan=False)
    except StageError as error:
        return {"error": _told(error.stage, error.what, error.where, error.mend, error.trace)}
    except (TypeError, ValueError) as error:
        mend = "let schemas and metadata hold JSON values only"
        return {
            "error": _told("tools", f"the definitions are no JSON: {sentence_of(error)}", None, mend, trace_of(error))
        }
    return {"manifest": manifest}


def _told(stage: str, what: str, where: str | None, mend: str | None, trace: str) -> dict[str, Any]:
    return {"stage": stage, "what": what, "where": where, "mend": mend, "trace": trace}
