"""HIP on the host's CPU: the runtime, the native runner, and how a kernel is compiled."""

from __future__ import annotations

from kabuild.rule import Context, Rule, attr

from ..harness import launch_filter
from ..harness.compilers import (
    BUILDING,
    CPP_COMPILER,
    HIP_COMPILE_GATE,
    HIP_DRIVER,
    cpp_compiler,
    declare_runner,
    hip_driver,
    tool,
)
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.judge_files import verdict_files
from ..harness.providers import Counting, HipInfo, Sanitizing

SOURCES = "toolchains/hip"
RUNNER = ("runner", "runner_host")
COUNTING = "hip/cpu/counting"
COUNTED_KERNEL = ("counted_kernel.py", "whole_copies.py", "branches.py", "arithmetic.py")
"""What compiles a kernel whose accesses are counted, besides the usual driver."""


def implement(ctx: Context) -> None:
    """Build the runtime and the runner once; tell tasks how to compile kernels."""
    attrs = ctx.attrs
    compiling = tool(ctx, "compiler", CPP_COMPILER)
    toolchains = (ctx.toolchain(PYTHON_TOOLCHAIN), compiling)
    host = cpp_compiler(compiling, attrs["program"])
    compiler = f"--compiler={host}"
    driver = hip_driver(ctx, "cpu", "include")
    runtime = ctx.action(
        "runtime",
        argv=(PYTHON, HIP_DRIVER, "cpu", "runtime", "-o", "out/libhipcpu.so", compiler),
        inputs={**driver, "hip/cpu/runtime": ctx.builtin(f"{SOURCES}/cpu/runtime")},
        outputs=("libhipcpu.so",),
        mnemonic="Runtime",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    checking = ctx.action(
        "sanitize.runtime",
        argv=(
            *(PYTHON, HIP_DRIVER, "cpu", "runtime", "--sanitize"),
            *("-o", "out/libhipcpu.so", compiler),
        ),
        inputs={
            **driver,
            "hip/cpu/runtime": ctx.builtin(f"{SOURCES}/cpu/runtime"),
            "hip/cpu/sanitizer": ctx.builtin(f"{SOURCES}/cpu/sanitizer"),
        },
        outputs=("libhipcpu.so",),
        mnemonic="Runtime",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    counting = ctx.action(
        "analyze.runtime",
        argv=(PYTHON, f"{COUNTING}/counting_runtime.py", "-o", "out/libhipcpu.so", compiler),
        inputs={
            **driver,
            "hip/cpu/runtime": ctx.builtin(f"{SOURCES}/cpu/runtime"),
            "hip/cpu/sanitizer": ctx.builtin(f"{SOURCES}/cpu/sanitizer"),
            COUNTING: ctx.builtin(f"{SOURCES}/cpu/counting"),
        },
        outputs=("libhipcpu.so",),
        mnemonic="Runtime",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    runner = declare_runner(ctx, RUNNER, host, toolchains)
    compile_argv = (PYTHON, HIP_COMPILE_GATE, "cpu", compiler, f"--wave={attrs['wave']}")
    sanitizing = Sanitizing(
        compile_argv=(*compile_argv, "--sanitize"),
        libraries={"libhipcpu.so": checking.output("libhipcpu.so")},
        runner=runner.output("hip-runner"),
        outputs=("kernel.places.json",),
    )
    counted = Counting(
        compile_argv=(
            *(PYTHON, f"{COUNTING}/{COUNTED_KERNEL[0]}"),
            *(compiler, f"--wave={attrs['wave']}"),
        ),
        inputs={
            **driver,
            **verdict_files(ctx),
            **{
                f"{COUNTING}/{name}": ctx.builtin(f"{SOURCES}/cpu/counting/{name}")
                for name in COUNTED_KERNEL
            },
        },
        libraries={"libhipcpu.so": counting.output("libhipcpu.so")},
        runner=runner.output("hip-runner"),
        outputs=("kernel.places.json",),
    )
    ctx.provide(
        HipInfo(
            compile_argv=compile_argv,
            inputs={**driver, **verdict_files(ctx)},
            toolchains=toolchains,
            libraries={"libhipcpu.so": runtime.output("libhipcpu.so")},
            runner=runner.output("hip-runner"),
            # Only the pinned clang can instrument kernels.
            sanitizing=None if attrs["program"] else sanitizing,
            counting=None if attrs["program"] else counted,
        )
    )


RULE = Rule(
    kind="hip_cpu",
    doc="HIP on the host's CPU.",
    implement=implement,
    attrs={
        "compiler": attr.label("A toolchain of role c++-compiler.", default="//toolchains/zig"),
        "program": attr.string(
            "Where in the toolchain its g++ or clang++ is; empty for the ziglang package.",
            default="",
        ),
        "wave": attr.string("Threads of a wave.", default="64", values=("32", "64")),
    },
    subtargets=("runtime", "runner", "sanitize.runtime", "analyze.runtime"),
)
RULES = (RULE, launch_filter.absent("cpu"))
