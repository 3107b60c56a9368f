"""The analyze gate: counts the candidate's memory accesses on small configs.

It decides nothing, because its figures have passed through the candidate's sandbox.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from alone.patience import Patience
from base import seeds, shapes
from base.program import CandidateFault, Config, RunnerPolicy
from base.sampler import Ground
from base.seeds import Seeds
from base.spec import Spec, SpecError, read_policy
from correctness import edges
from runners.launcher import Launcher
from sanitize.places import Places
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, REJECTED, Verdict, canonical_json, read_verdict
from torch import Tensor
from truth.oracle import Oracle

from analyze.counts import Counts, read_counts
from analyze.findings import find
from analyze.fitted import LAUNCH, read_fitted
from analyze.modelled import Peaks, modelled
from analyze.sums import sums

GATE = "analyze"
ANALYSIS = "analysis.json"
_PLACES = ".places.json"
_LINES = ".lines.json"
_COMPILED = "compile.json"
_KEPT_BYTES = 4 << 20  # more than the counters of one process print
_WARPS = (32, 64)
_FITTED = "fitted"


@dataclass(frozen=True)
class AnalyzePolicy:
    """How much is tried.

    Attributes:
        elements: cap on every tensor, since a counted kernel takes many times as long.
        call_seconds: how long one call may take.
        total_seconds: how long all calls may take together; less than a gate may.
        file: the author's name for an interpreted candidate's file; empty for its own name.
        peaks: by architecture, the peaks of the GPU whose time is modelled, and its ``fitted``.
    """

    elements: int = 65536
    call_seconds: float = 60.0
    total_seconds: float = 400.0
    file: str = ""
    peaks: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class _Call:
    """The result of one config.

    Attributes:
        of: the visible config that it was made from.
        flops: of the call, as the task declares them; 0 if it does not.
        peaks: as in ``AnalyzePolicy``.
    """

    config: Config
    of: Config
    counts: Counts
    fault: CandidateFault | None
    flops: int = 0
    peaks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    @property
    def hangs(self) -> bool:
        """Whether the call timed out."""
        return self.fault is not None and self.fault.reason is Reason.TIMEOUT

    @property
    def case(self) -> dict[str, object]:
        """The call as a case of the verdict."""
        launches = sum(launch.count for launch in self.counts.launches)
        reason = self.fault.reason.value if self.fault else ""
        return {
            "config": self.config.name,
            "launches": launches,
            "fault": reason,
            **self.counts.traffic,
            "flops": self.flops,
            "modelled_ns": {arch: one["ns"] for arch, one in self.told["modelled"].items()},
            "fitted_ns": {arch: one["fitted_ns"] for arch, one in self.told["modelled"].items()},
            "work_ns": {arch: one["work_ns"] for arch, one in self.told["modelled"].items()},
        }

    @property
    def whole(self) -> bool:
        """Whether the counts cover the whole call."""
        return self.counts.whole and self.fault is None

    @cached_property
    def told(self) -> dict[str, Any]:
        """As in ``analysis.json``; a call that is not whole has no modelled time."""
        counted = self._counted()
        known = self.peaks if self.whole and self.counts.launches else {}
        return {**counted, "modelled": {arch: _times(counted, one) for arch, one in known.items()}}

    def _counted(self) -> dict[str, Any]:
        return {
            "config": self.config.name,
            "of": self.of.name,
            "reduced": self.config.dims != self.of.dims,
            "whole": self.whole,
            "fault": self.fault.reason.value if self.fault else "",
            "flops": self.flops,
            "launches": [launch.to_json() for launch in self.counts.launches],
            "accesses": [access.to_json() for access in self.counts.accesses],
            "branches": [branch.to_json() for branch in self.counts.branches],
            "arithmetic": [one.to_json() for one in self.counts.arithmetic],
            "barriers": [barrier.to_json() for barrier in self.counts.barriers],
        }


def run(spec: Spec, launcher: Launcher) -> Verdict:
    """Count what the candidate does in small visible configs.

    Raises SpecError, TaskFault and MachineFault, if nothing was counted.
    """
    policy = read_policy(AnalyzePolicy, spec.policy)
    path = Path(spec.candidate.path)
    try:
        if _interpreted(spec):
            lines = path.with_suffix(_LINES)
            places = Places.of_lines(path.name, lines, policy.file or path.name)
        elif refusal := _refused(path.with_name(_COMPILED)):
            return refusal
        else:
            places = Places.read(path.with_suffix(_PLACES))
    except (OSError, ValueError) as error:
        raise SpecError(f"the instrumented build of the candidate is missing: {error}") from None
    oracle = Oracle.of(spec)
    seed = Seeds(spec.salt, seeds.artifact_digest([Path(spec.candidate.path)]), GATE)
    patience = Patience(policy.total_seconds)
    calls: list[_Call] = []
    for config, of in _configs(spec, policy):
        inputs = oracle.inputs(config, seed.generator(GATE, config.name))
        said, fault = _call(spec, policy, launcher, patience, (config, inputs))
        flops = shapes.evaluate(spec.flops, config.dims)
        calls.append(_Call(config, of, read_counts(said, places), fault, flops, policy.peaks))
        if calls[-1].hangs:
            break  # each of the others would take as long
    return _verdict(calls)


def _times(counted: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """What a call would take on one GPU: by its peaks, and by a fit if there is one."""
    peaks = Peaks(**{name: value for name, value in told.items() if name != _FITTED})
    times: dict[str, float | None] = {"fitted_ns": None, "work_ns": None}
    if table := told.get(_FITTED):
        parts = read_fitted(table, peaks.processors).parts(sums(counted))
        whole = sum(parts.values())
        times = {"fitted_ns": round(whole, 1), "work_ns": round(whole - parts[LAUNCH], 1)}
    return {**modelled(counted, peaks).to_json(), **times}


def _interpreted(spec: Spec) -> bool:
    """Whether the runner counts, as for Triton; HIP kernels are built to count themselves."""
    return spec.candidate.abi == "python"


def _configs(spec: Spec, policy: AnalyzePolicy) -> list[tuple[Config, Config]]:
    """The reduced visible configs, each once, with the config that it was made from."""
    ground = Ground.of(spec)
    elements = min(policy.elements, spec.elements)
    small = [(edges.reduced(config, ground, elements), config) for config in spec.configs]
    return list({config.name: (config, of) for config, of in reversed(small)}.values())[::-1]


def _call(
    spec: Spec,
    policy: AnalyzePolicy,
    launcher: Launcher,
    patience: Patience,
    call: tuple[Config, Mapping[str, Tensor]],
) -> tuple[str, CandidateFault | None]:
    """The output of one call in its own runner, and its failure. Raises MachineFault."""
    started = time.monotonic()
    config, inputs = call
    try:
        runner_policy = RunnerPolicy(
            call_seconds=policy.call_seconds,
            life_seconds=patience.left_seconds,
            stderr_bytes=_KEPT_BYTES,
            counted=_interpreted(spec),
        )
        with launcher.open(spec.candidate, spec.signature, runner_policy) as runner:
            runner.load(config, 1)
            runner.batch([inputs])
            return runner.said(), None
    except CandidateFault as fault:
        return fault.detail, fault
    finally:
        patience.spent_seconds += time.monotonic() - started


def _refused(path: Path) -> Verdict | None:
    """The verdict if the instrumented build failed; None if it compiled."""
    try:
        compiled = read_verdict(path, "compile")
    except (OSError, ValueError) as error:
        raise SpecError(f"the instrumented build of the candidate is missing: {error}") from None
    if compiled["verdict"] == PASS:
        return None
    summary = f"cannot be instrumented: {compiled['summary']}"
    files = {ANALYSIS: _analysis(())}
    return Verdict(GATE, FAIL, compiled["reason"], summary, compiled["detail"], files=files)


def _findings(calls: Sequence[_Call]) -> dict[str, Any]:
    told = [(call.config.name, call.counts) for call in calls]
    return {f"warp{warp}": [item.to_json() for item in find(told, warp)] for warp in _WARPS}


def _analysis(calls: Sequence[_Call]) -> bytes:
    told = [call.told for call in calls]
    return canonical_json({"schema": 1, "calls": told, "findings": _findings(calls)})


def _verdict(calls: Sequence[_Call]) -> Verdict:
    cases = [call.case for call in calls]
    extra = {"findings": _findings(calls)}
    files = {ANALYSIS: _analysis(calls)}
    failed = next((call for call in calls if call.fault), None)
    if failed is None or failed.fault is None:
        kernels = {access.kernel for call in calls for access in call.counts.accesses}
        summary = f"counted {len(kernels)} kernel{'s' * (len(kernels) != 1)} in {len(calls)} config"
        return Verdict(
            GATE, PASS, "", f"{summary}{'s' * (len(calls) != 1)}", "", cases, extra, files
        )
    fault = failed.fault
    outcome = REJECTED if fault.rejected else FAIL
    summary, _, _ = fault.detail.partition("\n")
    detail = f"{summary}\n  in {failed.config.name}"
    return Verdict(GATE, outcome, fault.reason.value, summary, detail, cases, extra, files)
