"""What the rules that compile HIP share: which toolchains they take, and how tools hear of them."""

from __future__ import annotations

from collections.abc import Sequence

from kabuild.rule import Action, AnalysisError, Context, Limits, Reason, Toolchain

from .gates import PYTHON, portable

CPP_COMPILER = "c++-compiler"
BUILDING = Limits(timeout=600.0, memory=6 << 30, processes=128, scratch=2 << 30)
"""Of what is built once for all kernels: runtimes and runners."""


def tool(ctx: Context, attribute: str, role: str) -> Toolchain:
    """The toolchain of an attribute. Raises AnalysisError(NO_TOOLCHAIN) for another role."""
    toolchain = ctx.toolchain(ctx.attrs[attribute])
    _require_role(ctx, attribute, toolchain, role)
    return toolchain


def tool_here(ctx: Context, attribute: str, role: str) -> Toolchain | None:
    """Like ``tool``, for what a build can do without: None where it is not on this machine."""
    toolchain = ctx.toolchain_here(ctx.attrs[attribute])
    if toolchain:
        _require_role(ctx, attribute, toolchain, role)
    return toolchain


def _require_role(ctx: Context, attribute: str, toolchain: Toolchain, role: str) -> None:
    if toolchain.role != role:
        label = ctx.attrs[attribute]
        raise AnalysisError(
            Reason.NO_TOOLCHAIN,
            f"{ctx.label.short} cannot use {label.short} as its '{attribute}': "
            f"its role is '{toolchain.role}'",
            position=ctx.target.position,
            hint=f"this takes a toolchain of the role '{role}'",
        )


def home(toolchain: Toolchain) -> str:
    """Where it will be: a token that is replaced when an action starts."""
    return f"${{toolchain:{toolchain.name}}}"


def cpp_compiler(toolchain: Toolchain, program: str) -> str:
    """How the drivers are told about a C++ compiler; without ``program`` it is ziglang."""
    return f"cxx:{home(toolchain)}/{program}" if program else f"zig:{home(toolchain)}"


def declare_device_runner(
    ctx: Context,
    sources: Sequence[str],
    compiler: str,
    toolchains: tuple[Toolchain, ...],
    part: str = "runner",
) -> Action:
    """Build a GPU's native runner, for the host; ``sources`` are below the harness's tools."""
    programs = (source for source in sources if not source.endswith(".h"))
    return ctx.action(
        part,
        argv=(
            *(PYTHON, "hip/cpu/driver/hipcpu.py", "program", *programs, "-o", "out/hip-runner"),
            f"--compiler={compiler}",
        ),
        inputs={
            "hip/common": ctx.builtin("toolchains/hip/common"),
            "hip/cpu/driver": ctx.builtin("toolchains/hip/cpu/driver"),
            **{source: ctx.builtin(f"rules/harness/tools/{source}") for source in sources},
        },
        outputs=("hip-runner",),
        mnemonic="Runner",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
