"""The sanitize gate: small configs in an instrumented build of the candidate.

It diagnoses and holds nobody off: what it reports was written in the candidate's process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from base import seeds
from base.program import CandidateFault, Config, Reason, RunnerPolicy
from base.sampler import Ground
from base.seeds import Seeds
from base.spec import Spec, SpecError, config_name, read_policy
from base.verdict import FAIL, PASS, REJECTED, Verdict, read_verdict
from correctness import edges
from runners.launcher import Launcher
from torch import Tensor
from truth.oracle import Oracle

from sanitize.findings import Finding, distinct, read_findings
from sanitize.places import Places

GATE = "sanitize"
_PLACES = ".places.json"
_COMPILED = "compile.json"
_SHOWN = 10
_KEPT_BYTES = 1 << 17  # of what a candidate prints: all findings of one process


@dataclass(frozen=True)
class SanitizePolicy:
    """How much is tried.

    Attributes:
        elements: cap on every tensor: an instrumented kernel takes many times as long.
        edges: how many configs at the edges of the space are tried, besides the visible ones.
        call_seconds: how long one call may take.
        total_seconds: how long all calls may take together; less than a gate.
    """

    elements: int = 4096
    edges: int = 6
    call_seconds: float = 60.0
    total_seconds: float = 400.0


@dataclass(frozen=True)
class _Tried:
    """What came of one config."""

    config: Config
    findings: Sequence[Finding]
    fault: CandidateFault | None

    def to_json(self) -> dict[str, object]:
        reason = self.fault.reason.value if self.fault else ""
        return {"config": self.config.name, "findings": len(self.findings), "fault": reason}


class _Gate:
    """One judging: each config in a runner of its own, for a fault ends what comes after it."""

    def __init__(
        self, spec: Spec, policy: SanitizePolicy, launcher: Launcher, places: Places
    ) -> None:
        self._spec = spec
        self._policy = policy
        self._launcher = launcher
        self._places = places
        self._oracle = Oracle(spec.reference, spec.signature)
        digest = seeds.artifact_digest([Path(spec.candidate.path)])
        self._seeds = Seeds(spec.salt, digest, GATE)
        self._spent_seconds = 0.0

    def configs(self) -> list[Config]:
        """The visible configs made small, one for every other dtype, and edges of the space."""
        ground = Ground.of(self._spec)
        elements = min(self._policy.elements, self._spec.elements)
        configs = [edges.reduced(config, ground, elements) for config in self._spec.configs]
        shown = {config.dtype for config in configs}
        for dtype in self._spec.space.dtypes:
            if dtype not in shown:
                name = config_name(dtype, configs[0].dims)
                configs.append(replace(configs[0], name=name, dtype=dtype))
        small = replace(ground, elements=elements)
        configs += edges.edges(small, self._spec.salt, self._policy.edges)
        return list({config.name: config for config in configs}.values())

    def run(self, config: Config) -> _Tried:
        """One call of the candidate. Raises TaskFault and MachineFault."""
        generator = self._seeds.generator(GATE, config.name)
        inputs = self._oracle.inputs(config, generator)
        started = time.monotonic()
        fault = None
        try:
            said = self._call(config, inputs)
        except CandidateFault as caught:
            fault, said = caught, caught.detail
        self._spent_seconds += time.monotonic() - started
        return _Tried(config, read_findings(said, self._places), fault)

    def _call(self, config: Config, inputs: Mapping[str, Tensor]) -> str:
        left = self._policy.total_seconds - self._spent_seconds
        if left <= 0:
            what = f"the candidate used up the {self._policy.total_seconds:g} s of all its calls"
            raise CandidateFault(Reason.TIMEOUT, what)
        policy = RunnerPolicy(
            call_seconds=self._policy.call_seconds, life_seconds=left, stderr_bytes=_KEPT_BYTES
        )
        with self._launcher.open(self._spec.candidate, self._spec.signature, policy) as runner:
            runner.load(config, 1)
            runner.batch([inputs])
            return runner.said()


def run(spec: Spec, launcher: Launcher) -> Verdict:
    """Look for mistakes that results need not show.

    Raises SpecError, TaskFault and MachineFault, where nothing was judged.
    """
    policy = read_policy(SanitizePolicy, spec.policy)
    if refusal := _refused(Path(spec.candidate.path).with_name(_COMPILED)):
        return refusal
    try:
        places = Places.read(Path(spec.candidate.path).with_suffix(_PLACES))
    except (OSError, ValueError) as error:
        raise SpecError(f"the candidate is not instrumented: {error}") from None
    gate = _Gate(spec, policy, launcher, places)
    return _verdict([gate.run(config) for config in gate.configs()])


def _refused(path: Path) -> Verdict | None:
    """What is wrong where the source compiles, but not when it is instrumented."""
    try:
        compiled = read_verdict(path, "compile")
    except (OSError, ValueError) as error:
        raise SpecError(f"the candidate is not instrumented: {error}") from None
    if compiled["verdict"] == PASS:
        return None
    summary = f"not to be instrumented: {compiled['summary']}"
    return Verdict(GATE, FAIL, compiled["reason"], summary, compiled["detail"])


def _verdict(tried: Sequence[_Tried]) -> Verdict:
    cases = [item.to_json() for item in tried]
    findings = distinct(finding for item in tried for finding in item.findings)
    extra = {"findings": [finding.to_json() for finding in findings]}
    if findings:
        first, others = findings[0], len(findings) - 1
        more = f" (and {others} more)" if others else ""
        detail = "\n".join(map(str, findings[:_SHOWN]))
        return Verdict(GATE, FAIL, first.kind.value, f"{first}{more}", detail, cases, extra)
    failed = next((item for item in tried if item.fault), None)
    if failed is None or failed.fault is None:
        return Verdict(GATE, PASS, "", f"nothing found in {len(tried)} configs", "", cases, extra)
    fault = failed.fault
    outcome = REJECTED if fault.rejected else FAIL
    summary, _, _ = fault.detail.partition("\n")
    detail = f"{fault.detail}\n  in {failed.config.name}"
    return Verdict(GATE, outcome, fault.reason.value, summary, detail, cases, extra)
