"""``kabuild analyze``: what kernels do, counted without a GPU or by a GPU's own counters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import AnalysisError, InfraError, NoTestsError, Reason, UsageError
from kabuild.base.printing import escaped
from kabuild.cli.flags import (
    KeyFlags,
    RunFlags,
    SaltFlags,
    SolverFlags,
    TargetFlags,
    TrialFlags,
    WhereFlags,
)
from kabuild.cli.occupancy import platform_of, read_tables, reported_arch
from kabuild.cli.options import flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.session import builder, leave_views, rerun_flags
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.gate_result import GateResult
from kabuild.model.label import repository_of
from kabuild.model.platform import CPU
from kabuild.pipeline import Summary, load
from kabuild.report.analysis import render_analysis
from kabuild.report.counters import render_counters
from kabuild.report.failures import render_failures
from kabuild.store import Store

_ANALYSIS, _COUNTERS = "analysis.json", "counters.json"
_SCHEMA = 1
_WARP = 32


@dataclass(frozen=True, kw_only=True)
class AnalyzeFlags(
    SolverFlags, WhereFlags, TargetFlags, TrialFlags, SaltFlags, KeyFlags, RunFlags, JsonFlags
):
    """The options of ``kabuild analyze``."""

    arch: str | None = flag(
        "--arch",
        metavar="ARCH",
        help="Show a modelled time and the occupancy for this architecture of a GPU.",
    )

    def refine(self, request: Request) -> Request:
        """Add the gates that count. A workspace's own platform is for tests alone."""
        return replace(super().refine(request), platform=self.platform or CPU, pick=Pick.COUNTED)


@click.command("analyze", context_settings={"show_default": False})
@takes(AnalyzeFlags)
def command(options: AnalyzeFlags) -> None:
    """Count what kernels do: their memory accesses by line, or a GPU's counters.

    Without a GPU, each kernel runs once per visible config on the CPU, with a counter at every
    access. Large configs are reduced. Counts sectors of global memory, bank conflicts of shared
    memory, contention of atomic operations, diverging branches, and barriers. Nothing is timed: the
    modelled time of HIP kernels is made of these counts and a GPU's published peaks.

    With --platform=cuda, NVIDIA's Nsight Compute watches each kernel on the GPU, in the candidate's
    sandbox: what bounds it, what its warps wait for, and what would help.

    \b
    kabuild analyze //tasks/hip2hip/softmax --solution=my.hip
    kabuild analyze //tasks/hip2hip/softmax --arch=sm_90
    kabuild analyze //tasks/hip2hip/softmax --platform=cuda

    Exits with 0 when all tasks were counted, 3 when a gate failed, 36 when the machine failed.
    """
    request = options.request()
    if options.arch and request.platform != CPU:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--arch={options.arch} is for counts of the CPU, and --platform asks for a GPU's own",
            hint="leave out one of the two",
        )
    platform = platform_of(request.cwd, options.arch) if options.arch else None
    found: dict[str, Any] = {}
    with builder() as builds:
        try:
            summary = builds.run(request)
        except NoTestsError:
            raise _uncounted(options, request) from None
        except InfraError as error:
            if error.reason is Reason.NO_DEVICE:  # an architecture alone would be of no use
                error.hint = "leave out --platform: without a GPU, it counts on the CPU"
            raise
        gates = [(result, gate) for result in summary.table for gate in result.gates.values()]
        tables = read_tables(builds, request, platform) if platform else None
        for result, gate in gates:
            if (counters := _read(_COUNTERS, gate, summary, builds.store)) is not None:
                found[result.label.short] = counters
            if (analysis := _read(_ANALYSIS, gate, summary, builds.store)) is not None:
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


def _read(name: str, gate: GateResult, summary: Summary, store: Store) -> dict[str, Any] | None:
    """The gate's file of that name; None if it wrote none, or stopped before counting."""
    item = summary.settled.get(gate.label)
    file = item.result.file(name) if item and item.result else None
    if file is None:
        return None
    try:
        counted: dict[str, Any] = read_json(store.cas.get(file.digest))
        if counted["schema"] != _SCHEMA:
            raise ValueError(f"schema {counted['schema']}")
        _TRIED[name](counted)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise AnalysisError(
            Reason.BAD_RULE,
            f"{gate.label} wrote an analysis that cannot be shown: {type(error).__name__}: {error}",
            hint=f"a gate that counts writes {name} as that of hip2hip does",
        ) from None
    return counted


def _try_analysis(analysis: Mapping[str, Any]) -> None:
    """Raise whatever is raised for an analysis that cannot be shown."""
    known = {arch for call in analysis["calls"] for arch in call.get("modelled", {})}
    for arch in ("", *known):
        for warp in (32, 64):
            render_analysis("", analysis, warp, arch=arch)


def _try_counters(counters: Mapping[str, Any]) -> None:
    render_counters("", counters)


_TRIED: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    _ANALYSIS: _try_analysis,
    _COUNTERS: _try_counters,
}


def _shown(label: str, counted: dict[str, Any], arch: str) -> str:
    if "profiler" in counted:
        return render_counters(label, counted)
    occupancy = counted["occupancy"]
    waves = {kernel["wave"] for kernel in occupancy["kernels"]} if occupancy else set()
    warp = max(waves, default=_WARP)
    return render_analysis(label, counted, warp, occupancy=occupancy, arch=arch)


def _uncounted(options: AnalyzeFlags, request: Request) -> NoTestsError:
    where = (options.platform or CPU).partition(":")[0]
    return NoTestsError(
        Reason.NO_TESTS,
        f"no task can be analyzed on {where} in {' '.join(options.patterns)}",
        hint=_no_gate(request) or _needed(options, where),
    )


def _no_gate(request: Request) -> str:
    """Says which kinds have no gate that counts, on any platform; empty if one of them has."""
    loaded = load(request)
    loader, labels = loaded.loader, loaded.labels
    targets = [loader.target(label) for label in labels]
    gates = [gate for target in targets for gate in loader.rule(target).gates]
    if any(Pick.COUNTED.takes(gate) for gate in gates):
        return ""
    if all(repository_of(label.package) for label in labels):
        return "imported tasks cannot be analyzed, whatever their solution is written in"
    kinds = ", ".join(f"'{kind}'" for kind in sorted({target.kind for target in targets}))
    return f"tasks of kind {kinds} cannot be analyzed, whatever their solution is written in"


def _needed(options: AnalyzeFlags, where: str) -> str:
    """Says what an analysis on the platform ``where`` needs."""
    needs = "//toolchains/zig for HIP"
    if where != CPU:
        profiler = PlatformIndex.around(Path.cwd()).spec(where).profiler
        pin = f"kabuild toolchain pin {profiler} --from DIRECTORY"
        locked = ", in toolchains/lock.toml" if options.locked else ""
        needs = f"{profiler} as it is pinned{locked} (see 'kabuild toolchain list', or {pin})"
        needs = needs if profiler else f"a profiler, and {where} declares none"
    return f"analyze needs tasks with HIP or Triton kernels, and {needs}"
