"""What the audit tells of a call: the fields of its two records, made from plain values."""

from __future__ import annotations

from typing import Any

from cyrene_host.record.audit_lines import fitted

__all__ = ["ended_fields", "started_fields"]

MAX_ARGUMENTS_BYTES = 4096


def started_fields(
    *,
    call_id: str,
    tool: str,
    plugin: str,
    principal: str,
    surface: str,
    arguments: Any,
    danger: str,
    decision: str,
    rule: str | None = None,
    fingerprint: str | None = None,
    user_id: str | None = None,
    conversation_id: str | None = None,
    parent_call_id: str | None = None,
    execution_id: str | None = None,
) -> dict[str, Any]:
    """Return the fields of `started`; what is None is left out.

    Args:
        tool: its id, `plugin.tool`.
        arguments: a JSON value without secrets. Over 4 KiB of JSON text, `arguments_cut` takes its place: its first
            512 bytes, and SHA-256 and size of the whole.
        danger: the level that counted.
        decision: what was decided, such as allow, deny or approved; `rule` says by what.
        fingerprint: of the definition that was called.
    """
    fields = {
        "call_id": call_id,
        "tool": tool,
        "plugin": plugin,
        "principal": principal,
        "surface": surface,
        "user_id": user_id,
        "conversation_id": conversation_id,
        "parent_call_id": parent_call_id,
        "execution_id": execution_id,
        "danger": danger,
        "decision": decision,
        "rule": rule,
        "fingerprint": fingerprint,
    }
    return _present(fields) | fitted("arguments", arguments, MAX_ARGUMENTS_BYTES)


def ended_fields(
    *,
    call_id: str,
    tool: str,
    principal: str,
    success: bool,
    attempts: int,
    duration_ms: float,
    error_kind: str | None = None,
    error_id: str | None = None,
    effect: str | None = None,
    refusal: str | None = None,
) -> dict[str, Any]:
    """Return the fields of `ended`; what is None is left out.

    Args:
        tool, principal: as in `started`, so that a search for them finds both records.
        error_kind: as on every surface; None for a success.
        error_id: what finds the failure in the log.
        effect: whether the tool may have acted, as its result says.
        duration_ms: of all attempts together.
        refusal: of a call that was not let through: who or which rule said no.
    """
    fields = {
        "call_id": call_id,
        "tool": tool,
        "principal": principal,
        "success": success,
        "error_kind": error_kind,
        "error_id": error_id,
        "effect": effect,
        "refusal": refusal,
        "attempts": attempts,
        "duration_ms": round(duration_ms, 3),
    }
    return _present(fields)


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
