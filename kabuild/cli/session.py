"""One build from the command line: signals, progress, results, ``out/``, exit code."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from kabuild.base.clock import SystemClock
from kabuild.base.errors import StoreError
from kabuild.base.fs import appending, atomic_write
from kabuild.base.own_files import write_own
from kabuild.base.printing import in_line, marked
from kabuild.base.version import __version__
from kabuild.builder import Builder
from kabuild.cli.interrupts import heeded, say_interrupted
from kabuild.cli.null_build import style
from kabuild.cli.outputs import check_outputs
from kabuild.cli.presentation import PresentationFlags
from kabuild.cli.types import unwritable
from kabuild.incremental.recall import Recalled
from kabuild.incremental.remember import remember
from kabuild.incremental.split_request import merge
from kabuild.loading.request import Request
from kabuild.loading.roots import find_workspace
from kabuild.model.event import EventSink, Warned
from kabuild.model.gate import NO_GATE
from kabuild.model.gate_result import GateResult
from kabuild.pipeline import Plan, Summary
from kabuild.report.event_log import EventLog
from kabuild.report.event_stream import EventStream, is_stream
from kabuild.report.failures import broken, render_failures
from kabuild.report.json_report import Made, outcome_of, render_json
from kabuild.report.junit import render_junit
from kabuild.report.key_history import KeyHistory
from kabuild.report.markdown import render_summary
from kabuild.report.profile import Profile
from kabuild.report.progress import Fan, make_progress
from kabuild.report.scoreboard import gate_result, render_table, render_totals
from kabuild.report.trials import render_trials, summarise_trials
from kabuild.report.views import shown_at, write_views
from kabuild.report.why import render_explanation
from kabuild.store import Store
from kabuild.store.build_memo import BuildMemos


@contextmanager
def builder(*listeners: EventSink) -> Iterator[Builder]:
    """The builder of commands: progress on stderr, the user's store, Ctrl-C."""
    clock = SystemClock()
    sink = Fan(make_progress(clock), *listeners)
    with Store.open(warn=lambda text: sink.emit(Warned(text))) as store:
        yield Builder(store, sink, interruptible, clock)


def build(request: Request, wanted: PresentationFlags, recalled: Recalled | None = None) -> None:
    """Execute one request and exit with its code; ``recalled`` is not built again."""
    began, began_ns = time.monotonic(), time.time_ns()
    out = find_workspace(request.cwd) / "out"
    events = wanted.events
    stream = _stream(events) if events and is_stream(events) else None
    profile = Profile()
    with builder(profile, EventLog(out / "build.log"), *filter(None, [stream])) as given:
        builds = given
        planned, recalled = builds.plan_changed(request, recalled)
        check_outputs(planned, wanted.outputs)
        if events and stream is None:  # only now it is known to be no source
            stream = _stream(events)
            builds = replace(builds, sink=Fan(builds.sink, stream))
        store, sink = builds.store, builds.sink
        summary = builds.execute(request, planned)
        if wanted.explain:
            _explain(wanted.explain, summary, out, store)
        built = merge(summary, recalled) if recalled else summary
        reports = {"profile.json": profile.render()}
        if built.table:
            reports["test.xml"] = render_junit(built.table)
        leave_views(out, summary, store, sink, reports)
        with store.best_effort():
            remember(request, BuildMemos(store.memories, store.seal), built, recalled, began_ns)
    seconds = time.monotonic() - began
    if stream:
        stream.finish(built.table, built.totals, int(built.exit_code))
    if wanted.summary:
        _append(wanted.summary, render_summary(built.table, built.totals, built.settled.values()))
    if wanted.as_json:
        click.echo(_json(request, built, seconds))
    else:
        _print(request, built, wanted.test_output, seconds)
    raise click.exceptions.Exit(int(built.exit_code))


def _stream(path: Path) -> EventStream:
    try:
        return EventStream(path, SystemClock())
    except OSError as error:
        raise unwritable("--events", path, error) from None


def _append(path: Path, text: str) -> None:
    """Append to what earlier steps of a job wrote."""
    try:
        with appending(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise unwritable("--summary", path, error) from None


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C and other signals set; a second one ends the process at once."""
    stop = threading.Event()

    def on_signal(_: int, __: object) -> None:
        if stop.is_set():
            os._exit(say_interrupted())  # it may come before the line below was written
        stop.set()
        with suppress(OSError):  # a closed terminal, which is why SIGHUP came
            os.write(2, b"\ninterrupted: stopping; once more to stop at once\n")

    before = {number: signal.signal(number, on_signal) for number in heeded()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_views(
    out: Path, summary: Summary, store: Store, sink: EventSink, reports: Mapping[str, bytes]
) -> None:
    """Write ``out/`` with ``reports`` by file name.

    It is disposable, so failing to write it is only a warning: one, for all that is missing.
    """
    graph = summary.plan.analysis.graph
    steps: list[Callable[[], object]] = [
        lambda: write_views(out, summary.settled.values(), store.cas.link_to, graph),
        lambda: remember_keys(out, summary),
        *(partial(write_own, out / name, report) for name, report in reports.items()),
    ]
    failed: list[OSError | StoreError] = []
    for step in steps:
        try:
            step()
        except (OSError, StoreError) as error:
            failed.append(error)
    if failed:
        sink.emit(Warned(_incomplete(failed[0])))


def _incomplete(error: OSError | StoreError) -> str:
    if isinstance(error, StoreError):
        return f"out/ is not complete; the next build mends it: {error}"
    path = error.filename2 or error.filename
    where = f": {path}" if path else ""
    return f"out/ is not complete: {error.strerror}{where}"


def remember_keys(out: Path, summary: Summary) -> None:
    """Record keys, so that ``why`` can compare with this build. Raises ``OSError``."""
    KeyHistory(out, summary.plan.loaded.options).record(summary.settled.values())


def _explain(path: Path, summary: Summary, out: Path, store: Store) -> None:
    """Explain before the views change: they hold the keys of the last build."""
    history = KeyHistory(out, summary.plan.loaded.options)
    text = render_explanation(summary.settled.values(), history.last, store.cas)
    try:
        atomic_write(path, text.encode())
    except OSError as error:
        raise unwritable("--explain", path, error) from None


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
        built=() if request.judge else list(_made(summary)),
    )


def _made(summary: Summary) -> Iterator[Made]:
    """The targets that were built, with their outcomes and paths."""
    declared = summary.plan.analysis.declared()
    for label in summary.plan.roots:
        gate = declared.get(label, NO_GATE)
        item = summary.settled.get(label)
        yield (
            gate_result(gate, label, summary.settled),
            shown_at(Path("out"), item) if item else None,
        )


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
        click.echo(render_table(summary.table, style()))
        if summaries := summarise_trials(summary.table):
            click.echo(f"\n{render_trials(summaries)}")
    else:
        for made in _made(summary):
            click.echo(_made_line(*made))
        if not summary.plan.roots:
            click.echo(_nothing(summary.plan))
    number = broken(summary.settled.values())
    click.echo(render_totals(summary.totals, seconds, broken=number))


def _nothing(plan: Plan) -> str:
    """Says why a build has no actions: its targets have none for this platform."""
    labels, platform = plan.loaded.labels, plan.loaded.options.platform.name
    first = labels[0].short if labels else "no target"
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    others = ", ".join(name for name in plan.loaded.loader.platforms.names() if name != platform)
    return (
        f"nothing to build: {first}{more} has no actions on platform {platform}\n"
        f"  other platforms (--platform=NAME): {others}"
    )


def _made_line(made: GateResult, where: Path | None) -> str:
    """One line for a built target: its outcome unless it is well, and its path."""
    outcome = outcome_of(made)
    how = made.title if made.verdict else outcome
    parts = (made.label, "" if outcome == "done" else how, where)
    return "  ".join(str(part) for part in parts if part)


def _print_all(summary: Summary) -> None:
    """Print the details of every gate."""
    for result in summary.table:
        for gate in result.gates.values():
            text = in_line(gate.headline)
            click.echo(f"{gate.label}: {gate.word}{f': {text}' if text else ''}")
            for line in marked(gate.detail).split("\n") if gate.verdict and gate.detail else ():
                click.echo(f"  {line}")
    click.echo("")


def rerun_flags(request: Request) -> list[str]:
    """The flags that a rerun needs for the same verdict."""
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
