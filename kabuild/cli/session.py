"""One build from the command line: signals, progress, results, ``out/``, exit code."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import ExitCode, Reason, StoreError, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.version import __version__
from kabuild.cli.answer import style
from kabuild.cli.interrupts import SIGNALS
from kabuild.cli.presentation import Presentation
from kabuild.incremental.merge import merge
from kabuild.incremental.narrow import plan_changed
from kabuild.incremental.recall import Recalled
from kabuild.incremental.remember import remember
from kabuild.loading.request import Request
from kabuild.loading.roots import find_workspace
from kabuild.model.event import EventSink, Warned
from kabuild.model.label import Label
from kabuild.model.result import Outcome
from kabuild.pipeline import Summary, execute
from kabuild.report.causes import broken
from kabuild.report.event_log import EventLog
from kabuild.report.event_stream import EventStream
from kabuild.report.explain import render_explanation
from kabuild.report.failures import printable, render_failures
from kabuild.report.json_report import render_json
from kabuild.report.junit import render_junit
from kabuild.report.key_history import KeyHistory
from kabuild.report.markdown import render_summary
from kabuild.report.profile import Profile
from kabuild.report.progress import Fan, make_progress
from kabuild.report.scoreboard import GateCell, cell_of
from kabuild.report.table import Line, render_table, render_totals
from kabuild.report.trials import render_trials, summarise_trials
from kabuild.report.views import shown_at, write_views
from kabuild.store import Store
from kabuild.store.memory import MemoryStore


def run_session(request: Request, wanted: Presentation, recalled: Recalled | None = None) -> None:
    """Carry out one request and exit with its code; ``recalled`` need not be built again."""
    began, began_ns = time.monotonic(), time.time_ns()
    clock = SystemClock()
    profile = Profile()
    out = find_workspace(request.cwd) / "out"
    stream = _stream(wanted.events, clock)
    listeners = (make_progress(clock), profile, EventLog(out / "build.log"))
    sink = Fan(*listeners, *((stream,) if stream else ()))
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        planned, recalled = plan_changed(request, recalled, store)
        with interruptible() as stop:
            summary = execute(request, planned, store, sink, stop=stop, clock=clock)
        if wanted.explain:
            _explain(wanted.explain, summary, out, store)
        built = merge(summary, recalled) if recalled else summary
        reports = {"profile.json": profile.render()}
        if built.table:
            reports["test.xml"] = render_junit(built.table)
        leave_views(out, summary, store, sink, reports)
        remember(request, MemoryStore(store.memories), built, recalled, began_ns)
    seconds = time.monotonic() - began
    if stream:
        stream.finish(built.table, built.totals, int(built.exit_code))
    if wanted.summary:
        _append(wanted.summary, render_summary(built.table, built.totals))
    if wanted.as_json:
        click.echo(_json(request, built, seconds))
    else:
        _print(request, built, wanted.output, seconds)
    raise click.exceptions.Exit(int(built.exit_code))


def _stream(path: Path | None, clock: SystemClock) -> EventStream | None:
    try:
        return EventStream(path, clock) if path else None
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"--events: {path}: {error.strerror}") from None


def _append(path: Path, text: str) -> None:
    """Behind what earlier steps of a job left there."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"--summary: {path}: {error.strerror}") from None


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; a second one ends the process at once."""
    stop = threading.Event()

    def on_signal(_: int, __: object) -> None:
        if stop.is_set():
            os._exit(int(ExitCode.INTERRUPTED))
        stop.set()
        os.write(2, b"\ninterrupted: stopping; once more to stop at once\n")

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_views(
    out: Path, summary: Summary, store: Store, sink: EventSink, reports: Mapping[str, bytes]
) -> None:
    """Write ``out/`` with ``reports`` by file name.

    It is disposable: what cannot be shown is a warning, and no more.
    """
    try:
        graph = summary.plan.analysis.graph
        write_views(out, summary.settled.values(), store.cas.link_to, graph)
        remember_keys(out, summary)
        for name, report in reports.items():
            atomic_write(out / name, report)
    except OSError as error:
        sink.emit(Warned(f"out/ is not complete: {error.strerror}: {error.filename}"))
    except StoreError as error:
        sink.emit(Warned(f"out/ is not complete; the next build mends it: {error}"))


def remember_keys(out: Path, summary: Summary) -> None:
    """So that ``why`` has an earlier build to compare with. Raises ``OSError``."""
    KeyHistory(out, summary.plan.loaded.options).record(summary.settled.values())


def _explain(path: Path, summary: Summary, out: Path, store: Store) -> None:
    """Before the views change: they remember the keys of the last build."""
    history = KeyHistory(out, summary.plan.loaded.options)
    text = render_explanation(summary.settled.values(), history.last, store.cas)
    try:
        atomic_write(path.absolute(), text.encode())
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"--explain: {path}: {error.strerror}") from None


def _json(request: Request, summary: Summary, seconds: float) -> str:
    options = summary.plan.loaded.options
    return render_json(
        summary.table,
        summary.totals,
        version=__version__,
        platform=str(options.platform),
        agent="" if request.solution else str(options.agent),
        seconds=seconds,
        exit_code=int(summary.exit_code),
        built=() if request.judge else [*map(partial(_made, summary), summary.plan.roots)],
    )


def _made(summary: Summary, label: Label) -> GateCell:
    """What was to be made, with the gate that it is, if it is one."""
    gate = summary.plan.analysis.graph.actions[str(label)].gate
    return cell_of(gate, label, summary.settled)


def _print(request: Request, summary: Summary, output: str, seconds: float) -> None:
    if output == "errors":
        for paragraph in render_failures(
            summary.table,
            summary.settled.values(),
            command="test" if request.judge else "build",
            rerun=rerun_flags(request),
        ):
            click.echo(f"{paragraph}\n")
    elif output == "all":
        _print_all(summary)
    if summary.table:
        click.echo(render_table([Line.of(row) for row in summary.table], style()))
        if summaries := summarise_trials(summary.table):
            click.echo(f"\n{render_trials(summaries)}")
    else:
        for label in summary.plan.roots:
            click.echo(_made_line(_made(summary, label)))
    number = broken(summary.settled.values())
    click.echo(render_totals(summary.totals, seconds, broken=number))


def _made_line(cell: GateCell) -> str:
    """What was to be made, what it came to if that is not well, and where it is shown."""
    where = shown_at(Path("out"), cell.settled)
    how = cell.said if cell.verdict else cell.made.value
    parts = (cell.settled.label, "" if cell.made is Outcome.DONE else how, where)
    return "  ".join(str(part) for part in parts if part)


def _print_all(summary: Summary) -> None:
    """Every gate's own words."""
    for row in summary.table:
        for cell in row.cells:
            verdict = cell.settled.verdict
            text = printable(cell.summary)
            click.echo(f"{cell.settled.label}: {cell.word}{f': {text}' if text else ''}")
            for line in printable(verdict.detail if verdict else "").splitlines():
                click.echo(f"  {line}")
    click.echo("")


def rerun_flags(request: Request) -> list[str]:
    """The flags without which the same verdict would not come out."""
    named = (
        ("platform", request.platform),
        ("devices", ",".join(map(str, request.devices)) or None),
        ("agent", request.agent),
        ("agent_rerun", request.agent_rerun or None),
        ("solution", request.solution),
        ("policy", request.policy),
        ("unseen_salt_file", request.salt_file),
    )
    return [f"--{name}={value}" for name, value in named if value is not None]
