"""Evaluations for the commands that show them: carried out now, or read from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from kabuild.base.errors import Interrupted, Reason, UsageError
from kabuild.bundle.archive import SUFFIX, TOTAL_LIMIT
from kabuild.cli.session import interruptible, remember_keys
from kabuild.loading.request import Request
from kabuild.model.event import EventSink, Warned
from kabuild.model.result import Outcome
from kabuild.pipeline import Plan, Summary, execute, load, plan
from kabuild.published.publish import manifest_of
from kabuild.published.unpack import unpack
from kabuild.report.arena import is_arena_run, read_arena
from kabuild.report.asked import asked_of
from kabuild.report.causes import causes
from kabuild.report.evaluation import Evaluation, read_evaluation
from kabuild.store import Store


def is_file(text: str) -> bool:
    """Whether an argument is a bundle or a directory of results, and no pattern of targets."""
    return text.endswith(SUFFIX) or (not text.startswith("//") and is_arena_run(Path(text)))


def read_file(text: str, store: Store) -> Evaluation:
    """The evaluation in a bundle or a directory. Raises UsageError and BundleError."""
    path = Path(text)
    try:
        if path.is_dir():
            return read_arena(path)
        manifest = unpack(path, store, limit=TOTAL_LIMIT)
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"{path}: {error.strerror}") from None
    return read_evaluation(manifest, store.cas.get, name=path.stem, source=path.name)


def evaluated(requests: Iterable[Request], store: Store, sink: EventSink) -> list[Evaluation]:
    """Carry out requests; what is cached is not judged again.

    All are planned before anything runs: a mistake in the last costs nobody the time of the first.
    Raises KabuildError; Interrupted where somebody stopped it, since half a run is no evaluation.
    """
    planned = [(request, plan(request, load(request), store)) for request in requests]
    return [_carried_out(*one, store, sink) for one in planned]


def _carried_out(request: Request, planned: Plan, store: Store, sink: EventSink) -> Evaluation:
    with interruptible() as stop:
        summary = execute(request, planned, store, sink, stop=stop)
    if summary.interrupted:
        raise Interrupted(Reason.INTERRUPTED, "interrupted; what is done is kept")
    with suppress(OSError):  # disposable, as all of out/
        remember_keys(planned.loaded.workspace.root / "out", summary)
    for text in _machine_faults(summary):
        sink.emit(Warned(text))
    asked = {row.label: asked_of(row) for row in summary.table}
    return read_evaluation(manifest_of(summary, store), store.cas.get, asked=asked)


def _machine_faults(summary: Summary) -> Iterator[str]:
    """What the machine failed at, each cause once: figures are made without it."""
    for cause in causes(summary.settled.values()):
        if cause.first.outcome is Outcome.INFRA:
            more = f" ({cause.more})" if cause.more else ""
            also = f"\n  {cause.others}" if cause.others else ""
            yield f"not judged{more}: {cause.first.message}{also}"


def platform_of(request: Request) -> Mapping[str, str]:
    """Where a request would be carried out, as an evaluation says it. Raises KabuildError."""
    platform = load(request).options.platform
    return {"name": platform.name, **dict(platform.properties)}


def machine_failed(evaluations: Iterable[Evaluation]) -> bool:
    """Whether some gate was not judged for the machine's sake: exit code 36."""
    infra = Outcome.INFRA.value.upper()
    return any(
        said.get("verdict") == infra
        for evaluation in evaluations
        for result in evaluation.results
        for said in result.gates.values()
    )
