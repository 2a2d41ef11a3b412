"""Call the hooks that the operator enabled, and let none of them do harm."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pluggy

from cyrene_host.errors import CallFailedError
from cyrene_sdk import hooks as specifications
from cyrene_sdk._worker.bounds import Bounds, Raised
from cyrene_sdk._worker.faults import sentence_of, trace_of
from cyrene_sdk.errors import ErrorKind
from cyrene_sdk.types import ToolResult

__all__ = ["Hooks"]

LIMIT_S = 1.0
GRACE_S = 0.1

_log = logging.getLogger("cyrene.hooks")


class Hooks:
    """The enabled hook packages, each called by itself so that a fault has a name.

    A hook that raises or takes over 1 s is logged by name and skipped. An implementation may be `async def`;
    a plain one runs on the host's loop and must be quick.

    Args:
        packages: name and module or object with `@hookimpl` functions, in the order of `[hooks] enabled`.
    """

    def __init__(self, packages: Sequence[tuple[str, object]] = ()) -> None:
        manager = pluggy.PluginManager("cyrene")
        manager.add_hookspecs(specifications)
        for name, package in packages:
            manager.register(package, name=name)
        manager.check_pending()
        self._listeners = {
            hook: [
                (name, function)
                for name, package in packages
                for function in _functions(
                    manager.subset_hook_caller(hook, [other for _, other in packages if other is not package])
                )
            ]
            for hook in ("before_call", "after_call", "plugin_state_changed")
        }
        self._bounds = Bounds(grace_s=GRACE_S, most_threads=0)
        self.any_before_call = bool(self._listeners["before_call"])
        self.any_after_call = bool(self._listeners["after_call"])

    async def before_call(self, tool_id: str, arguments: Mapping[str, Any], context: Any) -> None:
        """Ask every package.

        Raises:
            CallFailedError: `denied`; a package raised.
        """
        for name, function in self._listeners["before_call"]:
            raised = await self._contained(name, "before_call", function, (tool_id, arguments, context))
            if raised is not None:
                raise CallFailedError(
                    ErrorKind.DENIED,
                    f"the hook '{name}' refused the call: {sentence_of(raised)}",
                    where=f"tool '{tool_id}', hook before_call",
                    mend="ask the operator, who enabled this hook in cyrene.toml [hooks]",
                ) from raised

    async def after_call(self, tool_id: str, result: ToolResult, context: Any) -> None:
        """Tell every package the result."""
        for name, function in self._listeners["after_call"]:
            await self._contained(name, "after_call", function, (tool_id, result, context))

    async def plugin_state_changed(self, plugin: str, old: str, new: str, reason: str) -> None:
        """Tell every package that a plugin's state changed."""
        for name, function in self._listeners["plugin_state_changed"]:
            await self._contained(name, "plugin_state_changed", function, (plugin, old, new, reason))

    async def _contained(
        self, name: str, hook: str, function: Callable[..., Any], values: tuple[Any, ...]
    ) -> BaseException | None:
        """Call one package's hook; return what it raised, logged by name."""
        started = time.monotonic()
        try:
            answer = function(*values)
        except BaseException as error:  # noqa: BLE001 - a hook is foreign code; SystemExit must not end the host
            return _logged(name, hook, error)
        try:
            if answer is not None and inspect.isawaitable(answer):
                answer = await self._bounds.limited(_awaited(answer), LIMIT_S)
                if type(answer) is Raised:
                    return _logged(name, hook, answer.error)
            is_late = time.monotonic() - started >= LIMIT_S
        except TimeoutError:
            is_late = True
        if is_late:
            _log.warning("hook '%s': %s took over %g s and is skipped", name, hook, LIMIT_S)
        return None


def _functions(caller: pluggy.HookCaller) -> list[Callable[..., Any]]:
    """One package's functions for a hook, to be called with all its values in order.

    Without pluggy on the way, which costs each call 1 µs, unless one of them is a wrapper.
    """
    assert caller.spec is not None, "the specifications are added first"
    names = caller.spec.argnames
    found = caller.get_hookimpls()
    if any(own.wrapper or own.hookwrapper for own in found):
        return [partial(_wrapped, caller, names)]
    return [
        own.function
        if own.argnames == names
        else partial(_picked, own.function, [names.index(n) for n in own.argnames])
        for own in reversed(found)
    ]


def _picked(function: Callable[..., Any], places: Sequence[int], *values: Any) -> Any:
    return function(*[values[place] for place in places])


async def _wrapped(caller: pluggy.HookCaller, names: Sequence[str], *values: Any) -> None:
    for answer in caller(**dict(zip(names, values, strict=True))) or ():
        if inspect.isawaitable(answer):
            await answer


async def _awaited(awaitable: Awaitable[Any]) -> None:
    await awaitable


def _logged(name: str, hook: str, error: BaseException) -> BaseException:
    if not isinstance(error, specifications.CallRefusedError):
        _log.error("hook '%s': %s raised and is skipped\n%s", name, hook, trace_of(error))
    return error
