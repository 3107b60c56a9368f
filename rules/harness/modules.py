"""Compile gates whose kernel is a Python module, and the programs that they make."""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import VERDICT_FILE, Action, Artifact, Context, Limits, Name

from .ahead import BINARIES, LIMITS
from .gates import PRELOAD, Side, kernel_name, portable
from .solution import NO_SOLUTION, Compiling
from .terms import gates

MODULE = "kernel.py"
LINES = "kernel.lines.json"


def compile_module(
    ctx: Context,
    part: str,
    kernel: Artifact,
    compiling: Compiling,
    *,
    ahead: bool,
    requires: tuple[Action, ...] = (),
) -> Action:
    """The module without comments and formatting, so that these change nothing further on.

    With ``ahead`` also its compiled kernels, so that runners need not compile them again.
    """
    is_gate = part == gates.COMPILE
    declare = ctx.gate if is_gate else ctx.action
    made = (MODULE, LINES, BINARIES) if ahead else (MODULE, LINES)
    return declare(
        part,
        argv=compiling.argv,
        inputs={**compiling.inputs, f"candidate/{kernel_name(ctx)}": kernel},
        outputs=made if is_gate else (VERDICT_FILE, *made),
        mnemonic="Compile",
        toolchains=compiling.toolchains,
        platform=portable(ctx.platform),
        limits=LIMITS if ahead else Limits(),
        preload=PRELOAD if ahead else (),
        nestable=ahead,
        names=(Name(kernel_name(ctx), kernel),),
        advice=NO_SOLUTION,
        requires=requires,
    )


def side_of_module(role: str, program: Mapping[str, str], compiled: Action, *, ahead: bool) -> Side:
    """The side that runs a compiled module as ``program``, which says all but its files."""
    path, binaries = f"{role}/{MODULE}", f"{role}/{BINARIES}"
    files = {path: compiled.output(MODULE)}
    if ahead:
        files[binaries] = compiled.output(BINARIES)
    return Side(
        {**program, "path": path, **({"binaries": binaries} if ahead else {})},
        files,
        tuple(Name(MODULE, name.file, compiled.output(LINES)) for name in compiled.names),
    )
