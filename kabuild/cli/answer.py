"""The answer that needs no build, for a request of which nothing changed."""

from __future__ import annotations

import os
import time

import click

from kabuild.base.errors import ExitCode
from kabuild.incremental.recall import Recalled, recall
from kabuild.loading.request import Request
from kabuild.loading.roots import find_workspace
from kabuild.report.scoreboard import Totals
from kabuild.report.table import Line, Style, coloured, plain, render_table, render_totals
from kabuild.store.memory import Memory, MemoryStore
from kabuild.store.paths import MEMORIES, default_path


def answer(request: Request, began: float) -> Recalled | None:
    """Print the answer and exit, if all of it is known; else return what is known.

    ``began`` is when the command began, on the monotonic clock.
    """
    memories = MemoryStore(default_path() / MEMORIES)
    recalled = recall(request, find_workspace(request.cwd), memories)
    if recalled is None or not recalled.is_complete:
        return recalled
    memories.note_use(recalled.name)
    lines = [
        Line(task.label, dict.fromkeys(task.gates, "PASS"), task.speedup, task.score, "cached")
        for task in recalled.tasks()
    ]
    click.echo(render_table(lines, style()))
    click.echo(render_totals(_totals(recalled.memory), time.monotonic() - began))
    raise click.exceptions.Exit(int(ExitCode.OK))


def style() -> Style:
    """Colours for a terminal whose user has not refused them."""
    return coloured if os.isatty(1) and "NO_COLOR" not in os.environ else plain


def _totals(memory: Memory) -> Totals:
    packages = memory.packages.values()
    return Totals(
        executed=0,
        cached=memory.actions + sum(package.actions for package in packages),
        passed=sum(len(task.gates) for package in packages for task in package.tasks),
        failed=0,
        rejected=0,
        skipped=0,
        infra=0,
    )
