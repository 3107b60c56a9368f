"""The determinism stage: repeating a call gives the same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from base.program import CandidateFault, Config
from terms.reasons import Reason
from torch import Tensor
from truth.assessment import Call, Tensors
from truth.finding import Finding
from truth.judge import Case, Judge
from truth.side import Side
from truth.stage import StageReport, report

STAGE = "determinism"
_SOUND = (Reason.INCOMPLETE_OUTPUT, Reason.NON_FINITE)


def stage(judge: Judge, configs: Sequence[Config], repeats: int, *, bitwise: bool) -> StageReport:
    """Repeat one call of each config, in slots of one batch, and compare.

    If the baseline's own repeats differ, or ``bitwise`` is false, differing bits are accepted if
    every repeat is within tolerance.
    """
    tried: list[str] = []
    for config in configs:
        case = Case(STAGE, config)
        tried.append(config.name)
        finding = _repeat(judge, judge.call(case), repeats, bitwise=bitwise)
        if not finding.ok:
            return report(STAGE, case, finding, tuple(tried))
    return report(STAGE, Case(STAGE, configs[0]), Finding(), tuple(tried))


def _repeat(judge: Judge, call: Call, repeats: int, *, bitwise: bool) -> Finding:
    try:
        outputs = judge.candidate.run(call.config, [call.inputs] * repeats)
    except CandidateFault as fault:
        return Finding.of(fault)
    different = difference(outputs)
    if not different:
        return Finding()
    theirs = _baseline(judge.baseline, call, repeats)
    slack: Mapping[str, float] = judge.assessor.excesses(call, theirs[0]) if theirs else {}
    wrong = [f for f in (judge.assessor.assess(call, o, slack) for o in outputs) if not f.ok]
    for finding in wrong:
        if finding.reason in _SOUND:
            return finding
    if bitwise and not (theirs and difference(theirs)):
        return Finding(Reason.NONDETERMINISTIC, different)
    return wrong[0] if wrong else Finding()


def _baseline(side: Side, call: Call, repeats: int) -> Sequence[Tensors]:
    try:
        return side.run(call.config, [call.inputs] * repeats)
    except CandidateFault:
        return ()


def difference(outputs: Sequence[Tensors]) -> str:
    """Where outputs of equal calls differ in any bit; empty if they are equal."""
    for name, first in outputs[0].items():
        for other in outputs[1:]:
            unequal = _bits(first) != _bits(other[name])
            if bool(unequal.any()):
                count = int(unequal.sum().item())
                at = tuple(int(i) for i in torch.nonzero(unequal)[0])
                return (
                    f"output '{name}' differs between equal calls in {count} of "
                    f"{first.numel()} elements\n  first at [{', '.join(map(str, at))}]: "
                    f"{first[at].item():.9g}, then {other[name][at].item():.9g}"
                )
    return ""


def _bits(tensor: Tensor) -> Tensor:
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(widths[tensor.element_size()])
