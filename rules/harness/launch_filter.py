"""A platform's launch filter, also as a target of its own: Triton tasks need no HIP compiler."""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import Action, Context, Rule, attr

from .compilers import CPP_COMPILER, cpp_compiler, declare_launch_filter, tool
from .gates import PYTHON_TOOLCHAIN
from .providers import LaunchFilterInfo

DRIVERS = {"cuda": "libcuda.so.1", "rocm": "libamdhip64.so"}
"""The name of each platform's driver, which is the filter's, too."""
HOST_ATTRS: Mapping[str, attr.Attr] = {
    "host": attr.label("What compiles the host's part.", default="//toolchains/zig"),
    "program": attr.string(
        "Where in that toolchain its g++ or clang++ is; empty for the ziglang package.",
        default="",
    ),
}


def declare(ctx: Context, platform: str, program: str, part: str = "") -> Action:
    """Build the filter of ``platform`` with ``program`` of the target's own ``host``.

    The target's own action without ``part``; else it makes other things, too.
    """
    host = tool(ctx, "host", CPP_COMPILER)
    return declare_launch_filter(
        ctx,
        ("launch_filter", f"launch_filter_{platform}"),
        DRIVERS[platform],
        cpp_compiler(host, program),
        (ctx.toolchain(PYTHON_TOOLCHAIN), host),
        part=part,
    )


def rule(platform: str) -> Rule:
    """The kind of target that is the filter of ``platform``, and nothing on any other."""

    def implement(ctx: Context) -> None:
        # Triton tasks name this target on every platform; only here do they use it.
        if ctx.platform.name == platform:
            built = declare(ctx, platform, ctx.attrs["program"])
            ctx.provide(LaunchFilterInfo(built.output(DRIVERS[platform])))

    return Rule(
        kind=f"{platform}_launch_filter",
        doc=f"The library before the driver of {platform}, which decides which kernels run.",
        implement=implement,
        attrs=HOST_ATTRS,
    )
