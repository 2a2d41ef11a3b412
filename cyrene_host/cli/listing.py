"""`cyrene plugins` and `cyrene tools`: lists from manifests, without any plugin code."""

from __future__ import annotations

from cyrene_host.call.usage import usage
from cyrene_host.catalog.state import PluginState
from cyrene_host.cli.options import Choices
from cyrene_host.cli.reading import read_inventory
from cyrene_host.host.listing import Listing
from cyrene_host.host.views import PluginReport, ToolReport

__all__ = ["show_plugins", "show_tools"]

DESCRIPTION_CHARS = 80


def show_plugins(choices: Choices) -> int:
    """List the plugins, then the errors of those that cannot be used."""
    reports = Listing(read_inventory(choices)).plugins()
    screen = choices.screen
    if choices.as_json:
        screen.json([report.to_dict() for report in reports])
        return 0
    rows = [
        (report.name, _state(report), report.version, str(len(report.tools)), _cut(report.description))
        for report in reports
    ]
    screen.table(("plugin", "state", "version", "tools", "description"), rows)
    if not rows:
        screen.say("no plugins are listed: `cyrene new NAME` writes one, an entry in plugins.json lists it")
    for report in reports:
        screen.notes(f"plugin '{report.name}': {note}" for note in report.notes)
        for error in filter(None, (report.error, *report.tool_errors)):
            screen.error(error)
    return 0


def show_tools(choices: Choices, *, qualified: bool) -> int:
    """List the tools that are offered, then name the others."""
    listing = Listing(read_inventory(choices))
    reports = listing.tools(mode="qualified" if qualified else None)
    screen = choices.screen
    if choices.as_json:
        screen.json([report.to_dict() for report in reports])
        return 0
    rows = [
        (tool.name, tool.id, _danger(tool), usage(tool.definition.parameters), _cut(tool.definition.description))
        for tool in reports
        if tool.is_offered
    ]
    screen.table(("tool", "id", "danger", "arguments", "description"), rows)
    if not reports:
        screen.say("there are no tools: `cyrene plugins` shows which plugins there are")
    hidden = [tool.id for tool in reports if not tool.is_offered]
    if hidden:
        screen.say(f"not offered: {', '.join(hidden)}; `cyrene why NAME` tells the reason")
    unwell = [report.name for report in listing.plugins() if report.error is not None]
    if unwell:
        screen.say(f"plugins that cannot be used: {', '.join(unwell)}; `cyrene plugins` tells more")
    return 0


def _state(report: PluginReport) -> str:
    """The state, and who decided it where somebody did: its entry, or a person's switch."""
    if report.state is PluginState.DISABLED:
        return f"{report.state} ({'entry' if report.switched is None else 'switch'})"
    return f"{report.state} (switch)" if report.switched else report.state.value


def _danger(tool: ToolReport) -> str:
    return tool.danger.value if tool.decision == "allow" else f"{tool.danger.value} ({tool.decision})"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= DESCRIPTION_CHARS else f"{line[: DESCRIPTION_CHARS - 1]}…"
