"""Plain functions in threads, and how such a thread waits for what only the event loop can do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from cyrene_sdk.context import _current
from cyrene_sdk.errors import CyreneError

__all__ = ["Ties", "check_cancelled", "in_thread", "wait_for"]

_T = TypeVar("_T")


class Ties:
    """What ties a thread to the event loop that waits for it, until the work is cancelled.

    Args:
        loop: the plugin's event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waits: set[concurrent.futures.Future[Any]] = set()
        self.are_cut = False

    def context(self) -> contextvars.Context:
        """Return a copy of the current context in which these ties are known."""
        context = contextvars.copy_context()
        context.run(_ties.set, self)
        return context

    def cut(self) -> None:
        """Let the thread notice, at its next `report` or `wait_for`, that nobody waits for it any more."""
        self.are_cut = True  # first: a wait that begins now looks at it after it is in the set
        for wait in tuple(self.waits):
            wait.cancel()


_ties: ContextVar[Ties] = ContextVar("cyrene_thread_ties")
_threads: ContextVar[Callable[[Callable[[], Any]], Awaitable[Any]]] = ContextVar("cyrene_threads")


def wait_for(awaitable: Awaitable[_T]) -> _T:
    """Wait, in the thread of a plain `def`, for what the event loop does: `wait_for(host.storage.get("key"))`.

    It waits until the call's deadline at most, and no longer than the call is wanted.

    Returns:
        What the awaitable returns; what it raises passes through.
    Raises:
        CyreneError: this is no thread of a plain `def` of a plugin: `async def` awaits instead.
        asyncio.CancelledError: the call was cancelled.
        TimeoutError: the call's deadline passed.
    """
    ties = _ties.get(None)
    if ties is None or _runs_a_loop():
        if inspect.iscoroutine(awaitable):
            awaitable.close()  # else it would be "never awaited"
        raise _not_in_thread(on_loop=_runs_a_loop())
    call = _current.get(None)
    wait = asyncio.run_coroutine_threadsafe(_awaited(awaitable), ties.loop)
    ties.waits.add(wait)
    try:
        if ties.are_cut:
            wait.cancel()
        return wait.result(call.remaining_s if call is not None else None)
    except concurrent.futures.CancelledError:
        raise asyncio.CancelledError("the call was cancelled") from None
    except TimeoutError:
        if wait.done():
            raise  # the awaitable's own
        wait.cancel()
        raise TimeoutError("the call's deadline passed") from None
    finally:
        ties.waits.discard(wait)


def check_cancelled() -> None:
    """Raise `asyncio.CancelledError` in a thread whose work was cancelled; elsewhere nothing."""
    ties = _ties.get(None)
    if ties is not None and ties.are_cut and not _runs_a_loop():
        raise asyncio.CancelledError("the call was cancelled")


async def in_thread(function: Callable[[], Any]) -> Any:
    """Run a plain function in a thread: of those that its runner keeps, outside of one in any.

    Returns:
        What it returns; what it raises passes through.
    """
    return await _threads.get(_any_thread)(function)


async def _any_thread(function: Callable[[], Any]) -> Any:
    ties = Ties(asyncio.get_running_loop())
    try:
        return await asyncio.to_thread(ties.context().run, function)
    except asyncio.CancelledError:
        ties.cut()
        raise


async def _awaited(awaitable: Awaitable[_T]) -> _T:
    return await awaitable


def _runs_a_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False


def _not_in_thread(*, on_loop: bool) -> CyreneError:
    return CyreneError(
        "wait_for() was used " + ("on the event loop" if on_loop else "outside the thread of a plain `def`"),
        where="cyrene_sdk.wait_for",
        mend="write `await` instead" if on_loop else "start own threads with `contextvars.copy_context().run`",
    )
