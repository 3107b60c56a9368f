"""PyTorch to HIP: write a HIP kernel for a PyTorch operation, which is the baseline."""

from __future__ import annotations

from kabuild.rule import Context, Rule

from ..harness.admission import declare_admission
from ..harness.analyze import ANALYZE, ANALYZE_COMPILE, declare_analyze
from ..harness.counters import COUNTERS, declare_counters
from ..harness.gates import GATES, Side, declare_choice, declare_judging
from ..harness.hip import (
    HIP_ATTRS,
    check_kernel_suffix,
    declare_compile,
    hip_bench,
    hip_expert,
    hip_runtime,
    hip_side,
)
from ..harness.judge_files import BASELINE
from ..harness.sanitize import SANITIZE, SANITIZE_COMPILE, declare_sanitize
from ..harness.solution import declare_solution, trials
from ..harness.task import SUBTARGETS, TASK_ATTRS, check_task
from ..harness.terms import gates


def implement(ctx: Context) -> None:
    """Solution, compile it, judge it against PyTorch, score."""
    check_kernel_suffix(ctx, ".hip")
    baseline = Side({"abi": "torch", "path": "task/reference.py", "entry": "baseline"}, {})
    runtime = hip_runtime(ctx)
    chosen = declare_choice(ctx, baseline, runtime)
    for trial in trials(ctx):
        kernel = declare_solution(trial, hip_bench(trial, baseline))
        candidate = declare_compile(trial, gates.COMPILE, kernel)
        ours = hip_side(trial, "candidate", candidate)
        declare_judging(trial, candidate, ours, baseline, runtime, chosen=chosen)
        declare_sanitize(trial, candidate, kernel)
        declare_analyze(trial, candidate, kernel)
        declare_counters(trial, candidate, ours)
    declare_admission(ctx, baseline, hip_expert(ctx), runtime)


RULE = Rule(
    kind="torch2hip",
    doc="Write a HIP kernel for a PyTorch operation.",
    implement=implement,
    attrs={**TASK_ATTRS, **HIP_ATTRS},
    subtargets=(*SUBTARGETS, SANITIZE_COMPILE, ANALYZE_COMPILE, BASELINE),
    gates=(*GATES, SANITIZE, ANALYZE, COUNTERS),
    check=check_task,
)
