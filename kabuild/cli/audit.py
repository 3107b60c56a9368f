"""``kabuild report --format=audit``: benchmarks and their own checks, as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kabuild.base.errors import Reason, UsageError
from kabuild.builder import Builder
from kabuild.cli.outputs import check_outputs
from kabuild.loading import Loader
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.label import repository_of
from kabuild.model.task_result import TaskResult
from kabuild.report.audit import AuditedBenchmark, AuditedTask, render_audit

SAMPLES = 200


def audit(request: Request, builds: Builder, output: Path | None) -> tuple[str, int]:
    """The page about the tasks of a request, and its exit code.

    Raises KabuildError, also if the request reads ``output``.
    """
    request = replace(request, pick=Pick.VALIDATE, gates=(), keep_going=True)
    planned = builds.plan(request)
    check_outputs(planned, {"--output": output})
    summary = builds.execute(request, planned)
    results: dict[str, list[TaskResult]] = {}
    for result in summary.table:
        name = repository_of(result.label.package)
        if not name:
            what = f"{result.label.short} is not an imported task"
            hint = "name imported tasks: kabuild report --format=audit @kernelbench//..."
            raise UsageError(Reason.BAD_FLAG, what, hint=hint)
        results.setdefault(name, []).append(result)
    loader, options = summary.plan.loaded.loader, summary.plan.loaded.options
    found = [_benchmark(loader, name, of, request.patterns) for name, of in results.items()]
    samples = request.samples or SAMPLES
    return render_audit(found, options.platform.name, samples), int(summary.exit_code)


def _benchmark(
    loader: Loader, name: str, results: list[TaskResult], patterns: tuple[str, ...]
) -> AuditedBenchmark:
    lock = loader.external.lock(name)
    judged = {result.label.package.partition("/")[2]: result for result in results}
    tasks = []
    for task in lock.tasks():
        label = f"@{name}//{task.name}"
        if task.left_out:
            tasks.append(AuditedTask(label, left_out=task.left_out.reason))
        elif task.name in judged:
            tasks.append(AuditedTask(label, task.origin, gates=judged[task.name].gates))
    asked = tuple(text for text in patterns if text.startswith(f"@{name}//"))
    whole = {*lock.names()} == judged.keys()
    return AuditedBenchmark(name, lock.commit, tuple(tasks), asked, whole)
