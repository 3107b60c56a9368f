"""``kabuild validate``: whether tasks deserve to be in a benchmark."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from kabuild.base.clock import SystemClock
from kabuild.base.version import __version__
from kabuild.cli.session import interruptible, leave_views
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.pipeline import Summary, execute, load, plan
from kabuild.report.admission import render_admission
from kabuild.report.causes import broken
from kabuild.report.failures import render_failures
from kabuild.report.json_report import render_json
from kabuild.report.progress import make_progress
from kabuild.report.table import coloured, plain, render_totals
from kabuild.store import Store

ADMISSION = "admission"


@click.command("validate", context_settings={"show_default": False})
@click.argument("patterns", nargs=-1, required=True)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    metavar="N",
    help="On how many sampled configs the task's own kernels run.  [default: 200]",
)
@click.option("--platform", metavar="NAME", help="Where kernels run.  [default: cpu]")
@click.option(
    "--unseen_salt_file",
    type=click.Path(path_type=Path),
    help="Sample configs with this private salt.",
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="CPU slots.  [default: all cores]")
@click.option(
    "--cache_test_results/--nocache_test_results",
    default=True,
    help="Whether a cached verdict will do.  [default: yes]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
def command(
    *,
    patterns: tuple[str, ...],
    samples: int | None,
    platform: str | None,
    unseen_salt_file: Path | None,
    jobs: int | None,
    cache_test_results: bool,
    as_json: bool,
) -> None:
    """Say whether tasks deserve to be in a benchmark, and if not, why.

    A task is rejected when its outputs hardly depend on its inputs, when its comparison lets
    wrong results pass, when its oracle is not in double precision, and when its own kernels
    fail somewhere in its shape space.

    \b
    kabuild validate //tasks/...
    kabuild validate //tasks/hip2hip/softmax --samples=1000

    Exits with 0 when all tasks are admitted, 3 when some are not, 36 when the machine failed.
    """
    request = Request(
        patterns=patterns,
        cwd=Path.cwd(),
        gates=(ADMISSION,),
        samples=samples,
        platform=platform,
        salt_file=unseen_salt_file,
        jobs=jobs,
        read_cached_gates=cache_test_results,
    )
    began = time.monotonic()
    summary = _run(request)
    seconds = time.monotonic() - began
    click.echo(_json(summary, seconds) if as_json else _text(request, summary, seconds))
    raise click.exceptions.Exit(int(summary.exit_code))


def _run(request: Request) -> Summary:
    clock = SystemClock()
    sink = make_progress(clock)
    loaded = load(request)
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        planned = plan(request, loaded, store)
        with interruptible() as stop:
            summary = execute(request, planned, store, sink, stop=stop, clock=clock)
        out = loaded.workspace.root / "out"
        leave_views(out, summary, store, sink, {})
    return summary


def _json(summary: Summary, seconds: float) -> str:
    return render_json(
        summary.table,
        summary.totals,
        version=__version__,
        platform=str(summary.plan.loaded.options.platform),
        agent="",
        seconds=seconds,
        exit_code=int(summary.exit_code),
    )


def _text(request: Request, summary: Summary, seconds: float) -> str:
    style = coloured if os.isatty(1) and "NO_COLOR" not in os.environ else plain
    paragraphs = render_failures(
        summary.table, summary.settled.values(), command="validate", rerun=_flags(request)
    )
    parts = [*(f"{paragraph}\n" for paragraph in paragraphs)]
    closing = render_totals(summary.totals, seconds, broken=broken(summary.settled.values()))
    parts += [render_admission(summary.table, style), closing]
    return "\n".join(parts)


def _flags(request: Request) -> list[str]:
    """The flags without which the same verdict would not come out."""
    named = (
        ("platform", request.platform),
        ("unseen_salt_file", request.salt_file),
        ("samples", request.samples),
    )
    return [f"--{name}={value}" for name, value in named if value is not None]
