"""The counters gate: the vendor's profiler watches a call of each visible config.

It decides nothing: its figures have passed through the candidate's sandbox, and its times are those
of a profiler.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alone.call_files import write_call
from alone.patience import Patience
from base import seeds
from base.granted_time import GRANTED
from base.program import Config
from base.seeds import Seeds
from base.spec import Spec, SpecError, read_policy
from runners.launcher import Launcher
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, REJECTED, Verdict, canonical_json
from truth.oracle import Oracle

from counters import nsight, rocprof
from counters.findings import Finding, find
from counters.launches import Profiled, Profiler

GATE = "counters"
COUNTERS = "counters.json"
_SCHEMA = 1


@dataclass(frozen=True)
class CountersPolicy:
    """How much is tried.

    Attributes:
        call_seconds: how long one call may take, with all its repetitions under the profiler.
        total_seconds: how long all calls may take together; less than a gate may.
    """

    call_seconds: float = 60.0
    total_seconds: float = 480.0


@dataclass(frozen=True)
class _Call:
    """The result of one config."""

    config: Config
    profiled: Profiled
    findings: Sequence[Finding] = field(default=())

    @property
    def reason(self) -> str:
        return self.profiled.fault.reason.value if self.profiled.fault else ""

    @property
    def case(self) -> dict[str, object]:
        """The call as a case of the verdict."""
        launches = self.profiled.launches
        return {
            "config": self.config.name,
            "launches": len(launches),
            "fault": self.reason,
            "profiled_ns": round(sum(launch.figures.get("time_ns", 0.0) for launch in launches), 1),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "config": self.config.name,
            "whole": self.profiled.whole,
            "fault": self.reason,
            "launches": [launch.to_json() for launch in self.profiled.launches],
        }


def run(spec: Spec, launcher: Launcher, home: Path | None = None) -> Verdict:
    """Have the profiler in ``home`` count what the candidate's kernels do in the visible configs.

    Raises SpecError, TaskFault and MachineFault, if nothing was counted.
    """
    policy = read_policy(CountersPolicy, spec.policy)
    profiler = _profiler(spec, launcher, home)
    oracle = Oracle.of(spec)
    seed = Seeds(spec.salt, seeds.artifact_digest([Path(spec.candidate.path)]), GATE)
    patience = Patience(policy.total_seconds)
    calls: list[_Call] = []
    for config in spec.configs:
        with tempfile.TemporaryDirectory() as folder:
            inputs = oracle.inputs(config, seed.generator(GATE, config.name))
            write_call(Path(folder), spec.candidate, spec.signature, config, inputs)
            del inputs
            profiled = _profiled(profiler, Path(folder), policy, patience)
        calls.append(_Call(config, profiled, find(config.name, profiled.launches)))
        if calls[-1].reason == Reason.TIMEOUT.value:
            break  # each of the others would take as long
    return _verdict(profiler.name, calls)


def _profiled(
    profiler: Profiler, folder: Path, policy: CountersPolicy, patience: Patience
) -> Profiled:
    """One call, whose time is taken from ``patience`` as it passes: it may take several runs."""
    started, spent = GRANTED.now(), patience.spent_seconds

    def left() -> float:
        patience.spent_seconds = spent + GRANTED.now() - started
        return min(policy.call_seconds, patience.left_seconds)

    try:
        return profiler.profile(folder, left)
    finally:
        patience.spent_seconds = spent + GRANTED.now() - started


def _profiler(spec: Spec, launcher: Launcher, home: Path | None) -> Profiler:
    """The profiler in ``home``. Raises SpecError if there is none."""
    if home is None or not spec.candidate.on_device:
        raise SpecError("no profiler is available for this platform")
    if program := nsight.find(home):
        return nsight.Nsight(launcher, spec.candidate, home, program)
    if program := rocprof.find(home):
        return rocprof.Rocprof(launcher, spec.candidate, home, program)
    raise SpecError("the toolchain of the profiler has neither ncu for this machine nor rocprofv3")


def _verdict(profiler: str, calls: Sequence[_Call]) -> Verdict:
    cases = [call.case for call in calls]
    findings = [finding.to_json() for call in calls for finding in call.findings]
    told = {"schema": _SCHEMA, "profiler": profiler, "findings": findings}
    files = {COUNTERS: canonical_json({**told, "calls": [call.to_json() for call in calls]})}
    extra = {"findings": findings}
    fault = next((call.profiled.fault for call in calls if call.profiled.fault), None)
    if fault is None:
        launches = sum(len(call.profiled.launches) for call in calls)
        summary = f"{profiler} counted {_counted(launches, 'launch', 'launches')} in "
        summary += _counted(len(calls), "config", "configs")
        return Verdict(GATE, PASS, "", summary, "", cases, extra, files)
    failed = next(call for call in calls if call.profiled.fault)
    outcome = REJECTED if fault.rejected else FAIL
    summary, _, _ = fault.detail.partition("\n")
    detail = f"{fault.detail}\n  in {failed.config.name}"
    return Verdict(GATE, outcome, fault.reason.value, summary, detail, cases, extra, files)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
