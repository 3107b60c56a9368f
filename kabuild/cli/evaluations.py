"""Evaluations for the commands that show them: executed now, or read from files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import ExitCode, Interrupted, Reason, UsageError
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
from kabuild.report.failures import render_causes
from kabuild.store import Store


@dataclass(frozen=True)
class Evaluated:
    """The evaluations of several requests, in their order.

    ``failed`` says whether an action of them failed without a verdict, such as one whose solution
    is missing: what depends on it was not judged, and the machine is not at fault.
    """

    evaluations: tuple[Evaluation, ...]
    failed: bool


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
) -> Evaluated:
    """Execute requests; cached results are reused. ``in_full`` adds their records.

    Warns of each cause that actions broke of, once.

    ``output`` is the file of ``--output``, which no request may read.

    All are planned before anything runs, so that a mistake in the last is found at once. Raises
    KabuildError, and Interrupted if the user stopped it: half a run is not an evaluation.
    """
    planned = [(request, builder.plan(request)) for request in requests]
    for _, plan in planned:
        check_outputs(plan, {"--output": output})
    summaries = [_carried_out(*one, builder) for one in planned]
    causes = [text for one in summaries for text in render_causes(one.settled.values())]
    for text in dict.fromkeys(causes):
        builder.sink.emit(Warned(text))
    store = builder.store if in_full else None
    outcomes = {item.outcome for one in summaries for item in one.settled.values()}
    found = tuple(_evaluation(summary, store) for summary in summaries)
    return Evaluated(found, failed=Outcome.FAILED in outcomes)


def _evaluation(summary: Summary, store: Store | None) -> Evaluation:
    """The evaluation; with a ``store``, also its records."""
    request = request_of(summary)
    made = Evaluation(
        name=agent_name(request) or "solution",
        kabuild=__version__,
        platform=_named(summary.plan.loaded.options.platform),
        request=request,
        results=summary.table,
        gates=summary.plan.gates,
    )
    return with_records(made, manifest_of(summary, store), store.cas.get) if store else made


def _carried_out(request: Request, planned: Plan, builder: Builder) -> Summary:
    summary = builder.execute(request, planned)
    if summary.interrupted:
        raise Interrupted(Reason.INTERRUPTED, "interrupted; finished results are kept")
    with suppress(OSError):  # disposable, like all of out/
        remember_keys(planned.loaded.workspace.root / "out", summary)
    return summary


def platform_of(request: Request) -> Mapping[str, str]:
    """The platform of a request, as evaluations name it. Raises KabuildError."""
    return _named(load(request).options.platform)


def _named(platform: Platform) -> Mapping[str, str]:
    return {"name": platform.name, **dict(platform.properties)}


def exit_code(evaluations: Iterable[Evaluation], *, failed: bool) -> ExitCode:
    """The exit code of a command that shows evaluations, whatever their verdicts are.

    The machine decides first, then whether an action of this build ``failed`` without a verdict.
    """
    if any(result.broken for evaluation in evaluations for result in evaluation.results):
        return ExitCode.ENVIRONMENT
    return ExitCode.BUILD_FAILED if failed else ExitCode.OK
