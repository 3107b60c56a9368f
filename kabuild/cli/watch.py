"""``kabuild watch``: judge a kernel again whenever it is saved."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import click

from kabuild.builder import Builder
from kabuild.cli.changes import ChangedFiles
from kabuild.cli.flags import GateFlags, SolverFlags, read_gates
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.null_build import style
from kabuild.cli.options import flag, takes
from kabuild.cli.session import interruptible, rerun_flags
from kabuild.loading.request import Request
from kabuild.model.event import Warned
from kabuild.model.gate import Pick
from kabuild.pipeline import Summary
from kabuild.report.watch_report import WatchReport
from kabuild.store import Store
from kabuild.watch import Watch


@dataclass(frozen=True, kw_only=True)
class WatchFlags(SolverFlags, GateFlags, JudgingFlags):
    """The options of ``kabuild watch``."""

    gates: tuple[str, ...] = flag(
        "--gates",
        default="",
        callback=read_gates,
        metavar="GATES",
        help="Only these gates, comma-separated: compile,perf; or changes to the default: "
        "+unseen,-perf.  [default: each task's quick gates, such as compile]",
    )

    def refine(self, request: Request) -> Request:
        """Use only the quick gates, unless some are named."""
        return super().refine(replace(request, pick=Pick.WATCHED))


@click.command("watch")
@takes(WatchFlags)
def command(options: WatchFlags) -> None:
    """Judge tasks again whenever one of their files is saved, until Ctrl-C.

    \b
    kabuild watch //tasks/hip2hip/softmax --solution=my.hip
    kabuild watch //tasks/hip2hip/... --gates=compile,correctness

    Prints a gate when its result changes. A save cancels work on the previous version.
    """
    request = options.request()
    report = WatchReport(click.echo, style(), rerun_flags(request))

    def finish(summary: Summary) -> None:
        closing = f"{time.strftime('%H:%M:%S')}  {summary.seconds:.2f} s; waiting for changes"
        report.finish(summary.table, list(summary.settled.values()), closing)

    with Store.open() as store:
        builder = Builder(store, report, interruptible)
        watch = Watch(request, builder, on_summary=finish, on_error=report.fail)
        changes = ChangedFiles(lambda text: report.emit(Warned(text)))
        watch.run(changes, builder.plan(request))
