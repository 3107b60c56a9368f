"""Evaluations for the commands that show them: carried out now, or read from files."""

from __future__ import annotations

from pathlib import Path

from kabuild.base.errors import Reason, UsageError
from kabuild.bundle.archive import SUFFIX, TOTAL_LIMIT
from kabuild.cli.session import interruptible
from kabuild.loading.request import Request
from kabuild.model.event import EventSink
from kabuild.pipeline import execute, load, plan
from kabuild.published.publish import manifest_of
from kabuild.published.unpack import unpack
from kabuild.report.arena import is_arena_run, read_arena
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


def evaluated(request: Request, store: Store, sink: EventSink, *, name: str = "") -> Evaluation:
    """Carry out a request; what is cached is not judged again. Raises KabuildError."""
    planned = plan(request, load(request), store)
    with interruptible() as stop:
        summary = execute(request, planned, store, sink, stop=stop)
    unjudged = {
        row.label: {
            cell.gate: {"verdict": cell.word, "reason": "", "summary": cell.summary}
            for cell in row.cells
            if cell.verdict is None
        }
        for row in summary.table
    }
    manifest = manifest_of(summary, store)
    return read_evaluation(manifest, store.cas.get, name=name, unjudged=unjudged)
