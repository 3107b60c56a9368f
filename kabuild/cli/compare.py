"""``kabuild compare``: two agents on the same tasks, paired."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import Reason, UsageError
from kabuild.cli.evaluations import evaluated, is_file, read_file
from kabuild.cli.flags import build_flags, read_gates
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.report.paired import compare, render_comparison
from kabuild.report.progress import make_progress
from kabuild.store import Store


@click.command("compare", options_metavar="ONE OTHER [OPTIONS]")
@build_flags
@click.option("--gates", default="", callback=read_gates, metavar="GATES", help="Only these gates.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(*, gates: tuple[str, ...], as_json: bool, **shared: Any) -> None:
    """Compare two agents, task by task, and say how sure the difference is.

    \b
    kabuild compare none expert //tasks/hip2hip/...
    kabuild compare mine_v1 mine_v2 //tasks/... --trials=3
    kabuild compare ours.kab theirs.kab

    ONE and OTHER are agents or bundles; two prompts, models or versions are two agents. Pairs
    are tasks: a trial that failed counts 1.0x. The interval is a paired bootstrap's over tasks,
    the p-value an exact sign test's. What is cached is not judged again.
    """
    if shared["agent"] or shared["solution"]:
        raise UsageError(
            Reason.BAD_FLAG, "--agent and --solution have no meaning here", hint="name two agents"
        )
    one, other, *patterns = (*shared["patterns"], "", "")[: max(2, len(shared["patterns"]))]
    if not one or not other or (not patterns and not (is_file(one) and is_file(other))):
        raise UsageError(
            Reason.BAD_FLAG,
            "two agents or bundles and, for agents, targets have to be named",
            hint="kabuild compare none expert //tasks/...",
        )
    sink = make_progress(SystemClock())
    fields = request_fields(shared) | {"patterns": tuple(patterns)}
    found = []
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        for name in (one, other):
            if is_file(name):
                found.append(read_file(name, store))
            else:
                request = Request(gates=gates, **(fields | {"agent": name}))
                found.append(evaluated(request, store, sink, name=name))
    try:
        comparison = compare(*found)
    except ValueError as error:
        raise UsageError(Reason.BAD_FLAG, str(error)) from None
    if as_json:
        click.echo(json.dumps({"schema": "kabuild/compare/1", **asdict(comparison)}, indent=2))
    else:
        click.echo(render_comparison(comparison))
