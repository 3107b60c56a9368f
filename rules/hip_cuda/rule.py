"""HIP for NVIDIA's processors: how a kernel is compiled, on any machine, and what runs it."""

from __future__ import annotations

from kabuild.rule import Artifact, Context, Rule, Toolchain, attr

from ..harness.compilers import (
    BUILDING,
    CPP_COMPILER,
    cpp_compiler,
    declare_device_runner,
    home,
    tool,
)
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.providers import HipInfo

CUDA = "cuda-compiler"
HEADERS = "gnu-c++-headers"
SOURCES = "toolchains/hip"
DRIVER = "hip/cuda/driver/hipcuda.py"
RUNTIME = "libcudart.so.13"
RUNNER = ("runner", "runner_cuda")
DRIVERS = ("common", "cpu/driver", "cuda/driver", "cuda/include", "cuda/host")


def implement(ctx: Context) -> None:
    """Build the runner once; tell tasks how to compile kernels."""
    attrs = ctx.attrs
    python = ctx.toolchain(PYTHON_TOOLCHAIN)
    cuda = tool(ctx, "compiler", CUDA)
    host = tool(ctx, "host", CPP_COMPILER)
    drivers: dict[str, Artifact] = {
        f"hip/{part}": ctx.builtin(f"{SOURCES}/{part}") for part in DRIVERS
    }
    compiler = f"--compiler=nvcc:{home(cuda)}"
    host_compiler = cpp_compiler(host, attrs["program"])
    runtime = ctx.action(
        "runtime",
        argv=(PYTHON, DRIVER, "runtime", "-o", f"out/{RUNTIME}", compiler),
        inputs=drivers,
        outputs=(RUNTIME,),
        mnemonic="Runtime",
        toolchains=(python, cuda),
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    runner = declare_device_runner(ctx, RUNNER, host_compiler, (python, host))
    arch = ctx.platform.get("arch") or attrs["arch"]
    arguments, headers = _headers(ctx)
    ctx.provide(
        HipInfo(
            compile_argv=(
                *(PYTHON, "tools/cuda_compile_gate.py", compiler, f"--arch={arch}"),
                *(f"--host={host_compiler}", *arguments),
            ),
            inputs={**drivers, "tools": ctx.builtin("rules/hip_cuda/tools")},
            toolchains=(python, cuda, host, *headers),
            libraries={RUNTIME: runtime.output(RUNTIME)},
            runner=runner.output("hip-runner"),
        )
    )


def _headers(ctx: Context) -> tuple[tuple[str, ...], tuple[Toolchain, ...]]:
    """The C++ library's headers, which only the pinned clang needs."""
    if ctx.attrs["program"]:
        return (), ()
    headers = tool(ctx, "headers", HEADERS)
    return (f"--headers={home(headers)}",), (headers,)


RULE = Rule(
    kind="hip_cuda",
    doc="HIP for NVIDIA's processors.",
    implement=implement,
    attrs={
        "compiler": attr.label("NVIDIA's compiler.", default="//toolchains/cuda:nvcc"),
        "host": attr.label("What compiles the host's part.", default="//toolchains/zig"),
        "program": attr.string(
            "Where in that toolchain its g++ or clang++ is; empty for the ziglang package.",
            default="",
        ),
        "headers": attr.label(
            "The GNU C++ library's headers, for the ziglang package.",
            default="//toolchains/cuda:c++-headers",
        ),
        "arch": attr.string("The processor, where the platform names none.", default="sm_90"),
    },
    subtargets=("runtime", "runner"),
)
