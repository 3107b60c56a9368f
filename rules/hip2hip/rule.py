"""HIP to HIP: make a HIP kernel faster; the task's own kernel is the baseline."""

from __future__ import annotations

from kabuild.rule import Context, Rule, Source

from ..harness.admission import declare_admission
from ..harness.analyze import ANALYZE, ANALYZE_COMPILE, declare_analyze
from ..harness.counters import COUNTERS, declare_counters
from ..harness.gates import GATES, declare_judging
from ..harness.hip import (
    HIP_ATTRS,
    check_kernel_suffix,
    declare_compile,
    hip_bench,
    hip_expert,
    hip_runtime,
    hip_side,
)
from ..harness.sanitize import SANITIZE, SANITIZE_COMPILE, declare_sanitize
from ..harness.solution import declare_solution, trials
from ..harness.task import SUBTARGETS, TASK_ATTRS, check_task
from ..harness.terms import gates


def implement(ctx: Context) -> None:
    """Solution, compile both sides, judge, score."""
    check_kernel_suffix(ctx, ".hip")
    own: Source = ctx.attrs["kernel"]
    baseline = declare_compile(ctx, "baseline.compile", own)
    theirs, runtime = hip_side(ctx, "baseline", baseline), hip_runtime(ctx)
    for trial in trials(ctx):
        kernel = declare_solution(trial, hip_bench(trial, theirs))
        candidate = declare_compile(trial, gates.COMPILE, kernel, requires=(baseline,))
        ours = hip_side(trial, "candidate", candidate)
        declare_judging(trial, candidate, ours, theirs, runtime)
        declare_sanitize(trial, candidate, kernel)
        declare_analyze(trial, candidate, kernel)
        declare_counters(trial, candidate, ours)
    declare_admission(ctx, theirs, hip_expert(ctx), runtime)


RULE = Rule(
    kind="hip2hip",
    doc="Make a HIP kernel faster.",
    implement=implement,
    attrs={**TASK_ATTRS, **HIP_ATTRS},
    subtargets=(*SUBTARGETS, SANITIZE_COMPILE, ANALYZE_COMPILE, "baseline.compile"),
    gates=(*GATES, SANITIZE, ANALYZE, COUNTERS),
    check=check_task,
)
