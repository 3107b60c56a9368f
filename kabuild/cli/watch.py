"""``kabuild watch``: judge a kernel again whenever it is saved."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from kabuild.cli.answer import style
from kabuild.cli.flags import build_flags, read_gates
from kabuild.cli.session import rerun_flags
from kabuild.cli.test import request_fields
from kabuild.loading.request import Request
from kabuild.pipeline import Summary, load, plan
from kabuild.report.watching import WatchReport
from kabuild.store import Store
from kabuild.watch import DEBOUNCE_MS, Changes, Watch


@click.command("watch")
@build_flags
@click.option(
    "--gates",
    default="compile,correctness,perf",
    show_default=True,
    callback=read_gates,
    metavar="GATES",
    help="Which gates to judge after every change.",
)
def command(*, gates: tuple[str, ...], **shared: Any) -> None:
    """Judge tasks again whenever a file that they read is saved, until Ctrl-C.

    \b
    kabuild watch //tasks/hip2hip/softmax --solution=my.hip
    kabuild watch //tasks/hip2hip/... --gates=compile,correctness

    Gates are shown as they settle, when they have something new to say; work on a version
    that is no longer there is stopped.
    """
    request = Request(gates=gates, **request_fields(shared))
    report = WatchReport(click.echo, style(), rerun_flags(request))

    def finish(summary: Summary) -> None:
        closing = f"{time.strftime('%H:%M:%S')}  {summary.seconds:.2f} s; waiting for changes"
        report.finish(summary.table, list(summary.settled.values()), closing)

    with Store.open() as store:
        watch = Watch(request, store, report, on_summary=finish, on_error=report.fail)
        watch.run(_changes, plan(request, load(request), store))


def _changes(directories: Iterable[Path]) -> Changes:
    """Changed paths by inotify, in groups; Ctrl-C ends it."""
    import watchfiles

    with contextlib.suppress(KeyboardInterrupt):  # raise_interrupt=False prints a line of its own
        for group in watchfiles.watch(
            *sorted(directories),
            debounce=DEBOUNCE_MS * 4,
            step=DEBOUNCE_MS,
            watch_filter=None,
        ):
            yield {Path(path) for _, path in group}
