"""Wrong use, told like every other error: what, where, and what was probably meant."""

from __future__ import annotations

from typing import Any

import typer

from cyrene_host.catalog.faults import nearest
from cyrene_host.cli.commands import application
from cyrene_host.cli.options import TAKES_VALUE, WrongUseError
from cyrene_host.cli.screen import Screen

__all__ = ["invoke"]


def invoke(words: list[str], screen: Screen) -> int:
    """Run the command that the words name and return its exit code.

    Raises:
        WrongUseError: there is no such command or option, or a value does not fit.
    """
    try:
        code = application()(words, standalone_mode=False, prog_name="cyrene", obj=screen)
    except typer.TyperException as error:
        raise _wrong_use(error) from error
    except SystemExit as ended:  # completion ends so
        code = ended.code
    return code if isinstance(code, int) else 0


def _wrong_use(error: typer.TyperException) -> WrongUseError:
    said = error.format_message().partition(" (Possible options")[0].rstrip(".")
    what, _, meant = said.partition(". Did you mean ")
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "cyrene"
    option: str | None = getattr(error, "option_name", None)
    if option is not None:
        known = [spelling for parameter in context.command.params for spelling in parameter.opts] if context else []
        near = nearest(option, [*(spelling for spelling in known if spelling.startswith("-")), *TAKES_VALUE, "--help"])
        meant = f"'{near}'?" if near else ""
    mend = f"did you mean {meant.rstrip('?')}?" if meant else f"`{command} --help` shows its use"
    return WrongUseError(what[:1].lower() + what[1:], where=f"command line, {command}", mend=mend)
