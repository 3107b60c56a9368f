"""``kabuild watch``: judge a kernel again whenever it is saved."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.builder import Builder
from kabuild.cli.flags import GateFlags, SolverFlags, read_gates
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.null_build import style
from kabuild.cli.options import flag, takes
from kabuild.cli.session import interruptible, rerun_flags
from kabuild.cli.streams import reader_left
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.pipeline import Summary
from kabuild.report.watch_report import WatchReport
from kabuild.store import Store
from kabuild.watch import DEBOUNCE_MS, Changes, Watch

LOOK_MS = 1000
"""Milliseconds between two checks for recreated directories."""


@dataclass(frozen=True, kw_only=True)
class WatchFlags(SolverFlags, GateFlags, JudgingFlags):
    """The options of ``kabuild watch``."""

    gates: tuple[str, ...] = flag(
        "--gates",
        default="",
        callback=read_gates,
        metavar="GATES",
        help="Only these gates: compile,perf; or the default ones with changes: +unseen,-perf.  "
        "[default: those that each task's rule says]",
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
        watch.run(_changes, builder.plan(request))


def _changes(directories: Iterable[Path]) -> Changes:
    """Changed paths by inotify, in groups, until Ctrl-C or the end of stdout's reader.

    To inotify, a recreated directory is a different one. It is watched anew and reported as changed
    twice, in case a file was added before that.
    """
    import watchfiles

    known = {directory: _identity(directory) for directory in sorted(directories)}
    renewed: set[Path] = set()
    with contextlib.suppress(KeyboardInterrupt):  # raise_interrupt=False prints a line of its own
        while not reader_left():
            there = [directory for directory, identity in known.items() if identity]
            groups = watchfiles.watch(
                *there,
                debounce=DEBOUNCE_MS * 4,
                step=DEBOUNCE_MS,
                watch_filter=None,
                rust_timeout=LOOK_MS,
                yield_on_timeout=True,
            )
            for group in groups if there else _idle():
                if changed := {Path(path) for _, path in group} or renewed:
                    yield changed
                renewed = renewed if group else set()
                now = {directory: _identity(directory) for directory in known}
                if now != known or reader_left():
                    renewed = {directory for directory in now if now[directory] != known[directory]}
                    known = now
                    break
            if renewed:
                yield renewed


def _idle() -> Iterator[set[tuple[object, str]]]:
    """The changes while no directory exists: none, at intervals."""
    while True:
        time.sleep(LOOK_MS / 1000)
        yield set()


def _identity(directory: Path) -> tuple[int, int] | None:
    """The identity of a directory; None if there is none."""
    try:
        status = directory.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
