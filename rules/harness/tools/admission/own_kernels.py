"""Whether a task's own kernels are correct over its whole shape space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from base import sampler
from base.program import CandidateFault, Signature
from base.sampler import Drawn
from base.spec import Spec, largest_tensor
from correctness import determinism
from truth.finding import Finding
from truth.judge import Case, Judge
from truth.side import Side
from truth.stage import label

from admission.subject import Observed, Subject

REPEATS = 3
_ELEMENTS = {"hip": 16384, "torch": 16384, "python": 4096, "call": 16384}
_EXTENTS = {"hip": 4096, "torch": 4096, "python": 128, "call": 4096}
_ELEMENTS_ELSEWHERE = 1 << 20
_MORE_CYCLES = 3
_DRAWN = 200
_TELLING = ("scaled_up", "spikes", "default")


@dataclass(frozen=True)
class Ran:
    """The results of a task's kernels on the visible configs.

    Attributes:
        problem: the first failure; empty if none.
        slacks: by config, the baseline's error for each draw, in allowances.
    """

    problem: str
    slacks: Mapping[str, list[Mapping[str, float]]]


def visible(judge: Judge, subject: Subject, kernels: Mapping[str, Side]) -> Ran:
    """Run the kernels on the draws of the visible configs. Raises MachineFault."""
    slacks: dict[str, list[Mapping[str, float]]] = {}
    for observed in subject.observed:
        slack = slacks[observed.config.name] = []
        for who, side in kernels.items():
            if found := _draws(judge, observed, side, slack):
                return Ran(f"the {who} fails on {observed.config.name}\n{found}", slacks)
    return Ran("", slacks)


def nondeterministic(subject: Subject, baseline: Side) -> str:
    """Where equal calls of the baseline differ, in one process or in two. Raises MachineFault."""
    for observed in subject.observed:
        inputs, config = observed.calls[0].inputs, observed.config
        try:
            first = baseline.run(config, [inputs] * REPEATS)
            baseline.kill()
            again = baseline.run(config, [inputs])
        except CandidateFault as fault:
            return f"the baseline fails when it is repeated: {fault.detail}"
        if different := determinism.difference([*first, *again]):
            return f"{different}\n  in {config.name}"
    return ""


def draw(spec: Spec, samples: int) -> tuple[Drawn, ...]:
    """Up to ``samples`` configs of the unseen sampler, of sizes that are cheap to run.

    They are the most telling of at least ``_DRAWN`` configs.
    """
    ground = sampler.Ground.of(spec)
    abi = spec.candidate.abi
    if spec.platform == "cpu":
        small = replace(
            ground,
            elements=min(ground.elements, _ELEMENTS[abi]),
            extent=min(ground.extent, _EXTENTS[abi]),
        )
    else:
        small = replace(ground, elements=min(ground.elements, _ELEMENTS_ELSEWHERE))
    # If the space has no room for some classes, draw more cycles.
    cycles = math.ceil(max(samples, _DRAWN) / len(sampler.CLASSES))
    drawn = sampler.draw(small, spec.salt, cycles).configs
    if len(drawn) < samples:
        drawn = sampler.draw(small, spec.salt, cycles * _MORE_CYCLES).configs
    return telling(spec.signature, drawn)[:samples]


def telling(signature: Signature, drawn: tuple[Drawn, ...]) -> tuple[Drawn, ...]:
    """The same configs, starting with those on which kernels have failed most often.

    Each distribution in turn gives the config with the smallest tensors, where nothing averages
    out, and the one with the longest axis, where sums overflow and lose most.
    """
    groups: dict[str, list[Drawn]] = {name: [] for name in _TELLING}
    for item in drawn:
        groups.setdefault(item.distribution, []).append(item)
    told: list[Drawn] = []
    while any(groups.values()):
        for group in filter(None, groups.values()):
            sizes = [largest_tensor(signature, item.config.dims) for item in group]
            told.append(group.pop(sizes.index(min(sizes))))
            longest = [max(item.config.dims.values(), default=0) for item in group]
            if group:
                told.append(group.pop(longest.index(max(longest))))
    return tuple(told)


def sampled(judge: Judge, kernels: Mapping[str, Side], drawn: tuple[Drawn, ...]) -> str:
    """The first drawn config on which a kernel fails, and how. Raises MachineFault."""
    for item in drawn:
        case = Case("admission", item.config, item.distribution)
        call = judge.call(case)
        if not judge.assessor.defined(call):
            continue  # such as 0 / 0, where half of the inputs are zero
        observed = Observed(item.config, (call,), {})
        slack: list[Mapping[str, float]] = []
        for who, side in kernels.items():
            if found := _draws(judge, observed, side, slack):
                return f"the {who} fails on {label(case)} ({item.class_})\n{found}"
    return ""


def _draws(judge: Judge, observed: Observed, side: Side, slack: list[Mapping[str, float]]) -> str:
    """The problem of a kernel's results; the first kernel's errors become the slack."""
    made = side.run_each(observed.config, [call.inputs for call in observed.calls])
    for index, (call, outputs) in enumerate(zip(observed.calls, made, strict=True)):
        if isinstance(outputs, CandidateFault):
            return f"{outputs.reason.value}: {outputs.detail}"
        if len(slack) == index:
            slack.append(judge.assessor.excesses(call, outputs))
        finding = judge.assessor.assess(call, outputs, slack[index])
        if not finding.ok:
            return _words(finding)
    return ""


def _words(finding: Finding) -> str:
    assert finding.reason is not None
    return f"{finding.reason.value}: {finding.detail}"
