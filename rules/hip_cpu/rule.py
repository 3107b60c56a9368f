"""HIP on the host's CPU: the runtime, the native runner, and how a kernel is compiled."""

from __future__ import annotations

from kabuild.rule import Artifact, Context, Limits, Rule, attr

from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, portable
from ..harness.providers import HipInfo

BUILDING = Limits(timeout=600.0, memory=6 << 30, processes=128, scratch=2 << 30)


def implement(ctx: Context) -> None:
    """Build the runtime and the runner once; tell tasks how to compile kernels."""
    attrs = ctx.attrs
    zig = ctx.toolchain(attrs["compiler"])
    toolchains = (ctx.toolchain(PYTHON_TOOLCHAIN), zig)
    compiler = f"--compiler=zig:${{toolchain:{zig.name}}}"
    driver: dict[str, Artifact] = {"driver": attrs["driver"], "include": attrs["include"]}
    runtime = ctx.action(
        "runtime",
        argv=(PYTHON, "driver/hipcpu.py", "runtime", "-o", "out/libhipcpu.so", compiler),
        inputs={**driver, "runtime": attrs["runtime"]},
        outputs=("libhipcpu.so",),
        mnemonic="Runtime",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    runner = ctx.action(
        "runner",
        argv=(PYTHON, "driver/hipcpu.py", "program", "runner", "-o", "out/hip-runner", compiler),
        inputs={**driver, "runner": ctx.builtin("rules/harness/tools/runner")},
        outputs=("hip-runner",),
        mnemonic="Runner",
        toolchains=toolchains,
        limits=BUILDING,
        platform=portable(ctx.platform),
    )
    ctx.provide(
        HipInfo(
            compile_argv=(PYTHON, "tools/compile_gate.py", compiler, f"--wave={attrs['wave']}"),
            inputs={**driver, "tools": ctx.builtin("rules/hip_cpu/tools")},
            toolchains=toolchains,
            libraries={"libhipcpu.so": runtime.output("libhipcpu.so")},
            runner=runner.output("hip-runner"),
        )
    )


RULE = Rule(
    kind="hip_cpu",
    doc="HIP on the host's CPU.",
    implement=implement,
    attrs={
        "compiler": attr.label("The zig toolchain.", default="//toolchains/zig"),
        "driver": attr.tree("The source rewriter and compiler driver.", default="cpu/driver"),
        "include": attr.tree("HIP headers for the host.", default="cpu/include"),
        "runtime": attr.tree("The fiber runtime's sources.", default="cpu/runtime"),
        "wave": attr.string("Threads of a wave.", default="64", values=("32", "64")),
    },
    subtargets=("runtime", "runner"),
)
