"""The sanitize gate: watches the candidate on small configs for mistakes that results may hide.

A diagnosis, not a protection: its reports have passed through the candidate's sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from base import seeds
from base.program import CandidateFault, Config
from base.sampler import Ground
from base.seeds import Seeds
from base.spec import Spec, SpecError, config_name, read_policy
from correctness import edges
from runners.launcher import Launcher
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, REJECTED, Verdict, read_verdict
from truth.oracle import Oracle

from sanitize.examiner import Examiner, SanitizePolicy
from sanitize.findings import Finding, distinct
from sanitize.instrumented import Instrumented
from sanitize.places import Places
from sanitize.watched import Watched

GATE = "sanitize"
_PLACES = ".places.json"
_COMPILED = "compile.json"
_SHOWN = 10


@dataclass(frozen=True)
class _Tried:
    """The result of one config."""

    config: Config
    findings: Sequence[Finding]
    fault: CandidateFault | None

    @property
    def hangs(self) -> bool:
        """Whether the call timed out."""
        return self.fault is not None and self.fault.reason is Reason.TIMEOUT

    def to_json(self) -> dict[str, object]:
        reason = self.fault.reason.value if self.fault else ""
        return {"config": self.config.name, "findings": len(self.findings), "fault": reason}


def run(spec: Spec, launcher: Launcher, sanitizer: Path | None = None) -> Verdict:
    """Look for mistakes that results may hide; on a device, with the tool in ``sanitizer``.

    Raises SpecError, TaskFault and MachineFault, if nothing was judged.
    """
    policy = read_policy(SanitizePolicy, spec.policy)
    if refusal := _refused(Path(spec.candidate.path).with_name(_COMPILED)):
        return refusal
    examiner = _examiner(spec, policy, launcher, sanitizer)
    oracle = Oracle.of(spec)
    seed = Seeds(spec.salt, seeds.artifact_digest([Path(spec.candidate.path)]), GATE)
    tried = []
    for config in _configs(spec, policy):
        inputs = oracle.inputs(config, seed.generator(GATE, config.name))
        tried.append(_Tried(config, *examiner.examine(config, inputs)))
        if tried[-1].hangs:
            break  # each of the others would take as long
    return _verdict(tried)


def _examiner(
    spec: Spec, policy: SanitizePolicy, launcher: Launcher, sanitizer: Path | None
) -> Examiner:
    """The examiner for the platform of ``spec``."""
    try:
        places = Places.read(Path(spec.candidate.path).with_suffix(_PLACES))
    except (OSError, ValueError) as error:
        raise SpecError(f"the instrumented build of the candidate is missing: {error}") from None
    if not spec.candidate.on_device:
        return Instrumented(spec, policy, launcher, places)
    if sanitizer is None:
        raise SpecError("no sanitizer is available for this platform")
    return Watched(spec, policy, launcher, places, sanitizer)


def _configs(spec: Spec, policy: SanitizePolicy) -> list[Config]:
    """The reduced visible configs, one more for each other dtype, and edges of the space."""
    ground = Ground.of(spec)
    elements = min(policy.elements, spec.elements)
    configs = [edges.reduced(config, ground, elements) for config in spec.configs]
    shown = {config.dtype for config in configs}
    for dtype in spec.space.dtypes:
        if dtype not in shown:
            name = config_name(dtype, configs[0].dims)
            configs.append(replace(configs[0], name=name, dtype=dtype))
    small = replace(ground, elements=elements)
    configs += edges.edges(small, spec.salt, policy.edges)
    return list({config.name: config for config in configs}.values())


def _refused(path: Path) -> Verdict | None:
    """The verdict on a source that fails to compile when instrumented; None if it compiles."""
    try:
        compiled = read_verdict(path, "compile")
    except (OSError, ValueError) as error:
        raise SpecError(f"the instrumented build of the candidate is missing: {error}") from None
    if compiled["verdict"] == PASS:
        return None
    summary = f"cannot be instrumented: {compiled['summary']}"
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
