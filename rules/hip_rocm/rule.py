"""HIP for AMD's processors: how a kernel is compiled, on any machine, and what runs it."""

from __future__ import annotations

from kabuild.rule import Artifact, Context, Rule, Toolchain, attr

from ..harness import launch_filter
from ..harness.compilers import (
    CPP_COMPILER,
    HIP_COMPILE_GATE,
    RUNNER_ALONE,
    architecture,
    architectures,
    cpp_compiler,
    declare_runner,
    hip_driver,
    home,
    tool,
)
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN
from ..harness.judge_files import verdict_files
from ..harness.providers import HipInfo

ROCM = "rocm"
DRIVER = "libamdhip64.so"
# What all platforms' runners share, what GPUs' share, and what names HIP's functions.
RUNNER = (
    "runner",
    *(
        f"runner_cuda/{part}"
        for part in (
            "clock.cpp",
            "driver.h",
            "gate.cpp",
            "hiding.cpp",
            "launches.cpp",
            "mapping.cpp",
        )
    ),
    "runner_rocm",
)
ALONE = (
    *RUNNER_ALONE,
    *(f"runner_cuda/{part}" for part in ("clock.cpp", "driver.h")),
    "runner_rocm",
)
"""What calls a kernel once and by itself, for a profiler."""


def implement(ctx: Context) -> None:
    """Build the runner once; tell tasks how to compile kernels."""
    python = ctx.toolchain(PYTHON_TOOLCHAIN)
    clang = tool(ctx, "host", CPP_COMPILER)
    compiling = cpp_compiler(clang, "")
    runner = declare_runner(ctx, RUNNER, compiling, (python, clang))
    alone = declare_runner(ctx, ALONE, compiling, (python, clang), "alone")
    filtering = launch_filter.declare(ctx, "rocm", DRIVER, "", "launch_filter")
    compiler, tools = _compiler(ctx, clang)
    inputs: dict[str, Artifact] = {
        **hip_driver(ctx, "rocm", "include", "rocm/host"),
        **architectures(ctx),
    }
    ctx.provide(
        HipInfo(
            compile_argv=(
                *(PYTHON, HIP_COMPILE_GATE, "rocm", *compiler),
                f"--arch={architecture(ctx)}",
            ),
            inputs={**inputs, **verdict_files(ctx)},
            toolchains=(python, *tools),
            libraries={},
            runner=runner.output("hip-runner"),
            launch_filter=filtering,
            alone=alone.output("hip-runner"),
        )
    )


def _compiler(ctx: Context, clang: Toolchain) -> tuple[tuple[str, ...], tuple[Toolchain, ...]]:
    """What the gate learns about the compiler, and the toolchains needed for that."""
    if ctx.attrs["rocm"] is not None:
        installed = tool(ctx, "rocm", ROCM)
        return (f"--compiler=rocm:{home(installed)}",), (installed,)
    library = tool(ctx, "library", "rocm-device-library")
    arguments = (f"--compiler=zig:{home(clang)}", f"--libraries={home(library)}/backends/amd")
    return arguments, (clang, library)


RULE = Rule(
    kind="hip_rocm",
    doc="HIP for AMD's processors.",
    implement=implement,
    attrs={
        "host": attr.label(
            "Clang for the host, and for the device where there is no ROCm.",
            default="//toolchains/zig",
        ),
        "library": attr.label(
            "AMD's headers and device bitcode, where there is no ROCm.",
            default="//toolchains/rocm:device-library",
        ),
        "rocm": attr.label("An adopted installation of ROCm, used instead.", default=None),
        "arch": attr.string("The processor, where the platform names none.", default="gfx942"),
    },
    subtargets=("runner", "alone", "launch_filter"),
)
RULES = (RULE, launch_filter.rule("rocm", DRIVER))
