"""``kabuild bench``: how the times of a task are distributed, for a person."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from kabuild.base.clock import SystemClock
from kabuild.cli.flags import build_flags
from kabuild.cli.session import interruptible
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.model.result import Settled
from kabuild.pipeline import Summary, execute, load, plan
from kabuild.report.bench import ASCII, BLOCKS, read_bench, render_bench
from kabuild.report.failures import printable, render_failures
from kabuild.report.progress import make_progress
from kabuild.store import Store

PERF = "perf"


@click.command("bench", context_settings={"show_default": False})
@build_flags
@click.option("--fresh", is_flag=True, help="Measure anew, whatever was measured before.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on stdout.")
def command(*, fresh: bool, as_json: bool, **shared: Any) -> None:
    """Show how the times of a task are distributed: the perf gate, run or recalled.

    \b
    kabuild bench //tasks/hip2hip/softmax
    kabuild bench //tasks/hip2hip/softmax --solution=my.hip --fresh

    A side's brackets are its fastest and slowest process; the speedup's its 95 % interval.
    Exits with 0 when all were timed, 3 when some failed a gate, 36 when the machine failed.
    """
    request = Request(gates=(PERF,), fresh_gate=PERF if fresh else "", **request_fields(shared))
    clock = SystemClock()
    sink = make_progress(clock)
    loaded = load(request)
    found: dict[str, Any] = {}
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        planned = plan(request, loaded, store)
        with interruptible() as stop:
            summary = execute(request, planned, store, sink, stop=stop, clock=clock)
        for row in summary.table:
            (cell,) = row.cells
            if cell.settled.verdict and (files := _files(cell.settled, store)):
                found[row.label.short] = read_bench(*files)
    failures = [printable(text) for text in _failures(summary)]
    if as_json:
        click.echo(json.dumps(found, sort_keys=True))
        click.echo("\n\n".join(failures), err=True, nl=bool(failures))
    else:
        click.echo("\n\n".join([*failures, *_shown(found)]))
    raise click.exceptions.Exit(int(summary.exit_code))


def _files(settled: Settled, store: Store) -> tuple[Any, Any] | None:
    """The verdict and the samples; None where nothing was timed."""
    named = [settled.result and settled.result.file(n) for n in ("verdict.json", "samples.json")]
    if not all(named):
        return None
    verdict, samples = (json.loads(store.cas.get(file.digest)) for file in named if file)
    return (verdict, samples) if verdict["cases"] else None


def _failures(summary: Summary) -> list[str]:
    return render_failures(summary.table, summary.settled.values(), rerun=[])


def _shown(found: dict[str, Any]) -> list[str]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    ramp = BLOCKS if encoding == "utf8" else ASCII
    return [printable(render_bench(label, bench, ramp)) for label, bench in found.items()]
