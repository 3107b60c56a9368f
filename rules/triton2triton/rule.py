"""Triton to Triton: make a Triton kernel faster; the task's own kernel is the baseline."""

from __future__ import annotations

from kabuild.rule import VERDICT_FILE, Action, Artifact, Context, Rule

from ..harness.admission import declare_admission, expert_kernel
from ..harness.gates import (
    PYTHON,
    PYTHON_TOOLCHAIN,
    Runtime,
    Side,
    declare_judging,
    kernel_name,
    portable,
)
from ..harness.hip import check_kernel_suffix
from ..harness.signature import read_signature
from ..harness.solution import Bench, Compiling, declare_solution, trials
from ..harness.task import ADMISSION, GATES, RETENTION, SUBTARGETS, TASK_ATTRS, check_task

MODULE = "kernel.py"
INTERPRETED_ELEMENTS = 4096


def implement(ctx: Context) -> None:
    """Solution, normalise and check both sides, judge, score."""
    check_kernel_suffix(ctx, ".py")
    own: Artifact = ctx.attrs["kernel"]
    baseline = _declare_compile(ctx, "baseline.compile", own)
    runtime = Runtime(default_elements=INTERPRETED_ELEMENTS)
    theirs = _side(ctx, "baseline", baseline)
    bench = Bench("triton", "python", _compiling(ctx), theirs, runtime)
    for trial in trials(ctx):
        solution = declare_solution(trial, bench)
        kernel = solution.output(f"solution/{kernel_name(trial)}")
        candidate = _declare_compile(trial, "compile", kernel)
        declare_judging(trial, candidate, _side(trial, "candidate", candidate), theirs, runtime)
    expert = expert_kernel(ctx)
    compiled = _declare_compile(ctx, "expert.compile", expert) if expert else None
    declare_admission(ctx, theirs, _side(ctx, "candidate", compiled) if compiled else None, runtime)


def _declare_compile(ctx: Context, part: str, kernel: Artifact) -> Action:
    """The module without comments and formatting, so that these change nothing further on."""
    is_gate = part == "compile"
    declare = ctx.gate if is_gate else ctx.action
    compiling = _compiling(ctx)
    return declare(
        part,
        argv=compiling.argv,
        inputs={**compiling.inputs, f"candidate/{kernel_name(ctx)}": kernel},
        outputs=(MODULE,) if is_gate else (VERDICT_FILE, MODULE),
        mnemonic="Compile",
        toolchains=compiling.toolchains,
        platform=portable(ctx.platform),
    )


def _compiling(ctx: Context) -> Compiling:
    argv = (
        PYTHON,
        "tools/compile.py",
        f"--source=candidate/{kernel_name(ctx)}",
        f"--entry={ctx.attrs['entry']}",
        "--signature=signature.json",
        "--out=out",
    )
    inputs: dict[str, Artifact] = {
        "tools": ctx.builtin("rules/triton2triton/tools"),
        "signature.json": ctx.literal(read_signature(ctx.attrs).to_json()),
    }
    return Compiling(argv, inputs, (ctx.toolchain(PYTHON_TOOLCHAIN),), MODULE)


def _side(ctx: Context, role: str, compiled: Action) -> Side:
    path = f"{role}/{MODULE}"
    return Side(
        {"abi": "python", "path": path, "entry": ctx.attrs["entry"]},
        {path: compiled.output(MODULE)},
    )


RULE = Rule(
    kind="triton2triton",
    doc="Make a Triton kernel faster.",
    implement=implement,
    attrs=TASK_ATTRS,
    subtargets=(*SUBTARGETS, "baseline.compile"),
    gates=GATES,
    on_request=(*ADMISSION, *RETENTION),
    check=check_task,
)
