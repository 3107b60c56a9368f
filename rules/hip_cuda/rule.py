"""HIP for NVIDIA's processors: how a kernel is compiled, on any machine, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import (
    Artifact,
    Context,
    Output,
    Rule,
    Toolchain,
    attr,
)

from ..harness import launch_filter
from ..harness.compilers import (
    BUILDING,
    CPP_COMPILER,
    HIP_COMPILE_GATE,
    HIP_DRIVER,
    RUNNER_ALONE,
    architecture,
    architectures,
    cpp_compiler,
    declare_runner,
    hip_driver,
    home,
    tool,
    tool_here,
)
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.judge_files import verdict_files
from ..harness.providers import HipInfo, Sanitizing

CUDA = "cuda-compiler"
SANITIZER = "cuda-sanitizer"
HEADERS = "gnu-c++-headers"
RUNTIME = "libcudart.so.13"
DRIVER = "libcuda.so.1"
RUNNER = ("runner", "runner_cuda")
ALONE = (
    *RUNNER_ALONE,
    *(f"runner_cuda/{part}" for part in ("clock.cpp", "driver.cpp", "driver.h")),
)
"""What calls a kernel once and by itself, for a tool that watches it."""


def implement(ctx: Context) -> None:
    """Build the runner once; tell tasks how to compile kernels."""
    attrs = ctx.attrs
    python = ctx.toolchain(PYTHON_TOOLCHAIN)
    cuda = tool(ctx, "compiler", CUDA)
    host = tool(ctx, "host", CPP_COMPILER)
    drivers: dict[str, Artifact] = {
        **hip_driver(ctx, "cuda", "cuda/host"),
        **architectures(ctx),
    }
    compiler = f"--compiler=nvcc:{home(cuda)}"
    host_compiler = cpp_compiler(host, attrs["program"])
    runtime = ctx.action(
        "runtime",
        argv=(PYTHON, HIP_DRIVER, "cuda", "runtime", "-o", f"out/{RUNTIME}", compiler),
        inputs=drivers,
        outputs=(RUNTIME,),
        mnemonic="Runtime",
        toolchains=(python, cuda),
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    runner = declare_runner(ctx, RUNNER, host_compiler, (python, host))
    alone = declare_runner(ctx, ALONE, host_compiler, (python, host), "alone")
    filtering = launch_filter.declare(ctx, "cuda", DRIVER, attrs["program"], "launch_filter")
    arch = architecture(ctx)
    arguments, headers = _headers(ctx)
    compile_argv = (
        *(PYTHON, HIP_COMPILE_GATE, "cuda", compiler, f"--arch={arch}"),
        *(f"--host={host_compiler}", *arguments),
    )
    libraries = {RUNTIME: runtime.output(RUNTIME)}
    ctx.provide(
        HipInfo(
            compile_argv=compile_argv,
            inputs={**drivers, **verdict_files(ctx)},
            toolchains=(python, cuda, host, *headers),
            libraries=libraries,
            runner=runner.output("hip-runner"),
            launch_filter=filtering,
            sanitizing=_sanitizing(ctx, compile_argv, libraries, alone.output("hip-runner")),
            alone=alone.output("hip-runner"),
        )
    )


def _sanitizing(
    ctx: Context, compile_argv: tuple[str, ...], libraries: Mapping[str, Output], runner: Output
) -> Sanitizing | None:
    """How kernels are watched; None if the tool has not been fetched or adopted. Otherwise each
    compilation would have to fetch it.
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
        **launch_filter.HOST_ATTRS,
        "headers": attr.label(
            "The GNU C++ library's headers, for the ziglang package.",
            default="//toolchains/cuda:c++-headers",
        ),
        "arch": attr.string("The processor, where the platform names none.", default="sm_90"),
    },
    subtargets=("runtime", "runner", "alone", "launch_filter"),
)
RULES = (RULE, launch_filter.rule("cuda", DRIVER))
