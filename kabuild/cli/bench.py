"""``kabuild bench``: the distribution of a task's times."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import Any

import click

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import AnalysisError, Reason
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
from kabuild.cli.options import flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.remote_flags import RemoteFlags
from kabuild.cli.session import builder, rerun_flags
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.gate_result import GateResult
from kabuild.pipeline import Summary
from kabuild.report.bench import ASCII, BLOCKS, read_bench, render_bench
from kabuild.report.failures import render_failures
from kabuild.store import Store


@dataclass(frozen=True, kw_only=True)
class BenchFlags(
    SolverFlags,
    TargetFlags,
    WhereFlags,
    TrialFlags,
    SaltFlags,
    KeyFlags,
    RunFlags,
    RemoteFlags,
    JsonFlags,
):
    """The options of ``kabuild bench``. It computes no score, so it takes no policy."""

    fresh: bool = flag(
        "--fresh", is_flag=True, help="Measure again, even if a measurement is cached."
    )

    def refine(self, request: Request) -> Request:
        """Add the gate that measures."""
        return super().refine(replace(request, pick=Pick.TIMED, fresh=self.fresh))


@click.command("bench", context_settings={"show_default": False})
@takes(BenchFlags)
def command(options: BenchFlags) -> None:
    """Show how the times of a task are distributed, measured now or earlier.

    \b
    kabuild bench //tasks/hip2hip/softmax
    kabuild bench //tasks/hip2hip/softmax --solution=my.hip --fresh

    Brackets show the fastest and the slowest process; those of the speedup its 95 % interval.
    Exits with 0 when all tasks were timed, 3 when a gate failed, 36 when the machine failed.
    """
    found: dict[str, Any] = {}
    request = options.request()
    with builder() as builds:
        summary = builds.run(request)
        for result in summary.table:
            for gate in result.gates.values():
                name = result.label if len(result.gates) == 1 else gate.label
                if files := _files(gate, summary, builds.store):
                    found[name.short] = _read(gate, *files)
                elif gate.passed:
                    raise _unshown(gate, "no samples")
    causes = render_failures(summary.table, summary.settled.values(), rerun=rerun_flags(request))
    failures = [escaped(text) for text in causes]
    if options.as_json:
        click.echo(json.dumps(found, sort_keys=True))
        click.echo("\n\n".join(failures), err=True, nl=bool(failures))
    else:
        click.echo("\n\n".join([*failures, *_shown(found)]))
    raise click.exceptions.Exit(int(summary.exit_code))


def _files(gate: GateResult, summary: Summary, store: Store) -> tuple[bytes, bytes] | None:
    """The verdict and the samples; None if nothing was timed."""
    item = summary.settled.get(gate.label)
    made = item.result if item else None
    named = [made and made.file(name) for name in ("verdict.json", "samples.json")]
    if not all(named) or not gate.data.get("cases"):
        return None
    verdict, samples = (store.cas.get(file.digest) for file in named if file)
    return verdict, samples


def _read(gate: GateResult, verdict: bytes, samples: bytes) -> dict[str, Any]:
    """The figures, if both files have the format of kabuild's own rules."""
    try:
        found = read_bench(read_json(verdict), read_json(samples))
        render_bench("", found)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = f"samples that cannot be shown: {type(error).__name__}: {error}"
        raise _unshown(gate, what) from None
    return found


def _unshown(gate: GateResult, what: str) -> AnalysisError:
    """The rule's mistake: the gate passed, so machine and kernel are not at fault."""
    return AnalysisError(
        Reason.BAD_RULE,
        f"{gate.label} wrote {what}",
        hint="a gate with Role.TIMES writes verdict.json and samples.json as perf of hip2hip does",
    )


def _shown(found: dict[str, Any]) -> list[str]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    ramp = BLOCKS if encoding == "utf8" else ASCII
    return [escaped(render_bench(label, bench, ramp)) for label, bench in found.items()]
