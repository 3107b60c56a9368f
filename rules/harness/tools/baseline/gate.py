"""Chooses the form in which a task's PyTorch baseline is timed: once, for all candidates.

``baseline.json`` says for each config which mode counts, and how long each mode takes; and where
the seconds of the choice went.
``compiled.json`` holds the compiler's output for the modes that count, so that later gates need not
compile again. The spec names the baseline on both sides, as there is no candidate.
"""

from __future__ import annotations

import secrets
import statistics
from collections import Counter
from collections.abc import Mapping
from typing import Any

from base.program import CandidateFault, Config, MachineFault
from base.spec import Spec
from perf.baseline_fault import baseline_fault
from perf.choice import COUNTED, EAGER, Choice, Looks
from perf.chooser import LOOKS, TUNINGS
from perf.device_gate import DeviceGate
from perf.gate import policy_of
from terms.perf import PerfPolicy
from terms.verdict import PASS, Verdict, canonical_json, number
from truth import compiled_cache
from truth.judge import Case, Judge
from truth.side import Launching, Running

GATE = "baseline"
CHOICE, COMPILED = "baseline.json", "compiled.json"
ELSEWHERE = 1.05
"""The factor by which times may differ in other processes and on machines of the same kind."""

_EMPTY_BATCHES = 5


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Choose the form and return a verdict, always PASS, with both files.

    Raises SpecError, TaskFault if the baseline fails uncompiled, and MachineFault if it is wrong.
    """
    policy = policy_of(spec)
    compiled: Mapping[str, str] = {}
    seconds: Mapping[str, float] = {}
    if spec.baseline.on_device:
        gate = DeviceGate(spec, launcher, policy)
        gate.demand_memory()
        chooser = gate.chooser(TUNINGS)
        chosen = chooser.choose()
        if any(chosen.modes.values()) and chooser.compile_again(chosen):
            compiled = compiled_cache.collected(gate.baseline_cache)
        chooser.record()
        choice, looks, seconds = chooser.choice, chooser.looks, gate.seconds
    else:
        looks = _on_host(spec, launcher, policy)
        choice = Choice.fastest(spec.configs, looks)
    files = {
        CHOICE: canonical_json({**choice.to_json(), "seconds": dict(seconds)}),
        COMPILED: canonical_json(dict(compiled)),
    }
    return _verdict(choice, looks, files)


def _on_host(spec: Spec, launcher: Launching, policy: PerfPolicy) -> dict[str, Looks]:
    """Time the baseline as it is: on the processor it is not compiled."""
    judge = Judge.assemble(spec, launcher, policy)
    drawn = policy.draw or secrets.randbits(48)
    looks = {}
    try:
        with judge.baseline.running() as runner:
            for config in spec.configs:
                looks[config.name] = _look(judge, runner, config, drawn)
    except CandidateFault as fault:
        raise baseline_fault(spec.baseline, fault) from fault
    return looks


def _look(judge: Judge, runner: Running, config: Config, drawn: int) -> Looks:
    """Time and verify single calls. Raises MachineFault for a wrong one."""
    runner.load(config, 1)
    empty = statistics.median(runner.empty().wall_ns for _ in range(_EMPTY_BATCHES))
    times = []
    for number_ in range(LOOKS + 1):  # the first one allocates
        call = judge.call(Case(GATE, config, round=drawn << 8 | number_, epoch=drawn))
        batch = runner.batch([call.inputs])
        if wrong := judge.assessor.wrong_by_itself(call, batch.outputs[0]):
            raise MachineFault(f"the baseline gives wrong results here: {wrong}")
        times.append(float(max(1, round(batch.wall_ns - empty))))
    return Looks({"": times[1:]})


def _verdict(choice: Choice, looks: Mapping[str, Looks], files: Mapping[str, bytes]) -> Verdict:
    cases = [
        {"config": name, "times": dict(told), **_gain(looks[name])}
        for name, told in choice.evidence.items()
    ]
    counts = Counter(mode or EAGER for mode in choice.modes.values())
    summary = ", ".join(f"{mode} for {count}" for mode, count in sorted(counts.items()))
    configs = f"{len(cases)} config{'s' if len(cases) > 1 else ''}"
    return Verdict(GATE, PASS, summary=f"{summary} of {configs}", cases=cases, files=dict(files))


def _gain(looks: Looks) -> dict[str, Any]:
    """How much faster compiling makes the baseline, with bounds; empty if unknown.

    A replay may tune no better than the worst of these tunings.
    """
    eager, compiled = (looks.times.get(mode) for mode in COUNTED)
    if not eager or not compiled:
        return {}
    return {
        "speedup": number(statistics.median(eager) / statistics.median(compiled)),
        "low": number(min(eager) / max([*compiled, *looks.tunings]) / ELSEWHERE),
        "high": number(max(eager) / min(compiled) * ELSEWHERE),
    }
