"""Puts plugins into an order in which each follows what it needs, and says why one cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cyrene_host.catalog.faults import nearest
from cyrene_host.catalog.versions import VersionError, fits
from cyrene_sdk.errors import CyreneError

__all__ = ["DependencyError", "Needs", "order_and_check"]


class DependencyError(CyreneError):
    """A plugin cannot be used because of a plugin that it depends on."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the dependency check has to know of one plugin.

    Attributes:
        name: its entry name.
        aliases: other names that `dependencies` may use (`metadata().name`).
        version: its own version (PEP 440); empty where it is not known.
        dependencies: plugin name → range of versions.
        usable: False for one that is disabled, blocked, incompatible or failed on its own account.
        why_not: then the end of a sentence about it, such as `is blocked: unknown key 'runtim'`.
        disabled: whether it is unusable only because the operator disabled it.
    """

    name: str
    aliases: tuple[str, ...] = ()
    version: str = ""
    dependencies: Mapping[str, str] = field(default_factory=dict)
    usable: bool = True
    why_not: str = ""
    disabled: bool = False


def order_and_check(plugins: Mapping[str, Needs]) -> tuple[list[str], dict[str, CyreneError]]:
    """Return the plugins that can be used, and why others cannot.

    Args:
        plugins: every plugin of the host by entry name, unusable ones too.
    Returns:
        The usable plugins, dependencies first and otherwise in the order given; and for each plugin that
        a dependency makes unusable a DependencyError. A plugin that was unusable before is in neither.
    """
    return _Check(plugins).result()


class _Check:
    """One run over all plugins: each is placed, or gets a cause, once everything it needs has been."""

    def __init__(self, plugins: Mapping[str, Needs]) -> None:
        self._plugins = plugins
        self._by_alias: dict[str, list[str]] = {}
        for name, plugin in plugins.items():
            for alias in plugin.aliases:
                self._by_alias.setdefault(alias, []).append(name)
        self._order: list[str] = []
        self._causes: dict[str, CyreneError] = {}
        self._waits: dict[str, list[str]] = {}
        self._roots: dict[str, str] = {}  # refused plugin → the plugin at the bottom of it

    def result(self) -> tuple[list[str], dict[str, CyreneError]]:
        for plugin in self._plugins.values():
            if plugin.usable:
                self._look_at(plugin)
        while self._waits:
            if not self._place_ready():
                self._refuse_cycle()
        causes = {name: self._causes[name] for name in self._plugins if name in self._causes}
        return self._order, causes

    def _look_at(self, plugin: Needs) -> None:
        """Note what the plugin waits for, or what is wrong with its dependencies at first sight."""
        needed, faults = [], []
        for wanted, allowed in plugin.dependencies.items():
            name = self._named(wanted, allowed)
            fault = self._fault(wanted, allowed, name)
            if fault:
                faults.append(fault)
            else:
                needed.append(name)
        if faults:
            self._refuse(plugin.name, faults)
        else:
            self._waits[plugin.name] = needed

    def _named(self, wanted: str, allowed: str) -> str:
        """Return the entry that a dependency means: by entry name, else the best of those with this metadata name."""
        if wanted in self._plugins:
            return wanted
        candidates = self._by_alias.get(wanted, [""])
        return next((name for name in candidates if not self._fault(wanted, allowed, name)), candidates[0])

    def _fault(self, wanted: str, allowed: str, name: str) -> tuple[str, str] | None:
        """Return what is wrong with one dependency and how to mend it; None if nothing is."""
        plugin = self._plugins.get(name)
        if plugin is None:
            near = nearest(wanted, {*self._plugins, *self._by_alias})
            hint = f"did you mean '{near}'? Else " if near else ""
            return (
                f"it needs the plugin '{wanted}', which is missing",
                f"{hint}install '{wanted}' and list it in plugins.json",
            )
        if plugin.disabled:
            return f"it needs the plugin '{wanted}', which is disabled", f"enable it: cyrene plugins enable {name}"
        if not plugin.usable:
            return f"it needs the plugin '{wanted}', which {plugin.why_not or 'cannot be used'}", f"mend '{name}' first"
        try:
            if not plugin.version or fits(plugin.version, allowed):
                return None
        except VersionError as error:
            return f"it needs the plugin '{wanted}' {allowed}, but {error.what}", str(error.mend)
        what = f"it needs the plugin '{wanted}' {allowed}, but the version here is {plugin.version}"
        return what, f"install a version of '{wanted}' that is {allowed}"

    def _place_ready(self) -> bool:
        """Decide the first plugin whose dependencies are all decided; the order given is kept that way."""
        for name, needed in self._waits.items():
            refused = [other for other in needed if other in self._causes]
            if refused:
                self._roots[name] = self._roots.get(refused[0], refused[0])
                self._refuse(name, [self._behind(other) for other in refused])
                return True
            if not any(other in self._waits for other in needed):
                self._order.append(name)
                del self._waits[name]
                return True
        return False

    def _behind(self, other: str) -> tuple[str, str]:
        root = self._roots.get(other, other)
        because = "" if root == other else f" because of '{root}'"
        what = f"it needs the plugin '{other}', which is incompatible{because}: {self._causes[root].what}"
        return what, f"mend '{root}' first"

    def _refuse_cycle(self) -> None:
        path = [next(iter(self._waits))]
        while path[-1] not in path[:-1]:
            path.append(next(other for other in self._waits[path[-1]] if other in self._waits))
        cycle = path[path.index(path[-1]) : -1]
        for at, name in enumerate(cycle):
            spelled = " → ".join([*cycle[at:], *cycle[:at], name])
            self._refuse(name, [(f"it depends on itself: {spelled}", "remove one of these dependencies")])

    def _refuse(self, name: str, faults: Iterable[tuple[str, str]]) -> None:
        whats, mends = zip(*faults, strict=True)
        self._waits.pop(name, None)
        self._causes[name] = DependencyError(
            "; ".join(whats),
            plugin=name,
            where="the dependencies of its metadata",
            mend="; ".join(dict.fromkeys(mends)),
        )
