"""``kabuild why``: why an action is cached, or would run."""

from __future__ import annotations

from pathlib import Path

import click

from kabuild.cli.dry_run import PlanFlags, look_ahead
from kabuild.cli.options import takes
from kabuild.execution.forecast import Forecast
from kabuild.pipeline import Plan
from kabuild.report.key_history import KeyHistory
from kabuild.report.why import render_why
from kabuild.store import Store


@click.command("why")
@takes(PlanFlags)
def command(options: PlanFlags) -> None:
    """Explain why a target is cached, or would run: which input differs, in which lines.

    \b
    kabuild why //tasks/hip2hip/softmax:softmax.perf
    kabuild why //tasks/hip2hip/softmax --solution=my.hip

    Compares with the last build of the same agent or solution in this workspace, or else with
    the last build of any. Runs nothing.
    """
    click.echo(look_ahead(options.request(), _why), nl=False)


def _why(planned: Plan, foreseen: dict[str, Forecast], store: Store, out: Path) -> str:
    labels = [str(label) for label in planned.roots]
    history = KeyHistory(out, planned.loaded.options)
    return render_why(labels, foreseen, history, store.cas)
