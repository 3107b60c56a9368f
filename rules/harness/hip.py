"""Code shared by the families whose candidates are HIP kernels."""

from __future__ import annotations

from typing import Any

from kabuild.rule import (
    VERDICT_FILE,
    Action,
    AnalysisError,
    Artifact,
    Context,
    Limits,
    Name,
    Output,
    Reason,
    attr,
)

from .admission import expert_kernel
from .gates import Judging, Runtime, Side, kernel_name, portable
from .providers import Counting, HipInfo, Sanitizing
from .signature import read_signature
from .solution import NO_SOLUTION, Bench, Compiling, Counted, agent_counts
from .terms import gates

HIP_ATTRS = {
    "hip": attr.label("How HIP is compiled and run.", default="//toolchains/hip:{platform}"),
}
LIBRARY = "kernel.so"
# The driver's own limits, which blame the source, apply first, even on a busy machine.
COMPILING = Limits(timeout=1200.0, memory=4 << 30, processes=128, scratch=1 << 30)


def hip_info(ctx: Context) -> HipInfo:
    """HIP on the platform of this build."""
    return ctx.provider(ctx.attrs["hip"], HipInfo)


def declare_compile(
    ctx: Context, part: str, kernel: Artifact, *, requires: tuple[Action, ...] = ()
) -> Action:
    """Compile one kernel. Equal kernels have equal keys, on either side.

    For a task's own kernel this is a plain action, not a gate: if it fails, the task is broken,
    and no candidate that ``requires`` it is judged.
    """
    compiling = hip_compiling(ctx)
    inputs = {**compiling.inputs, f"candidate/{kernel_name(ctx)}": kernel}
    declare = ctx.gate if part == gates.COMPILE else ctx.action
    outputs = (LIBRARY,) if part == gates.COMPILE else (VERDICT_FILE, LIBRARY)
    return declare(
        part,
        argv=compiling.argv,
        inputs=inputs,
        outputs=outputs,
        mnemonic="Compile",
        toolchains=compiling.toolchains,
        limits=COMPILING,
        platform=portable(ctx.platform),
        names=(Name(kernel_name(ctx), kernel),),
        advice=NO_SOLUTION,
        requires=requires,
    )


def hip_compiling(ctx: Context) -> Compiling:
    """How the kernels of this task are compiled."""
    hip = hip_info(ctx)
    argv = (*hip.compile_argv, *kernel_arguments(ctx))
    return Compiling(argv, hip.inputs, hip.toolchains, LIBRARY)


def kernel_arguments(ctx: Context) -> tuple[str, ...]:
    """The compiler arguments for the kernel."""
    entries = (f"--entry={ctx.attrs['entry']}_{dtype}" for dtype in ctx.attrs["dtypes"])
    return (f"--source=candidate/{kernel_name(ctx)}", *entries)


def hip_bench(ctx: Context, baseline: Side) -> Bench:
    """The bench for checks of HIP kernels."""
    return Bench(
        "hip", "hip", hip_compiling(ctx), baseline, hip_runtime(ctx), counted=_counted(ctx)
    )


def _counted(ctx: Context) -> Counted | None:
    """How the bench's checks count accesses; None if neither platform nor agent can."""
    own = hip_info(ctx)
    hip = own if own.counting else agent_counts(ctx)
    if hip is None or hip.counting is None:
        return None
    counting = hip.counting
    argv = (*counting.compile_argv, f"--source=candidate/{kernel_name(ctx)}")
    compiling = Compiling(argv, counting.inputs, hip.toolchains, LIBRARY)
    runtime = hip_runtime(ctx, counting)
    arch = ctx.platform.get("arch")
    ranks = arch if own.counting is None and "fitted" in ctx.peaks.get(arch, {}) else ""
    return Counted(compiling, counting.outputs, runtime, counting_policy(ctx), ranks)


def counting_policy(ctx: Context) -> dict[str, Any]:
    """The analyze gate's policy for HIP kernels: the GPUs whose time it models."""
    return {"peaks": {arch: dict(peaks) for arch, peaks in ctx.peaks.items()}}


def hip_side(ctx: Context, role: str, compiled: Action) -> Side:
    """A compiled kernel as one of the two sides; ``role`` is its directory."""
    path = f"{role}/{LIBRARY}"
    return Side(
        {"abi": "hip", "path": path, "entry": ctx.attrs["entry"]},
        {path: compiled.output(LIBRARY)},
        compiled.names,
    )


def hip_expert(ctx: Context) -> Side | None:
    """The task's expert, compiled, as a candidate; None if it has none."""
    kernel = expert_kernel(ctx)
    if kernel is None:
        return None
    return hip_side(ctx, "candidate", declare_compile(ctx, "expert.compile", kernel))


def hip_runtime(ctx: Context, watching: Sanitizing | Counting | None = None) -> Runtime:
    """The libraries and the native runner of HIP kernels, or those of ``watching``."""
    hip = hip_info(ctx)
    needed = watching or hip
    libraries = {f"runtime/{name}": output for name, output in needed.libraries.items()}
    filtering = launch_filter_file(hip.launch_filter) if watching is None else {}
    return Runtime(
        files={**libraries, "runner/hip-runner": needed.runner, **filtering},
        libraries=tuple(sorted(libraries)),
        runner="runner/hip-runner",
        launch_filter="".join(filtering),
    )


def hip_alone(ctx: Context) -> Runtime:
    """The libraries of HIP kernels, and the native program that calls one once, for a profiler.

    Raises AnalysisError for a platform that lacks the program.
    """
    hip = hip_info(ctx)
    if hip.alone is None:
        raise AnalysisError(
            Reason.BAD_RULE,
            f"{ctx.platform.name} has a profiler, but its HIP has no program to run a kernel alone",
            position=ctx.target.position,
            hint="its rule provides HipInfo(alone=...)",
        )
    libraries = {f"runtime/{name}": output for name, output in hip.libraries.items()}
    return Runtime(
        files={**libraries, "runner/hip-runner": hip.alone},
        libraries=tuple(sorted(libraries)),
        runner="runner/hip-runner",
    )


def hip_judging(ctx: Context, watching: Sanitizing | Counting, built: Action) -> Judging:
    """The judging of a second build of the candidate; the baseline needs no second build."""
    side = hip_side(ctx, "candidate", built)
    files = {f"candidate/{name}": built.output(name) for name in watching.outputs}
    files["candidate/compile.json"] = built.output(VERDICT_FILE)
    candidate = Side(side.program, {**side.files, **files}, side.names)
    runtime = hip_runtime(ctx, watching)
    return Judging(ctx, read_signature(ctx.attrs), candidate, candidate, runtime)


def launch_filter_file(library: Output | None) -> dict[str, Artifact]:
    """The launch filter by its path; empty if there is none."""
    return {"runner/launch-filter.so": library} if library else {}


def check_kernel_suffix(ctx: Context, suffix: str) -> None:
    """Refuse a kernel file of another language. Raises AnalysisError."""
    if not kernel_name(ctx).endswith(suffix):
        raise AnalysisError(
            Reason.BAD_ATTRIBUTE,
            f"{ctx.label.short}: kernel '{kernel_name(ctx)}' is not a {suffix} file",
            position=ctx.target.position,
        )
