"""HIP for AMD's processors: how a kernel is compiled, on any machine, and what runs it."""

from __future__ import annotations

from kabuild.rule import AnalysisError, Artifact, Context, Reason, Rule, Toolchain, attr

from ..harness.compilers import CPP_COMPILER, cpp_compiler, declare_device_runner, home, tool
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN
from ..harness.providers import HipInfo

ROCM = "rocm"
SOURCES = "toolchains/hip"
# What all platforms' runners share, what GPUs' share, and what names HIP's functions.
RUNNER = (
    *("runner", "runner_cuda/clock.cpp", "runner_cuda/mapping.cpp", "runner_cuda/driver.h"),
    "runner_rocm",
)
DRIVERS = ("common", "include", "cpu/driver", "rocm/driver", "rocm/include", "rocm/host")
PROCESSORS = (
    *("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"),
    *("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"),
)
"""Those whose occupancy the compile gate can tell: ``architectures.py`` of its driver."""


def implement(ctx: Context) -> None:
    """Build the runner once; tell tasks how to compile kernels."""
    python = ctx.toolchain(PYTHON_TOOLCHAIN)
    clang = tool(ctx, "host", CPP_COMPILER)
    compiling = cpp_compiler(clang, "")
    runner = declare_device_runner(ctx, RUNNER, compiling, (python, clang))
    compiler, tools = _compiler(ctx, clang)
    inputs: dict[str, Artifact] = {
        f"hip/{part}": ctx.builtin(f"{SOURCES}/{part}") for part in DRIVERS
    }
    ctx.provide(
        HipInfo(
            compile_argv=(
                PYTHON,
                "tools/rocm_compile_gate.py",
                *compiler,
                f"--arch={_processor(ctx)}",
            ),
            inputs={**inputs, "tools": ctx.builtin("rules/hip_rocm/tools")},
            toolchains=(python, *tools),
            libraries={},
            runner=runner.output("hip-runner"),
        )
    )


def _processor(ctx: Context) -> str:
    """The processor to compile for. Raises AnalysisError(BAD_ATTRIBUTE) for an unknown one."""
    name: str = ctx.platform.get("arch") or ctx.attrs["arch"]
    if name not in PROCESSORS:
        raise AnalysisError(
            Reason.BAD_ATTRIBUTE,
            f"{ctx.label.short} does not compile for '{name}'",
            position=ctx.target.position,
            hint=f"it compiles for {', '.join(PROCESSORS)}",
        )
    return name


def _compiler(ctx: Context, clang: Toolchain) -> tuple[tuple[str, ...], tuple[Toolchain, ...]]:
    """What the gate is told of the compiler, and the toolchains that this takes."""
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
    subtargets=("runner",),
)
