"""`cyrene plugins enable`, `disable` and `restart`: what a person decides, kept for the next start."""

from __future__ import annotations

from cyrene_host.catalog.faults import nearest
from cyrene_host.catalog.state import PluginState
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.host.inventory import Inventory
from cyrene_host.host.listing import Listing
from cyrene_host.host.views import PluginReport
from cyrene_host.supervise.marks import FailureMarks
from cyrene_sdk.errors import CyreneError

__all__ = ["restart_plugin", "switch_plugin"]


def switch_plugin(choices: Choices, name: str, *, is_on: bool) -> int:
    """Switch a plugin on or off, and say what that does to it and to the plugins that need it.

    Raises:
        WrongUseError: there is no such plugin.
        SwitchError: the state directory cannot be written.
    """
    inventory = _read(choices, name)
    before = _states(inventory)
    inventory.switches.set(name, is_on)
    listing = Listing(_read(choices, name))
    after = {report.name: report for report in listing.plugins()}
    report = after[name]
    if choices.as_json:
        choices.screen.json(report.to_dict())
        return 0
    choices.screen.answer(_switched(report, is_on=is_on, was_on=before[name] is not PluginState.DISABLED))
    for other, state in before.items():
        if other != name and after[other].state is not state:
            choices.screen.answer(f"'{other}', which needs it, is {after[other].state} now")
    if report.error is not None:
        choices.screen.error(report.error)
    return 0


def restart_plugin(choices: Choices, name: str) -> int:
    """Have a plugin that was given up tried again.

    Raises:
        WrongUseError: there is no such plugin.
        CyreneError: the state directory cannot be written.
    """
    inventory = _read(choices, name)
    marks, record = FailureMarks(inventory.state_dir), inventory.catalog.plugins[name]
    why = marks.find(record)
    marks.clear(name)
    if marks.find(record) is not None:
        what = f"'{name}' could not be taken off the list of those that were given up"
        raise CyreneError(what, where=str(inventory.state_dir), mend="make the folder writable")
    (report,) = (report for report in Listing(inventory).plugins() if report.name == name)
    if choices.as_json:
        choices.screen.json(report.to_dict())
    elif why is None:
        more = "every start begins afresh" if report.error is None else f"`cyrene why {name}` tells more"
        choices.screen.answer(f"'{name}' was not given up: it is {report.state}, and {more}")
    else:
        choices.screen.answer(
            f"'{name}' is started again by the next command or host that needs it; it was lost: {why}"
        )
    return 0


def _read(choices: Choices, name: str) -> Inventory:
    """Read the plugins; no other is described than the one in question."""
    inventory = Inventory.read(choices.plugins, config=choices.config, overrides=choices.overrides, only=name)
    known = inventory.catalog.plugins
    if name in known:
        return inventory
    near = nearest(name, known)
    mend = f"did you mean '{near}'?" if near else f"there are: {', '.join(known) or 'none'}"
    raise WrongUseError(f"there is no plugin '{name[:80]}'", where=inventory.file.path.name, mend=mend)


def _states(inventory: Inventory) -> dict[str, PluginState]:
    return {report.name: report.state for report in Listing(inventory).plugins()}


def _switched(report: PluginReport, *, is_on: bool, was_on: bool) -> str:
    already = " already" if is_on == was_on else ""
    if is_on:
        return (
            f"'{report.name}' is switched on{already}: the next start takes it, and a host that runs, its next reload"
        )
    return (
        f"'{report.name}' is switched off{already}, until `cyrene plugins enable {report.name}`: no start takes it,"
        " and a host that runs stops it at its next reload"
    )
