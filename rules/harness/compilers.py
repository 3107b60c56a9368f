"""Toolchains and compiler arguments, shared by the rules that compile HIP."""

from __future__ import annotations

from collections.abc import Sequence

from kabuild.rule import Action, AnalysisError, Artifact, Context, Limits, Reason, Toolchain

from .gates import PYTHON, portable

CPP_COMPILER = "c++-compiler"
HIP_DRIVER = "hip/driver/compile_hip.py"
HIP_COMPILE_GATE = "hip/driver/compile_gate.py"
_HIP = "toolchains/hip"
DRIVER_BEHIND = "libkabuild-driver.so"
"""The name under which a launch filter finds the driver: ``runners/driver_front.py``."""
BUILDING = Limits(timeout=600.0, memory=6 << 30, processes=128, scratch=2 << 30)
"""Limits for builds that all kernels share: runtimes and runners."""


def tool(ctx: Context, attribute: str, role: str) -> Toolchain:
    """The toolchain of an attribute. Raises AnalysisError(NO_TOOLCHAIN) for another role."""
    toolchain = ctx.toolchain(ctx.attrs[attribute])
    _require_role(ctx, attribute, toolchain, role)
    return toolchain


def tool_here(ctx: Context, attribute: str, role: str) -> Toolchain | None:
    """Like ``tool``, for an optional toolchain: None if it is not on this machine."""
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
            hint=f"this needs a toolchain with the role '{role}'",
        )


def architecture(ctx: Context) -> str:
    """The architecture to compile for: the platform's, or the target's own if it has none.

    Raises AnalysisError(BAD_ATTRIBUTE) for one that the platform does not declare.
    """
    name: str = ctx.platform.get("arch") or ctx.attrs["arch"]
    known = ctx.platform_spec.architectures
    if name not in known:
        raise AnalysisError(
            Reason.BAD_ATTRIBUTE,
            f"{ctx.label.short} does not compile for '{name}'",
            position=ctx.target.position,
            hint=f"it compiles for {', '.join(known)}",
        )
    return name


def architectures(ctx: Context) -> dict[str, Artifact]:
    """The files of the platform's architectures, at the path where compiler drivers read them."""
    file = "architectures.toml"
    return {f"platforms/{ctx.platform.name}/{file}": ctx.platform_file(file)}


def home(toolchain: Toolchain) -> str:
    """A token for the toolchain's path, which is replaced when an action starts."""
    return f"${{toolchain:{toolchain.name}}}"


def cpp_compiler(toolchain: Toolchain, program: str) -> str:
    """The flags that describe a C++ compiler to the drivers; without ``program`` it is ziglang."""
    return f"cxx:{home(toolchain)}/{program}" if program else f"zig:{home(toolchain)}"


def hip_driver(ctx: Context, platform: str, *more: str) -> dict[str, Artifact]:
    """HIP's driver for one platform, with the directories ``more``, below ``hip/``.

    Files of other platforms are left out, so that editing them changes no key here.
    """
    own = (f"{platform}/driver", f"{platform}/include")
    parts = ("common", "host", "driver", *own, *more)
    return {f"hip/{part}": ctx.builtin(f"{_HIP}/{part}") for part in parts}


RUNNER_ALONE = (
    "runner_alone",
    *(f"runner/{part}.cpp" for part in ("call", "candidate", "files")),
    *(f"runner/{part}.h" for part in ("call", "candidate", "clock", "control_block", "files")),
)
"""The sources that all platforms share of what calls a kernel once, by itself."""


def declare_runner(
    ctx: Context,
    sources: Sequence[str],
    compiler: str,
    toolchains: tuple[Toolchain, ...],
    part: str = "runner",
) -> Action:
    """Build a platform's native runner for the host; ``sources`` are below the harness's tools."""
    return _declare_native(
        ctx,
        part,
        mnemonic="Runner",
        command=("program",),
        output="hip-runner",
        sources=sources,
        compiler=compiler,
        toolchains=toolchains,
    )


def declare_launch_filter(
    ctx: Context,
    sources: Sequence[str],
    name: str,
    compiler: str,
    toolchains: tuple[Toolchain, ...],
    *,
    part: str,
) -> Action:
    """Build the launch filter of a GPU's driver for the host, named like the driver."""
    return _declare_native(
        ctx,
        part,
        mnemonic="LaunchFilter",
        command=("front", f"--before={DRIVER_BEHIND}"),
        output=name,
        sources=sources,
        compiler=compiler,
        toolchains=toolchains,
    )


def _declare_native(
    ctx: Context,
    part: str,
    *,
    mnemonic: str,
    command: tuple[str, ...],
    output: str,
    sources: Sequence[str],
    compiler: str,
    toolchains: tuple[Toolchain, ...],
) -> Action:
    programs = (source for source in sources if not source.endswith(".h"))
    return ctx.action(
        part,
        argv=(
            *(PYTHON, "hip/host/native.py", *command, *programs, "-o", f"out/{output}"),
            f"--compiler={compiler}",
        ),
        inputs={
            **{f"hip/{part}": ctx.builtin(f"{_HIP}/{part}") for part in ("common", "host")},
            **{source: ctx.builtin(f"rules/harness/tools/{source}") for source in sources},
        },
        outputs=(output,),
        mnemonic=mnemonic,
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
