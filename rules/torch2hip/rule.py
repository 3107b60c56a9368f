"""PyTorch to HIP: write a HIP kernel for a PyTorch operation, which is the baseline."""

from __future__ import annotations

from kabuild.rule import Context, Rule

from ..harness.admission import declare_admission
from ..harness.gates import Side, declare_judging, declare_solution, kernel_name
from ..harness.hip import (
    HIP_ATTRS,
    check_kernel_suffix,
    declare_compile,
    hip_expert,
    hip_runtime,
    hip_side,
)
from ..harness.task import ADMISSION, GATES, SUBTARGETS, TASK_ATTRS, check_task


def implement(ctx: Context) -> None:
    """Solution, compile it, judge it against PyTorch, score."""
    check_kernel_suffix(ctx, ".hip")
    solution = declare_solution(ctx)
    candidate = declare_compile(ctx, "compile", solution.output(f"solution/{kernel_name(ctx)}"))
    baseline = Side({"abi": "torch", "path": "task/reference.py", "entry": "baseline"}, {})
    runtime = hip_runtime(ctx)
    declare_judging(ctx, candidate, hip_side(ctx, "candidate", candidate), baseline, runtime)
    declare_admission(ctx, baseline, hip_expert(ctx), runtime)


RULE = Rule(
    kind="torch2hip",
    doc="Write a HIP kernel for a PyTorch operation.",
    implement=implement,
    attrs={**TASK_ATTRS, **HIP_ATTRS},
    subtargets=SUBTARGETS,
    gates=GATES,
    on_request=ADMISSION,
    check=check_task,
)
