"""How far an execution is: a bar at a terminal, elsewhere a line now and then, for programs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from cyrene_host.cli.safe_text import in_one_line
from cyrene_host.cli.screen import Screen
from cyrene_host.record.execution import ExecutionEvent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Progress", "progress_on"]

EVERY_S = 1.0
"""At most one line a second."""


class Progress(Protocol):
    """Shows one execution, from its first event to `close`."""

    def show(self, name: str, event: ExecutionEvent) -> None:
        """Show what has happened to the execution of this tool."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Make room on the screen, as long as this lasts."""
        ...

    def close(self) -> None:
        """Show nothing any more; a bar is gone then."""
        ...


def progress_on(screen: Screen) -> Progress:
    """Return what shows progress on this screen."""
    if screen.as_json:
        return _Silent()
    return _Bar(screen) if screen.can_animate else _Lines(screen)


class _Silent:
    """Nothing."""

    def show(self, name: str, event: ExecutionEvent) -> None:
        del name, event

    def aside(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def close(self) -> None:
        return


class _Lines:
    """A line for what is new, and of what is new within a second the newest."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._told: str = ""
        self._newest = ""
        self._told_at = -EVERY_S
        self._timer: asyncio.TimerHandle | None = None

    def show(self, name: str, event: ExecutionEvent) -> None:
        if event.state != "running" or (not event.progress and not event.message):
            return
        self._newest = f"{in_one_line(name)}: {event.progress:.0%} {in_one_line(event.message)}".rstrip()
        if self._timer is None and self._newest != self._told:
            loop = asyncio.get_running_loop()
            wait_s = self._told_at + EVERY_S - loop.time()
            if wait_s <= 0:
                self._tell()
            else:
                self._timer = loop.call_later(wait_s, self._tell)

    def aside(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._timer = None
        self._told, self._told_at = self._newest, asyncio.get_running_loop().time()
        self._screen.say(self._told)


class _Bar:
    """A bar with the message beside it; what else is written meanwhile goes above it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = contextlib.ExitStack()
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._newest: tuple[str, ExecutionEvent] | None = None
        self._asides = 0

    def show(self, name: str, event: ExecutionEvent) -> None:
        if event.state != "running":
            return
        self._newest = name, event
        if self._asides:
            return
        if self._bar is None:
            self._bar = self._begin()
        if self._task is None:
            self._task = self._bar.add_task(in_one_line(name), total=1.0, message="")
        self._bar.update(self._task, completed=event.progress, message=in_one_line(event.message))

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        self._asides += 1
        self._end()
        try:
            yield
        finally:
            self._asides -= 1
            if self._newest is not None:
                self.show(*self._newest)

    def close(self) -> None:
        self._newest = None
        self._end()

    def _begin(self) -> RichProgress:
        from rich.console import Console  # only a person who waits at a terminal pays for it
        from rich.file_proxy import FileProxy
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        console = Console(file=self._screen.err)
        message = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%", markup=False),
            TextColumn("{task.fields[message]}", markup=False, table_column=message),
            console=console,
            transient=True,
            expand=True,
        )
        self._shown.enter_context(self._screen.through(FileProxy(console, self._screen.err)))
        self._shown.enter_context(bar)
        return bar

    def _end(self) -> None:
        self._shown.close()
        self._bar = self._task = None
