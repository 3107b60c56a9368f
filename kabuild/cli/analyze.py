"""``kabuild analyze``: the memory accesses of kernels, by line of source, without a GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import click

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import AnalysisError, NoTestsError, Reason
from kabuild.base.printing import escaped
from kabuild.cli.flags import KeyFlags, RunFlags, SaltFlags, SolverFlags, TargetFlags, TrialFlags
from kabuild.cli.occupancy import platform_of, read_tables, reported_arch
from kabuild.cli.options import flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder, leave_views, rerun_flags
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.gate_result import GateResult
from kabuild.model.platform import CPU
from kabuild.pipeline import Summary
from kabuild.report.analysis import render_analysis
from kabuild.report.failures import render_failures
from kabuild.store import Store

_FILE = "analysis.json"
_SCHEMA = 1
_WARP = 32


@dataclass(frozen=True, kw_only=True)
class AnalyzeFlags(SolverFlags, TargetFlags, TrialFlags, SaltFlags, KeyFlags, RunFlags, JsonFlags):
    """The options of ``kabuild analyze``; kernels run on the CPU, so it takes no platform."""

    arch: str | None = flag(
        "--arch",
        metavar="ARCH",
        help="Show a modelled time and the occupancy for this architecture of a GPU.",
    )

    def refine(self, request: Request) -> Request:
        """Add the gates that count."""
        return super().refine(replace(request, platform=CPU, pick=Pick.COUNTED))


@click.command("analyze", context_settings={"show_default": False})
@takes(AnalyzeFlags)
def command(options: AnalyzeFlags) -> None:
    """Count the memory accesses of kernels, by line of source, without a GPU.

    Runs each kernel once per visible config on the CPU, with a counter at every access. Large
    configs are reduced. Counts sectors of global memory, bank conflicts of shared memory,
    contention of atomic operations, diverging branches, and barriers. Nothing is timed: the
    modelled time of HIP kernels is made of these counts and a GPU's published peaks.

    \b
    kabuild analyze //tasks/hip2hip/softmax --solution=my.hip
    kabuild analyze //tasks/hip2hip/softmax --arch=sm_90

    Exits with 0 when all tasks were counted, 3 when a gate failed, 36 when the machine failed.
    """
    request = options.request()
    platform = platform_of(request.cwd, options.arch) if options.arch else None
    found: dict[str, Any] = {}
    with builder() as builds:
        try:
            summary = builds.run(request)
        except NoTestsError:
            raise _uncounted(options.patterns) from None
        gates = [(result, gate) for result in summary.table for gate in result.gates.values()]
        tables = read_tables(builds, request, platform) if platform else None
        for result, gate in gates:
            if (analysis := _read(gate, summary, builds.store)) is not None:
                occupancy = tables.of(result.label) if tables else None
                found[result.label.short] = {**analysis, "occupancy": occupancy}
        leave_views(
            summary.plan.loaded.workspace.root / "out", summary, builds.store, builds.sink, {}
        )
    failures = [
        escaped(text)
        for text in render_failures(
            summary.table, summary.settled.values(), rerun=rerun_flags(request)
        )
    ]
    if options.as_json:
        click.echo(json.dumps(found, sort_keys=True))
        click.echo("\n\n".join(failures), err=True, nl=bool(failures))
    else:
        arch = reported_arch(request.cwd, options.arch) if options.arch else ""
        shown = [escaped(_shown(label, analysis, arch)) for label, analysis in found.items()]
        click.echo("\n\n".join([*failures, *shown]))
    raise click.exceptions.Exit(int(summary.exit_code))


def _read(gate: GateResult, summary: Summary, store: Store) -> dict[str, Any] | None:
    """The gate's counts; None if it stopped before counting."""
    item = summary.settled.get(gate.label)
    file = item.result.file(_FILE) if item and item.result else None
    if file is None:
        return None
    try:
        analysis: dict[str, Any] = read_json(store.cas.get(file.digest))
        if analysis["schema"] != _SCHEMA:
            raise ValueError(f"schema {analysis['schema']}")
        known = {arch for call in analysis["calls"] for arch in call.get("modelled", {})}
        for arch in ("", *known):
            for warp in (32, 64):
                render_analysis("", analysis, warp, arch=arch)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise AnalysisError(
            Reason.BAD_RULE,
            f"{gate.label} wrote an analysis that cannot be shown: {type(error).__name__}: {error}",
            hint="a gate with Role.COUNTS writes analysis.json as analyze of hip2hip does",
        ) from None
    return analysis


def _shown(label: str, analysis: dict[str, Any], arch: str) -> str:
    occupancy = analysis["occupancy"]
    waves = {kernel["wave"] for kernel in occupancy["kernels"]} if occupancy else set()
    warp = max(waves, default=_WARP)
    return render_analysis(label, analysis, warp, occupancy=occupancy, arch=arch)


def _uncounted(patterns: tuple[str, ...]) -> NoTestsError:
    return NoTestsError(
        Reason.NO_TESTS,
        f"no task can be analyzed in {' '.join(patterns)}",
        hint="analyze needs tasks with Triton or HIP kernels, the latter with //toolchains/zig",
    )
