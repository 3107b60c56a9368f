"""``kabuild aquery``: the actions behind targets, with all that their keys are made of."""

from __future__ import annotations

from typing import Any

import click

from kabuild.cli.flags import build_flags
from kabuild.cli.foreseen import look_ahead
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request
from kabuild.report.actions import render_actions, render_actions_json


@click.command("aquery")
@build_flags
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def command(*, as_json: bool, **shared: Any) -> None:
    """Print the actions that targets need: command, inputs, platform, key and state.

    \b
    kabuild aquery //tasks/hip2hip/softmax:softmax.compile
    kabuild aquery //tasks/... --json

    Nothing runs.
    """
    request = Request(**request_fields(shared))
    render = render_actions_json if as_json else render_actions
    click.echo(look_ahead(request, lambda _, foreseen, *__: render(foreseen.values())))
