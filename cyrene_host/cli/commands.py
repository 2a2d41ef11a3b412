"""The commands: their names, options and help. What each does is in a module of its own, loaded when it is called."""

# No `from __future__ import annotations`: typer would evaluate the text of each annotation several times (4 ms).
from pathlib import Path
from typing import Annotated

import typer

from cyrene_host.cli.long_work import add_approvals, add_executions
from cyrene_host.cli.options import Choices, overrides_of
from cyrene_host.cli.screen import Screen
from cyrene_host.version import __version__

__all__ = ["application"]

_Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH|NAME", help="Folders, or plugins by name; none means all.", show_default=False),
]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name.")]


def application() -> typer.Typer:
    """Return the program `cyrene`; each command returns its exit code."""
    app = typer.Typer(
        name="cyrene",
        rich_markup_mode=None,  # a help page without rich takes half the time
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        callback=_cyrene,
        epilog="Options of cyrene may follow the command too. Exit: 0 fine, 1 failed, 2 wrong use, 130 interrupted.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    plugins = typer.Typer(rich_markup_mode=None, invoke_without_command=True, callback=_plugins)
    plugins.command("list")(_plugins_list)
    plugins.command("enable")(_plugins_enable)
    plugins.command("disable")(_plugins_disable)
    plugins.command("restart")(_plugins_restart)
    app.add_typer(plugins, name="plugins")
    manifest = typer.Typer(rich_markup_mode=None, invoke_without_command=True, callback=_manifest)
    manifest.command("build")(_manifest_build)
    manifest.command("show")(_manifest_show)
    app.add_typer(manifest, name="manifest")
    audit = typer.Typer(rich_markup_mode=None, invoke_without_command=True, callback=_audit)
    audit.command("tail")(_audit_tail)
    audit.command("verify")(_audit_verify)
    audit.command("export")(_audit_export)
    app.add_typer(audit, name="audit")
    add_executions(app)
    add_approvals(app)
    for command in (_tools, _call, _health, _why, _new, _check, _doctor):
        app.command(command.__name__.removeprefix("_"))(command)
    return app


def _cyrene(
    context: typer.Context,
    plugins: Annotated[str | None, typer.Option(metavar="PATH", help="The plugins.json to use.")] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help="The cyrene.toml to use.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="TABLE.KEY=VALUE", help="A setting; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks, and the whole log on stderr.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> int:
    """Turn plugins into tools that a language model may call safely."""
    screen: Screen = context.obj
    overrides = overrides_of(settings or ())
    context.obj = Choices(screen, plugins=plugins, config=config, overrides=overrides, is_debugging=debug)
    if version:
        if as_json:
            screen.json({"version": __version__})
        else:
            screen.answer(f"cyrene {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        screen.answer(context.get_help())
    return 0


def _plugins(context: typer.Context) -> int:
    """List the plugins, or switch one on or off."""
    return _plugins_list(context) if context.invoked_subcommand is None else 0


def _plugins_list(context: typer.Context) -> int:
    """List the plugins, with what is wrong with them."""
    from cyrene_host.cli.listing import show_plugins

    return show_plugins(context.obj)


def _plugins_enable(context: typer.Context, name: _Name) -> int:
    """Switch a plugin on, whatever its entry says, from the next start on."""
    from cyrene_host.cli.switching import switch_plugin

    return switch_plugin(context.obj, name, is_on=True)


def _plugins_disable(context: typer.Context, name: _Name) -> int:
    """Switch a plugin off from the next start on, until it is enabled."""
    from cyrene_host.cli.switching import switch_plugin

    return switch_plugin(context.obj, name, is_on=False)


def _plugins_restart(context: typer.Context, name: _Name) -> int:
    """Have a plugin tried again that was given up."""
    from cyrene_host.cli.switching import restart_plugin

    return restart_plugin(context.obj, name)


def _tools(
    context: typer.Context,
    qualified: Annotated[bool, typer.Option("--qualified", help="Show names as plugin__tool.")] = False,
) -> int:
    """List the tools, with their arguments."""
    from cyrene_host.cli.listing import show_tools

    return show_tools(context.obj, qualified=qualified)


def _call(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool: its name, or plugin.tool.")],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Its arguments.", show_default=False)
    ] = None,
    arguments: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="All arguments as a JSON object; - reads stdin.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve the call, however dangerous.")] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="For all attempts together.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Let it run by itself, and print its id.")] = False,
    background: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> int:
    """Call a tool and print what it answers."""
    from cyrene_host.cli.calling import call_tool

    return call_tool(
        context.obj,
        name,
        values or [],
        arguments=arguments,
        yes=yes,
        timeout_s=timeout_s,
        is_detached=detach,
        background=background,
    )


def _health(context: typer.Context) -> int:
    """Start all plugins and report how they do."""
    from cyrene_host.cli.health import show_health

    return show_health(context.obj)


def _why(
    context: typer.Context, names: Annotated[list[str], typer.Argument(metavar="NAME", help="Tools or plugins.")]
) -> int:
    """Say why tools or plugins can be used or not, and what mends it."""
    from cyrene_host.cli.reasons import show_reasons

    return show_reasons(context.obj, names)


def _new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name, such as my-weather.")],
    parent: Annotated[Path, typer.Option("--dir", metavar="FOLDER", help="Where its folder goes.")] = Path("plugins"),
) -> int:
    """Write a plugin of your own, ready to edit."""
    from cyrene_host.cli.new import make_plugin

    return make_plugin(context.obj, name, parent)


def _check(context: typer.Context, targets: _Targets = None) -> int:
    """Say what is wrong with plugins, or could be better."""
    from cyrene_host.cli.check import check_plugins

    return check_plugins(context.obj, targets or [])


def _doctor(context: typer.Context) -> int:
    """Say what is wrong when nothing else works."""
    from cyrene_host.cli.doctor import examine

    return examine(context.obj)


def _manifest(context: typer.Context) -> int:
    """Plugins as data: cyrene-plugin.json."""
    if context.invoked_subcommand is None:
        context.obj.screen.answer(context.get_help())
    return 0


def _manifest_build(
    context: typer.Context,
    targets: _Targets = None,
    only_check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 where one differs.")] = False,
) -> int:
    """Write cyrene-plugin.json into plugins' packages."""
    from cyrene_host.cli.manifest import build_manifests

    return build_manifests(context.obj, targets or [], only_check=only_check)


def _manifest_show(context: typer.Context, name: _Name) -> int:
    """Show the manifest that the host goes by."""
    from cyrene_host.cli.manifest import show_manifest

    return show_manifest(context.obj, name)


def _audit(context: typer.Context) -> int:
    """Look at the log of all calls: who called what, who allowed it, how it ended."""
    if context.invoked_subcommand is None:
        context.obj.screen.answer(context.get_help())
    return 0


def _audit_tail(
    context: typer.Context,
    count: Annotated[int, typer.Option("-n", metavar="COUNT", min=1, help="How many.")] = 20,
    tool: Annotated[str | None, typer.Option(metavar="ID", help="Only of this tool: plugin.tool.")] = None,
    principal: Annotated[str | None, typer.Option(metavar="WHO", help="Only of this principal.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only of this kind, such as started.")] = None,
) -> int:
    """Show the last records."""
    from cyrene_host.cli.audit import show_tail

    return show_tail(context.obj, count, tool=tool, principal=principal, kind=kind)


def _audit_verify(
    context: typer.Context,
    head: Annotated[str | None, typer.Option(metavar="HEAD", help="A head that was printed earlier.")] = None,
) -> int:
    """Check that no record was changed, removed, added or moved."""
    from cyrene_host.cli.audit import verify_audit

    return verify_audit(context.obj, head)


def _audit_export(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="FILE", help="A new file; - writes to stdout.")] = "-",
    since: Annotated[str | None, typer.Option(metavar="TIME", help="From when on, such as 2026-11-30.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Until before when.")] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="jsonl or csv.")] = "jsonl",
) -> int:
    """Write all records into a file, or those of some time."""
    from cyrene_host.cli.audit import export_audit

    return export_audit(context.obj, target, since=since, until=until, form=form)
