"""What the rules that compile HIP share: which toolchains they take, and how tools hear of them."""

from __future__ import annotations

from kabuild.rule import AnalysisError, Context, Reason, Toolchain

CPP_COMPILER = "c++-compiler"


def tool(ctx: Context, attribute: str, role: str) -> Toolchain:
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


def home(toolchain: Toolchain) -> str:
    """Where it will be: a token that is replaced when an action starts."""
    return f"${{toolchain:{toolchain.name}}}"


def cpp_compiler(toolchain: Toolchain, program: str) -> str:
    """How the drivers are told about a C++ compiler; without ``program`` it is ziglang."""
    return f"cxx:{home(toolchain)}/{program}" if program else f"zig:{home(toolchain)}"
