"""The commands about calls that run long or wait for a person: `executions` and `approvals`."""

# No `from __future__ import annotations`, as in `commands`.
from typing import Annotated

import typer

__all__ = ["add_approvals", "add_executions"]

_Execution = Annotated[str, typer.Argument(metavar="ID", help="The execution's id, or how it begins.")]
_Approval = Annotated[str, typer.Argument(metavar="ID", help="The approval's id, or how it begins.")]


def add_executions(app: typer.Typer) -> None:
    """Add `executions` to the program."""
    executions = typer.Typer(rich_markup_mode=None, invoke_without_command=True, callback=_executions)
    executions.command("list")(_executions_list)
    executions.command("show")(_executions_show)
    executions.command("cancel")(_executions_cancel)
    app.add_typer(executions, name="executions")


def add_approvals(app: typer.Typer) -> None:
    """Add `approvals` to the program."""
    approvals = typer.Typer(rich_markup_mode=None, invoke_without_command=True, callback=_approvals)
    approvals.command("list")(_approvals_list)
    approvals.command("approve")(_approvals_approve)
    approvals.command("deny")(_approvals_deny)
    app.add_typer(approvals, name="approvals")


def _executions(context: typer.Context) -> int:
    """Look at calls that run long or wait for a person, or cancel one."""
    return _executions_list(context) if context.invoked_subcommand is None else 0


def _executions_list(
    context: typer.Context,
    states: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only in this state; may be repeated.")
    ] = None,
    principal: Annotated[str | None, typer.Option(metavar="WHO", help="Only of this principal.")] = None,
    count: Annotated[int, typer.Option("-n", metavar="COUNT", min=1, help="How many.")] = 20,
) -> int:
    """List the newest executions."""
    from cyrene_host.cli.executions import list_executions

    return list_executions(context.obj, states or [], principal=principal, count=count)


def _executions_show(
    context: typer.Context,
    execution_id: _Execution,
    follow: Annotated[bool, typer.Option("--follow", help="Show its progress to the end.")] = False,
) -> int:
    """Show one execution, with its result."""
    from cyrene_host.cli.executions import show_execution

    return show_execution(context.obj, execution_id, is_followed=follow)


def _executions_cancel(context: typer.Context, execution_id: _Execution) -> int:
    """Cancel one, wherever it runs."""
    from cyrene_host.cli.executions import cancel_execution

    return cancel_execution(context.obj, execution_id)


def _approvals(context: typer.Context) -> int:
    """Look at calls that wait for a person's word, and decide."""
    return _approvals_list(context) if context.invoked_subcommand is None else 0


def _approvals_list(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Decided and expired ones too.")] = False,
) -> int:
    """List what waits: calls, and tools whose definition has changed."""
    from cyrene_host.cli.approvals import list_approvals

    return list_approvals(context.obj, everything=everything)


def _approvals_approve(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID|TOOL", help="The approval's id, or how it begins; or a changed tool's id.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
) -> int:
    """Run a call that waits, or accept a tool's changed definition."""
    from cyrene_host.cli.approvals import approve

    return approve(context.obj, name, yes=yes)


def _approvals_deny(
    context: typer.Context,
    approval_id: _Approval,
    reason: Annotated[str, typer.Option(metavar="WHY", help="Told to the caller.")] = "",
) -> int:
    """Refuse a call that waits."""
    from cyrene_host.cli.approvals import deny

    return deny(context.obj, approval_id, reason=reason)
