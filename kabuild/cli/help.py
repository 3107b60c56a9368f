"""``kabuild help``: the same as ``--help``."""

from __future__ import annotations

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(ctx: click.Context, *, words: tuple[str, ...]) -> None:
    """Show the help of kabuild, or of a command.

    \b
    kabuild help
    kabuild help cache gc
    """
    assert ctx.parent is not None
    shown, current = ctx.parent, ctx.parent.command
    for word in words:
        if not isinstance(current, click.Group):
            raise click.UsageError(f"'{shown.command_path}' has no subcommand '{word}'", shown)
        name, found, _ = current.resolve_command(shown, [word])
        if found is None:
            raise click.UsageError(f"'{shown.command_path}' has no subcommand '{word}'", shown)
        current, shown = found, click.Context(found, info_name=name, parent=shown)
    click.echo(current.get_help(shown))
