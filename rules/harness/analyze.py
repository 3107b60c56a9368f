"""The analyze gate, on request: counts the accesses of an instrumented build of the candidate."""

from __future__ import annotations

from kabuild.rule import VERDICT_FILE, Action, Artifact, Context, Gate, Role, When

from .gates import Judging, Runtime, Side, kernel_name, portable
from .hip import COMPILING, LIBRARY, counting_policy, hip_info, hip_judging
from .judge_files import ANALYZE as NAME
from .providers import Counting, HipInfo
from .signature import read_signature

ANALYZE = Gate(NAME, When.ON_REQUEST, Role.COUNTS)
ANALYZE_COMPILE = f"{NAME}.compile"
ANALYSIS_FILE = "analysis.json"
LINES_SUFFIX = ".lines.json"


def declare_analyze(ctx: Context, compiled: Action, kernel: Artifact) -> None:
    """Declare ``.analyze`` and its build after ``.compile``, if the platform supports it.

    No other gate depends on it, so it does not affect scores.
    """
    hip = hip_info(ctx)
    if hip.counting is None:
        return
    counted = _declare_compile(ctx, hip, hip.counting, compiled, kernel)
    judging = hip_judging(ctx, hip.counting, counted)
    policy = counting_policy(ctx)
    judging.gate(NAME, requires=(compiled,), policy=policy, outputs=(ANALYSIS_FILE,))


def declare_analyze_interpreted(
    ctx: Context, compiled: Action, candidate: Side, runtime: Runtime, lines: Artifact
) -> None:
    """Declare ``.analyze`` of a module with interpreted kernels, which needs no second build.

    ``lines`` maps the module's lines to the author's.
    """
    if ctx.platform.name != "cpu":
        return
    path = candidate.program["path"]
    placed = {path.removesuffix(".py") + LINES_SUFFIX: lines}
    side = Side(candidate.program, {**candidate.files, **placed}, candidate.names)
    judging = Judging(ctx, read_signature(ctx.attrs), side, side, runtime)
    policy = {"file": kernel_name(ctx)}
    judging.gate(NAME, requires=(compiled,), policy=policy, outputs=(ANALYSIS_FILE,))


def _declare_compile(
    ctx: Context, hip: HipInfo, counting: Counting, compiled: Action, kernel: Artifact
) -> Action:
    source = f"candidate/{kernel_name(ctx)}"
    return ctx.action(
        ANALYZE_COMPILE,
        argv=(*counting.compile_argv, f"--source={source}"),
        inputs={**counting.inputs, source: kernel},
        outputs=(VERDICT_FILE, LIBRARY, *counting.outputs),
        mnemonic="Instrument",
        toolchains=hip.toolchains,
        limits=COMPILING,
        requires=(compiled,),
        platform=portable(ctx.platform),
        names=compiled.names,
    )
