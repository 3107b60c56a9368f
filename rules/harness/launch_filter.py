"""A platform's launch filter, as a separate target because Triton tasks need no HIP compiler.

It is the library in front of a device's driver that decides which kernels run. Its sources are
``tools/launch_filter`` and ``tools/launch_filter_NAME``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import Context, Output, Rule, attr

from .compilers import CPP_COMPILER, cpp_compiler, declare_launch_filter, tool
from .gates import PYTHON_TOOLCHAIN
from .providers import LaunchFilterInfo

HOST_ATTRS: Mapping[str, attr.Attr] = {
    "host": attr.label("What compiles the host's part.", default="//toolchains/zig"),
    "program": attr.string(
        "Where in that toolchain its g++ or clang++ is; empty for the ziglang package.",
        default="",
    ),
}


def declare(ctx: Context, platform: str, driver: str, program: str, part: str = "") -> Output:
    """Build the filter of ``platform`` with ``program`` from the target's own ``host``.

    ``driver`` is the driver's file name, which the filter takes. Without ``part`` the target's
    own action builds it.
    """
    host = tool(ctx, "host", CPP_COMPILER)
    built = declare_launch_filter(
        ctx,
        ("launch_filter", f"launch_filter_{platform}"),
        driver,
        cpp_compiler(host, program),
        (ctx.toolchain(PYTHON_TOOLCHAIN), host),
        part=part,
    )
    return built.output(driver)


def rule(platform: str, driver: str) -> Rule:
    """The rule that builds the filter of ``platform``, and nothing on other platforms."""

    def implement(ctx: Context) -> None:
        if ctx.platform.name == platform:
            ctx.provide(LaunchFilterInfo(declare(ctx, platform, driver, ctx.attrs["program"])))

    return Rule(
        kind=f"{platform}_launch_filter",
        doc=f"The library in front of the driver of {platform}, which decides which kernels run.",
        implement=implement,
        attrs=HOST_ATTRS,
    )


def absent(platform: str) -> Rule:
    """The rule for platforms that need no filter."""

    def implement(ctx: Context) -> None:
        ctx.provide(LaunchFilterInfo(None))

    return Rule(
        kind=f"{platform}_launch_filter",
        doc=f"No library: on {platform} every kernel may run.",
        implement=implement,
        attrs={},
    )
