"""Why a tool can be called or not, from a closed list of reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cyrene_host.catalog.state import CALLABLE_STATES, PluginState
from cyrene_host.errors import CallFailedError
from cyrene_host.host.standing import Withheld
from cyrene_host.host.views import PluginReport, ToolReport
from cyrene_host.supervise.marks import GivenUpError
from cyrene_sdk.errors import CyreneError, ErrorKind

__all__ = ["Reason", "Why", "why_own", "why_plugin", "why_tool", "why_unknown"]


class Reason(StrEnum):
    """Every cause that `why` may give."""

    AVAILABLE = "available"
    NEEDS_APPROVAL = "needs_approval"
    DENIED_BY_POLICY = "denied_by_policy"
    UNKNOWN_NAME = "unknown_name"
    AMBIGUOUS_NAME = "ambiguous_name"
    TOOL_SWITCHED_OFF = "tool_switched_off"
    TOOL_NOT_ALLOWED = "tool_not_allowed"
    DEFINITION_CHANGED = "definition_changed"
    SCHEMA_INVALID = "schema_invalid"
    PLUGIN_DISABLED = "plugin_disabled"
    PLUGIN_SWITCHED_OFF = "plugin_switched_off"
    PLUGIN_BLOCKED = "plugin_blocked"
    PLUGIN_INCOMPATIBLE = "plugin_incompatible"
    PLUGIN_FAILED = "plugin_failed"
    PLUGIN_GIVEN_UP = "plugin_given_up"
    PLUGIN_STARTING = "plugin_starting"
    PLUGIN_RESTARTING = "plugin_restarting"
    PLUGIN_STOPPED = "plugin_stopped"


_OF_STATE = {
    PluginState.DISABLED: Reason.PLUGIN_DISABLED,
    PluginState.BLOCKED: Reason.PLUGIN_BLOCKED,
    PluginState.INCOMPATIBLE: Reason.PLUGIN_INCOMPATIBLE,
    PluginState.FAILED: Reason.PLUGIN_FAILED,
    PluginState.STARTING: Reason.PLUGIN_STARTING,
    PluginState.LOADED: Reason.PLUGIN_STARTING,
    PluginState.RESTARTING: Reason.PLUGIN_RESTARTING,
    PluginState.STOPPING: Reason.PLUGIN_STOPPED,
    PluginState.STOPPED: Reason.PLUGIN_STOPPED,
}
_WITHHELD = {
    "switched_off": Reason.TOOL_SWITCHED_OFF,
    "not_allowed": Reason.TOOL_NOT_ALLOWED,
    "definition_changed": Reason.DEFINITION_CHANGED,
}
_PASSES = frozenset({Reason.PLUGIN_STARTING, Reason.PLUGIN_RESTARTING})


@dataclass(frozen=True, slots=True)
class Why:
    """The answer: is it callable, for which reason, and what mends it.

    `waiting_helps` is True where the state passes by itself; `command` is what to type, if anything.
    """

    name: str
    is_available: bool
    reason: Reason
    sentence: str
    mend: str = ""
    command: str = ""
    waiting_helps: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "name": self.name,
            "available": self.is_available,
            "reason": self.reason.value,
            "sentence": self.sentence,
            "mend": self.mend,
            "command": self.command,
            "waiting_helps": self.waiting_helps,
        }


def why_tool(tool: ToolReport, plugin: PluginReport) -> Why:
    """Answer for a known tool."""
    return why_plugin(plugin, of=tool.id) if plugin.state not in CALLABLE_STATES else why_own(tool)


def why_own(tool: ToolReport) -> Why:
    """Answer for a tool whose plugin is no obstacle."""
    if tool.error is not None:
        return _of_error(tool.id, Reason.SCHEMA_INVALID, tool.error, command=f"cyrene check {tool.plugin}")
    if tool.withheld is not None:
        cause = tool.withheld.cause if isinstance(tool.withheld, Withheld) else "not_allowed"
        reason = _WITHHELD[cause]
        return _of_error(tool.id, reason, tool.withheld)
    if tool.decision == "deny":
        sentence = f"calls of danger '{tool.danger}' are denied here"
        return Why(tool.id, False, Reason.DENIED_BY_POLICY, sentence, f"change [danger] {tool.danger} in cyrene.toml")
    call = " ".join(["cyrene call", tool.id, *_needed(tool)])
    if tool.decision == "confirm":
        sentence = f"'{tool.id}' can be called; its danger '{tool.danger}' makes each call ask a person first"
        return Why(tool.id, True, Reason.NEEDS_APPROVAL, sentence, command=call)
    return Why(tool.id, True, Reason.AVAILABLE, f"'{tool.id}' can be called, as '{tool.name}' too", command=call)


def why_plugin(plugin: PluginReport, *, of: str = "") -> Why:
    """Answer for a plugin, or for a tool `of` it that its state takes away."""
    name = of or plugin.name
    reason = _OF_STATE.get(plugin.state, Reason.AVAILABLE)
    if reason is Reason.AVAILABLE:
        tools = ", ".join(f"'{tool}'" for tool in plugin.tools) or "no tools"
        return Why(name, True, reason, f"the plugin '{plugin.name}' is {plugin.state} and offers {tools}")
    if reason is Reason.PLUGIN_DISABLED:
        return _disabled(name, plugin)
    if isinstance(plugin.error, GivenUpError):
        command = f"cyrene plugins restart {plugin.name}"
        return _of_error(name, Reason.PLUGIN_GIVEN_UP, plugin.error, command=command)
    if plugin.error is not None:
        return _of_error(name, reason, plugin.error, waiting_helps=reason in _PASSES)
    sentence = f"the plugin '{plugin.name}' is {plugin.state}"
    return Why(name, False, reason, sentence, waiting_helps=reason in _PASSES)


def why_unknown(name: str, error: CallFailedError) -> Why:
    """Answer for a name that means no tool and no plugin, or several tools."""
    is_ambiguous = error.kind is ErrorKind.UNKNOWN_TOOL and "several" in error.what
    reason = Reason.AMBIGUOUS_NAME if is_ambiguous else Reason.UNKNOWN_NAME
    if is_ambiguous or error.plugin is not None:
        return _of_error(name, reason, error, command="cyrene tools")
    return Why(name, False, reason, f"there is no tool and no plugin '{name[:80]}'", error.mend or "", "cyrene tools")


def _needed(tool: ToolReport) -> list[str]:
    required = tool.definition.parameters.get("required")
    return [f"{name}=…" for name in (required if isinstance(required, list) else ())]


def _disabled(name: str, plugin: PluginReport) -> Why:
    command = f"cyrene plugins enable {plugin.name}"
    if plugin.switched is False:
        sentence = f"a person has switched the plugin '{plugin.name}' off"
        return Why(name, False, Reason.PLUGIN_SWITCHED_OFF, sentence, command=command)
    sentence = f"the plugin '{plugin.name}' is disabled by its entry"
    mend = "set its entry's 'enabled' to true in plugins.json, or switch it on over the entry"
    return Why(name, False, Reason.PLUGIN_DISABLED, sentence, mend, command)


def _of_error(name: str, reason: Reason, error: CyreneError, *, command: str = "", waiting_helps: bool = False) -> Why:
    place = f" ({error.where})" if error.where else ""
    return Why(name, False, reason, f"{error.what}{place}", error.mend or "", command, waiting_helps)
