"""``kabuild aquery``: the actions of targets, with everything in their keys."""

from __future__ import annotations

from dataclasses import dataclass

import click

from kabuild.cli.dry_run import PlanFlags, look_ahead
from kabuild.cli.options import takes
from kabuild.cli.presentation import JsonFlags
from kabuild.report.actions import render_actions, render_actions_json


@dataclass(frozen=True, kw_only=True)
class AqueryFlags(PlanFlags, JsonFlags):
    """The options of ``kabuild aquery``."""


@click.command("aquery")
@takes(AqueryFlags)
def command(options: AqueryFlags) -> None:
    """Print the actions of targets: command, inputs, platform, key and state.

    \b
    kabuild aquery //tasks/hip2hip/softmax:softmax.compile
    kabuild aquery //tasks/... --json

    Nothing runs.
    """
    render = render_actions_json if options.as_json else render_actions
    click.echo(look_ahead(options.request(), lambda _, foreseen, *__: render(foreseen.values())))
