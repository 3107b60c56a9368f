"""HIP on the host's CPU: the runtime, the native runner, and how a kernel is compiled."""

from __future__ import annotations

from kabuild.rule import Artifact, Context, Limits, Rule, attr

from ..harness.compilers import CPP_COMPILER, cpp_compiler, tool
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.providers import HipInfo, Sanitizing

SOURCES = "toolchains/hip"
DRIVER = "hip/cpu/driver/hipcpu.py"
RUNNER = ("runner", "runner_host")
BUILDING = Limits(timeout=600.0, memory=6 << 30, processes=128, scratch=2 << 30)


def implement(ctx: Context) -> None:
    """Build the runtime and the runner once; tell tasks how to compile kernels."""
    attrs = ctx.attrs
    compiling = tool(ctx, "compiler", CPP_COMPILER)
    toolchains = (ctx.toolchain(PYTHON_TOOLCHAIN), compiling)
    compiler = f"--compiler={cpp_compiler(compiling, attrs['program'])}"
    driver: dict[str, Artifact] = {
        "hip/common": ctx.builtin(f"{SOURCES}/common"),
        "hip/cpu/driver": ctx.builtin(f"{SOURCES}/cpu/driver"),
        "hip/cpu/include": ctx.builtin(f"{SOURCES}/cpu/include"),
        "hip/include": ctx.builtin(f"{SOURCES}/include"),
    }
    runtime = ctx.action(
        "runtime",
        argv=(PYTHON, DRIVER, "runtime", "-o", "out/libhipcpu.so", compiler),
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
            *(PYTHON, DRIVER, "runtime", "--sanitize"),
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
    runner = ctx.action(
        "runner",
        argv=(PYTHON, DRIVER, "program", *RUNNER, "-o", "out/hip-runner", compiler),
        inputs={**driver, **{part: ctx.builtin(f"rules/harness/tools/{part}") for part in RUNNER}},
        outputs=("hip-runner",),
        mnemonic="Runner",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    compile_argv = (PYTHON, "tools/compile_gate.py", compiler, f"--wave={attrs['wave']}")
    sanitizing = Sanitizing(
        compile_argv=(*compile_argv, "--sanitize"),
        libraries={"libhipcpu.so": checking.output("libhipcpu.so")},
        runner=runner.output("hip-runner"),
        outputs=("kernel.places.json",),
    )
    ctx.provide(
        HipInfo(
            compile_argv=compile_argv,
            inputs={**driver, "tools": ctx.builtin("rules/hip_cpu/tools")},
            toolchains=toolchains,
            libraries={"libhipcpu.so": runtime.output("libhipcpu.so")},
            runner=runner.output("hip-runner"),
            # Only the pinned clang can instrument kernels.
            sanitizing=None if attrs["program"] else sanitizing,
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
    subtargets=("runtime", "runner", "sanitize.runtime"),
)
