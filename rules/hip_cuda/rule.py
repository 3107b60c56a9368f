"""HIP for NVIDIA's processors: how a kernel is compiled, on any machine, and what runs it."""

from __future__ import annotations

from kabuild.rule import AnalysisError, Artifact, Context, Limits, Reason, Rule, Toolchain, attr

from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.providers import HipInfo

CUDA = "cuda-compiler"
HOST = "c++-compiler"
HEADERS = "gnu-c++-headers"
SOURCES = "toolchains/hip"
DRIVER = "hip/cuda/driver/hipcuda.py"
RUNTIME = "libcudart.so.13"
RUNNER = ("runner", "runner_cuda")
DRIVERS = ("common", "cpu/driver", "cuda/driver", "cuda/include", "cuda/host")
BUILDING = Limits(timeout=600.0, memory=6 << 30, processes=128, scratch=2 << 30)


def implement(ctx: Context) -> None:
    """Build the runner once; tell tasks how to compile kernels."""
    attrs = ctx.attrs
    python = ctx.toolchain(PYTHON_TOOLCHAIN)
    cuda = _tool(ctx, "compiler", CUDA)
    host = _tool(ctx, "host", HOST)
    drivers: dict[str, Artifact] = {
        f"hip/{part}": ctx.builtin(f"{SOURCES}/{part}") for part in DRIVERS
    }
    compiler = f"--compiler=nvcc:{_home(cuda)}"
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
    runner = ctx.action(
        "runner",
        argv=(
            *(PYTHON, "hip/cpu/driver/hipcpu.py", "program", *RUNNER, "-o", "out/hip-runner"),
            f"--compiler={_host(ctx, host)}",
        ),
        inputs={
            "hip/common": ctx.builtin(f"{SOURCES}/common"),
            "hip/cpu/driver": ctx.builtin(f"{SOURCES}/cpu/driver"),
            **{part: ctx.builtin(f"rules/harness/tools/{part}") for part in RUNNER},
        },
        outputs=("hip-runner",),
        mnemonic="Runner",
        toolchains=(python, host),
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    arch = ctx.platform.get("arch") or attrs["arch"]
    arguments, headers = _headers(ctx)
    ctx.provide(
        HipInfo(
            compile_argv=(
                *(PYTHON, "tools/cuda_compile_gate.py", compiler, f"--arch={arch}"),
                *(f"--host={_host(ctx, host)}", *arguments),
            ),
            inputs={**drivers, "tools": ctx.builtin("rules/hip_cuda/tools")},
            toolchains=(python, cuda, host, *headers),
            libraries={RUNTIME: runtime.output(RUNTIME)},
            runner=runner.output("hip-runner"),
        )
    )


def _host(ctx: Context, host: Toolchain) -> str:
    """How the drivers are told about the compiler of the host's part."""
    program = ctx.attrs["program"]
    return f"cxx:{_home(host)}/{program}" if program else f"zig:{_home(host)}"


def _headers(ctx: Context) -> tuple[tuple[str, ...], tuple[Toolchain, ...]]:
    """The C++ library's headers, which only the pinned clang needs."""
    if ctx.attrs["program"]:
        return (), ()
    headers = _tool(ctx, "headers", HEADERS)
    return (f"--headers={_home(headers)}",), (headers,)


def _tool(ctx: Context, attribute: str, role: str) -> Toolchain:
    """The toolchain of an attribute. Raises AnalysisError(NO_TOOLCHAIN) for another role."""
    label = ctx.attrs[attribute]
    toolchain = ctx.toolchain(label)
    if toolchain.role != role:
        raise AnalysisError(
            Reason.NO_TOOLCHAIN,
            f"{ctx.label.short} cannot use {label.short} as its '{attribute}': "
            f"its role is '{toolchain.role}'",
            position=ctx.target.position,
            hint=f"this takes a toolchain of the role '{role}'",
        )
    return toolchain


def _home(toolchain: Toolchain) -> str:
    return f"${{toolchain:{toolchain.name}}}"


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
