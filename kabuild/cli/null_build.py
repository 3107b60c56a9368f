"""Answers a request without a build if nothing has changed."""

from __future__ import annotations

import time

import click

from kabuild.base.errors import ExitCode
from kabuild.base.seal import user_seal
from kabuild.cli.streams import has_colours
from kabuild.incremental.recall import Recalled, recall
from kabuild.loading.request import Request
from kabuild.loading.roots import find_workspace
from kabuild.report.scoreboard import Totals, count_gates, render_table, render_totals
from kabuild.report.table import Style, coloured, plain
from kabuild.store.build_memo import BuildMemos
from kabuild.store.paths import MEMORIES, default_path
from kabuild.store.user_settings import read_user_settings


def answer(request: Request, began: float) -> Recalled | None:
    """If the whole answer is known, print it and exit; else return what is known.

    ``began`` is the start of the command on the monotonic clock. Raises LoadError for invalid user
    settings.
    """
    read_user_settings()
    memories = BuildMemos(default_path() / MEMORIES, user_seal())
    recalled = recall(request, find_workspace(request.cwd), memories)
    if recalled is None or not recalled.is_complete:
        return recalled
    memories.note_use(recalled.name)
    results = tuple(recalled.tasks())
    counts = Totals(executed=0, cached=recalled.memory.actions + recalled.own_actions())
    gates = (gate for result in results for gate in result.gates.values())
    click.echo(render_table(results, style()))
    click.echo(render_totals(count_gates(gates, counts), time.monotonic() - began))
    raise click.exceptions.Exit(int(ExitCode.OK))


def style() -> Style:
    """Colours, if stdout has them."""
    return coloured if has_colours(1) else plain
