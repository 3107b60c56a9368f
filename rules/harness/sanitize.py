"""The sanitize gate, on request: runs a second, instrumented build of the candidate."""

from __future__ import annotations

from kabuild.rule import VERDICT_FILE, Action, Artifact, Context, Gate, When

from .compilers import home
from .gates import kernel_name, portable
from .hip import COMPILING, LIBRARY, hip_info, hip_judging, kernel_arguments
from .providers import HipInfo, Sanitizing
from .terms import gates

SANITIZE = Gate(gates.SANITIZE, When.ON_REQUEST)
SANITIZE_COMPILE = "sanitize.compile"


def declare_sanitize(ctx: Context, compiled: Action, kernel: Artifact) -> None:
    """``.sanitize`` and its build, if the platform supports it; after ``.compile``.

    No other gate depends on it, so it does not affect scores.
    """
    hip = hip_info(ctx)
    if hip.sanitizing is None:
        return
    instrumented = _declare_compile(ctx, hip, hip.sanitizing, compiled, kernel)
    judging = hip_judging(ctx, hip.sanitizing, instrumented)
    watcher = hip.sanitizing.watcher
    judging.gate(
        gates.SANITIZE,
        requires=(compiled,),
        policy={},
        arguments=(home(watcher),) if watcher else (),
        toolchains=(watcher,) if watcher else (),
    )


def _declare_compile(
    ctx: Context, hip: HipInfo, sanitizing: Sanitizing, compiled: Action, kernel: Artifact
) -> Action:
    return ctx.action(
        SANITIZE_COMPILE,
        argv=(*sanitizing.compile_argv, *kernel_arguments(ctx)),
        inputs={**hip.inputs, f"candidate/{kernel_name(ctx)}": kernel},
        outputs=(VERDICT_FILE, LIBRARY, *sanitizing.outputs),
        mnemonic="Instrument",
        toolchains=hip.toolchains,
        limits=COMPILING,
        requires=(compiled,),
        platform=portable(ctx.platform),
        names=compiled.names,
    )
