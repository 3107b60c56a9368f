"""The samples stage: draws under many seeds are right together, and new for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from base.program import CandidateFault, Config
from truth.assessment import Call, Tensors
from truth.finding import Finding
from truth.judge import Case, Judge
from truth.stage import StageReport, report

STAGE = "samples"
LEAST, MOST = 8, 128
_DRAWS = {"hip": 1 << 16, "torch": 1 << 16, "python": 1 << 14, "call": 1 << 16}
_DRAWS_ELSEWHERE = 1 << 22
_BATCH = 8
ELEMENTS_ELSEWHERE = 1 << 16
"""The largest tensor of these calls on a device: there are many, and inputs take time to draw."""


def stage(judge: Judge, configs: Sequence[Config], abi: str) -> StageReport:
    """Call the same config with different seeds, and test all draws together.

    The wanted number of draws determines the number of calls, within limits. The calls differ only
    in the seed input. This detects a candidate that ignores the seed, and errors that are too
    small to show in a single call.

    Args:
        abi: the candidate's, if calls are slow; else empty.
    """
    tried: list[str] = []
    for config in configs:
        tried.append(config.name)
        finding = _finding(judge, config, _DRAWS.get(abi, _DRAWS_ELSEWHERE))
        if not finding.ok:
            return report(STAGE, Case(STAGE, config), finding, tuple(tried))
    return report(STAGE, Case(STAGE, configs[0]), Finding(), tuple(tried))


def _finding(judge: Judge, config: Config, wanted: int) -> Finding:
    sampled = judge.assessor.sampled
    first = judge.call(Case(STAGE, config))
    draws = min(max(first.expected[name].numel(), 1) for name in sampled)
    count = min(max(wanted // draws, LEAST), MOST)
    calls = [_reseeded(judge, first, number) for number in range(count)]
    made: list[Tensors] = []
    try:
        for start in range(0, count, _BATCH):
            batch = [call.inputs for call in calls[start : start + _BATCH]]
            made += judge.candidate.run(config, batch)
    except CandidateFault as fault:
        return Finding.of(fault)
    for name in sampled:
        pairs = [(call, outputs[name]) for call, outputs in zip(calls, made, strict=True)]
        if said := judge.assessor.samples.together(pairs, name):
            return judge.assessor.drawn_wrong(first, name, said)
    return Finding()


def _reseeded(judge: Judge, first: Call, number: int) -> Call:
    """The first call with another one's seeds."""
    other = judge.inputs(Case(STAGE, first.config, round=number))
    seeds = {name: other[name] for name in judge.assessor.sampled.values()}
    return replace(first, inputs={**first.inputs, **seeds})
