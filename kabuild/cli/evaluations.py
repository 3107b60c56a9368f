"""Evaluations for the commands that show them: executed now, or read from files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from kabuild.base.errors import Interrupted, Reason, UsageError
from kabuild.base.version import __version__
from kabuild.builder import Builder
from kabuild.bundle.archive import SUFFIX, TOTAL_LIMIT
from kabuild.cli.outputs import check_outputs
from kabuild.cli.session import remember_keys
from kabuild.loading.request import Request
from kabuild.loading.rule_index import RuleIndex
from kabuild.model.event import Warned
from kabuild.model.gate import Gates
from kabuild.model.platform import Platform
from kabuild.model.result import Outcome
from kabuild.pipeline import Plan, Summary, load
from kabuild.published.publish import manifest_of, request_of
from kabuild.published.unpack import unpack
from kabuild.report.arena import is_arena_run, read_arena
from kabuild.report.evaluation import Evaluation, agent_name, read_evaluation, with_records
from kabuild.report.failures import causes
from kabuild.store import Store


def is_file(text: str) -> bool:
    """Whether an argument is a bundle or a directory of results, not a target pattern."""
    if text.endswith(SUFFIX):
        return True
    return not text.startswith("//") and is_directory(text) and is_arena_run(Path(text))


def is_directory(text: str) -> bool:
    """Whether an argument names a directory; what no file can be called does not."""
    return os.path.isdir(text)  # noqa: PTH112 - Path.is_dir() raises for names that are too long


def read_file(text: str, store: Store) -> Evaluation:
    """The evaluation in a bundle or a directory. Raises UsageError and BundleError."""
    path = Path(text)
    try:
        if path.is_dir():
            if not is_arena_run(path):
                what = f"{path} is neither a bundle nor a directory with results"
                raise UsageError(Reason.BAD_FLAG, what)
            return read_arena(path)
        manifest = unpack(path, store, limit=TOTAL_LIMIT)
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"{path}: {error.strerror}") from None
    return read_evaluation(manifest, store.cas.get, known_gates(), name=path.stem, source=path.name)


def known_gates() -> Gates:
    """The gates that the rules around the working directory declare, by kind of task."""
    return RuleIndex.around(Path.cwd()).gates()


def evaluated(
    requests: Iterable[Request],
    builder: Builder,
    *,
    in_full: bool = False,
    output: Path | None = None,
) -> list[Evaluation]:
    """Execute requests; cached results are reused. ``in_full`` adds their records.

    ``output`` is the file of ``--output``, which no request may read.

    All are planned before anything runs, so that a mistake in the last is found at once. Raises
    KabuildError, and Interrupted if the user stopped it: half a run is not an evaluation.
    """
    planned = [(request, builder.plan(request)) for request in requests]
    for _, plan in planned:
        check_outputs(plan, {"--output": output})
    summaries = [_carried_out(*one, builder) for one in planned]
    found = [_evaluation(summary) for summary in summaries]
    if not in_full:
        return found
    store = builder.store
    return [
        with_records(one, manifest_of(summary, store), store.cas.get)
        for one, summary in zip(found, summaries, strict=True)
    ]


def _evaluation(summary: Summary) -> Evaluation:
    request = request_of(summary)
    return Evaluation(
        name=agent_name(request) or "solution",
        kabuild=__version__,
        platform=_named(summary.plan.loaded.options.platform),
        request=request,
        results=summary.table,
        gates=summary.plan.gates,
    )


def _carried_out(request: Request, planned: Plan, builder: Builder) -> Summary:
    summary = builder.execute(request, planned)
    if summary.interrupted:
        raise Interrupted(Reason.INTERRUPTED, "interrupted; finished results are kept")
    with suppress(OSError):  # disposable, like all of out/
        remember_keys(planned.loaded.workspace.root / "out", summary)
    for text in _machine_faults(summary):
        builder.sink.emit(Warned(text))
    return summary


def _machine_faults(summary: Summary) -> Iterator[str]:
    """The infrastructure failures, each cause once. Figures exclude them."""
    for cause in causes(summary.settled.values()):
        if cause.first.outcome is Outcome.INFRA:
            more = f" ({cause.more})" if cause.more else ""
            also = f"\n  {cause.others}" if cause.others else ""
            yield f"not judged{more}: {cause.first.message}{also}"


def platform_of(request: Request) -> Mapping[str, str]:
    """The platform of a request, as evaluations name it. Raises KabuildError."""
    return _named(load(request).options.platform)


def _named(platform: Platform) -> Mapping[str, str]:
    return {"name": platform.name, **dict(platform.properties)}


def machine_failed(evaluations: Iterable[Evaluation]) -> bool:
    """Whether an infrastructure failure kept some gate from judging: exit code 36."""
    return any(result.broken for evaluation in evaluations for result in evaluation.results)
