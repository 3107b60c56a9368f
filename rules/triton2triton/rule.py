"""Triton to Triton: make a Triton kernel faster; the task's own kernel is the baseline."""

from __future__ import annotations

from kabuild.rule import (
    Action,
    Artifact,
    Context,
    Rule,
    attr,
)

from ..harness.admission import declare_admission, expert_kernel
from ..harness.ahead import ahead_inputs, gpu
from ..harness.analyze import ANALYZE, declare_analyze_interpreted
from ..harness.counters import COUNTERS, declare_counters
from ..harness.gates import (
    GATES,
    PYTHON,
    PYTHON_TOOLCHAIN,
    Runtime,
    Side,
    declare_judging,
    kernel_name,
)
from ..harness.hip import check_kernel_suffix, launch_filter_file
from ..harness.judge_files import verdict_files
from ..harness.modules import LINES, MODULE, compile_module, side_of_module
from ..harness.providers import LaunchFilterInfo
from ..harness.signature import read_signature
from ..harness.solution import (
    Bench,
    Compiling,
    Counted,
    agent_counts,
    declare_solution,
    trials,
)
from ..harness.task import SUBTARGETS, TASK_ATTRS, check_task
from ..harness.terms import gates

INTERPRETED_ELEMENTS = 4096


def implement(ctx: Context) -> None:
    """Solution, normalise and check both sides, judge, score."""
    check_kernel_suffix(ctx, ".py")
    own: Artifact = ctx.attrs["kernel"]
    baseline = _declare_compile(ctx, "baseline.compile", own)
    runtime = _runtime(ctx)
    theirs = _side(ctx, "baseline", baseline)
    # What an agent asks for is read only: its session has no sandbox to run it in.
    bench = Bench(
        "triton", "python", _reading(ctx), theirs, runtime, counted=_counted(ctx, runtime)
    )
    for trial in trials(ctx):
        kernel = declare_solution(trial, bench)
        candidate = _declare_compile(trial, gates.COMPILE, kernel, requires=(baseline,))
        side, lines = _side(trial, "candidate", candidate), candidate.output(LINES)
        declare_judging(trial, candidate, side, theirs, runtime)
        declare_analyze_interpreted(trial, candidate, side, runtime, lines)
        declare_counters(trial, candidate, side)
    expert = expert_kernel(ctx)
    compiled = _declare_compile(ctx, "expert.compile", expert) if expert else None
    declare_admission(ctx, theirs, _side(ctx, "candidate", compiled) if compiled else None, runtime)


def _declare_compile(
    ctx: Context, part: str, kernel: Artifact, *, requires: tuple[Action, ...] = ()
) -> Action:
    ahead = bool(gpu(ctx))
    return compile_module(ctx, part, kernel, _compiling(ctx), ahead=ahead, requires=requires)


def _runtime(ctx: Context) -> Runtime:
    """On devices, what decides which kernels run."""
    found = ctx.provider(ctx.attrs["launch_filter"], LaunchFilterInfo)
    files = launch_filter_file(found.library)
    return Runtime(files, launch_filter="".join(files), default_elements=INTERPRETED_ELEMENTS)


def _counted(ctx: Context, runtime: Runtime) -> Counted | None:
    """How a check counts accesses: by the interpreter; for a GPU only if the agent asks for it."""
    if gpu(ctx):
        if agent_counts(ctx) is None:
            return None
        runtime = Runtime({}, default_elements=INTERPRETED_ELEMENTS)
    return Counted(_reading(ctx), (LINES,), runtime, {"file": kernel_name(ctx)})


def _compiling(ctx: Context) -> Compiling:
    """How a module is compiled: on a GPU's platform, its kernels are."""
    reading = _reading(ctx)
    if not gpu(ctx):
        return reading
    inputs = {**reading.inputs, **ahead_inputs(ctx, {"entry": ctx.attrs["entry"]})}
    return Compiling((*reading.argv, "--ahead=ahead.json"), inputs, reading.toolchains, MODULE)


def _reading(ctx: Context) -> Compiling:
    """How a module is read, checked and normalised."""
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
        **verdict_files(ctx),
        "signature.json": ctx.literal(read_signature(ctx.attrs).to_json()),
    }
    return Compiling(argv, inputs, (ctx.toolchain(PYTHON_TOOLCHAIN),), MODULE)


def _side(ctx: Context, role: str, compiled: Action) -> Side:
    program = {"abi": "python", "entry": ctx.attrs["entry"]}
    return side_of_module(role, program, compiled, ahead=bool(gpu(ctx)))


RULE = Rule(
    kind="triton2triton",
    doc="Make a Triton kernel faster.",
    implement=implement,
    attrs={
        **TASK_ATTRS,
        # Not the targets that compile HIP, which take compilers that no Triton task needs.
        "launch_filter": attr.label(
            "What decides which kernels run.", default="//toolchains/hip:{platform}_launch_filter"
        ),
    },
    subtargets=(*SUBTARGETS, "baseline.compile"),
    gates=(*GATES, ANALYZE, COUNTERS),
    check=check_task,
)
