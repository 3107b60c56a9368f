"""HIP for NVIDIA's processors: how a kernel is compiled, on any machine, and what runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kabuild.rule import (
    AnalysisError,
    Artifact,
    Context,
    Output,
    Reason,
    Rule,
    Toolchain,
    attr,
)

from ..harness.compilers import (
    BUILDING,
    CPP_COMPILER,
    cpp_compiler,
    declare_device_runner,
    home,
    tool,
    tool_here,
)
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.providers import HipInfo, Sanitizing

CUDA = "cuda-compiler"
SANITIZER = "cuda-sanitizer"
HEADERS = "gnu-c++-headers"
SOURCES = "toolchains/hip"
DRIVER = "hip/cuda/driver/hipcuda.py"
RUNTIME = "libcudart.so.13"
RUNNER = ("runner", "runner_cuda")
WATCHED_RUNNER = (
    "runner_alone",
    *(f"runner/{part}.cpp" for part in ("call", "candidate", "files")),
    *(f"runner/{part}.h" for part in ("call", "candidate", "clock", "control_block", "files")),
    *(f"runner_cuda/{part}" for part in ("clock.cpp", "driver.cpp", "driver.h")),
)
"""What calls a kernel once and by itself, for a tool that watches it."""
DRIVERS = ("common", "cpu/driver", "cuda/driver", "cuda/include", "cuda/host")
PROCESSORS = (
    *("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90"),
    *("sm_100", "sm_103", "sm_120", "sm_121"),
)
"""Those whose occupancy the compile gate can tell: ``cuda_architectures.py`` of its driver."""


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
    watched = declare_device_runner(
        ctx, WATCHED_RUNNER, host_compiler, (python, host), "sanitize.runner"
    )
    arch = _processor(ctx)
    arguments, headers = _headers(ctx)
    compile_argv = (
        *(PYTHON, "tools/cuda_compile_gate.py", compiler, f"--arch={arch}"),
        *(f"--host={host_compiler}", *arguments),
    )
    libraries = {RUNTIME: runtime.output(RUNTIME)}
    ctx.provide(
        HipInfo(
            compile_argv=compile_argv,
            inputs={**drivers, "tools": ctx.builtin("rules/hip_cuda/tools")},
            toolchains=(python, cuda, host, *headers),
            libraries=libraries,
            runner=runner.output("hip-runner"),
            sanitizing=_sanitizing(ctx, compile_argv, libraries, watched.output("hip-runner")),
        )
    )


def _sanitizing(
    ctx: Context, compile_argv: tuple[str, ...], libraries: Mapping[str, Output], runner: Output
) -> Sanitizing | None:
    """How kernels are watched; None where what watches them has not been fetched or adopted.

    Else everybody who compiles would have to fetch it.
    """
    watcher = tool_here(ctx, "sanitizer", SANITIZER)
    if watcher is None:
        return None
    return Sanitizing(
        compile_argv=(*compile_argv, "--sanitize"),
        libraries=libraries,
        runner=runner,
        outputs=("kernel.places.json",),
        watcher=watcher,
    )


def _processor(ctx: Context) -> str:
    """The processor to compile for. Raises AnalysisError(BAD_ATTRIBUTE) for an unknown one."""
    name: str = ctx.platform.get("arch") or ctx.attrs["arch"]
    if re.sub(r"(?<=\d)[af]$", "", name) not in PROCESSORS:
        raise AnalysisError(
            Reason.BAD_ATTRIBUTE,
            f"{ctx.label.short} does not compile for '{name}'",
            position=ctx.target.position,
            hint=f"it compiles for {', '.join(PROCESSORS)}",
        )
    return name


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
        "sanitizer": attr.label(
            "NVIDIA's compute-sanitizer, for the gate sanitize.",
            default="//toolchains/cuda:sanitizer",
        ),
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
    subtargets=("runtime", "runner", "sanitize.runner"),
)
