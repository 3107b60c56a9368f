"""``kabuild why``: why an action is cached, or would run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kabuild.cli.flags import build_flags
from kabuild.cli.foreseen import look_ahead
from kabuild.cli.test import request_fields
from kabuild.execution.forecast import Forecast
from kabuild.loading.request import Request
from kabuild.pipeline import Plan
from kabuild.report.key_history import KeyHistory
from kabuild.report.why import render_why
from kabuild.store import Store


@click.command("why")
@build_flags
def command(**shared: Any) -> None:
    """Say why something is cached, or would run: which input differs, and in which lines.

    \b
    kabuild why //tasks/hip2hip/softmax:softmax.perf
    kabuild why //tasks/hip2hip/softmax --solution=my.hip

    It compares with the last build of the same agent or solution in this workspace, where there
    was one, else with the last build of any, and runs nothing.
    """
    click.echo(look_ahead(Request(**request_fields(shared)), _why), nl=False)


def _why(planned: Plan, foreseen: dict[str, Forecast], store: Store, out: Path) -> str:
    labels = [str(label) for label in planned.roots]
    history = KeyHistory(out, planned.loaded.options)
    return render_why(labels, foreseen, history, store.cas)
