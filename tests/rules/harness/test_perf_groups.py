"""Which configs share a process where a device's memory is what limits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from base.program import Config
from perf.measure import Plan, Round
from perf.on_device import round_of

MOST = 10


class Recorder:
    """Stands for a meter: notes which plans came together."""

    def __init__(self, baselines: Mapping[str, object]) -> None:
        self.baselines = baselines
        self.together: list[list[str]] = []

    def round(self, number: int, plans: Sequence[Plan], samples: int) -> Round:
        self.together.append([plan.config.name for plan in plans])
        return {plan.config.name: {"candidate": [], "baseline": []} for plan in plans}


def _plan(name: str, slots: int) -> Plan:
    return Plan(Config(name, {}, "f32", {}), slots)


def _together(plans: Sequence[Plan], baselines: Mapping[str, object]) -> list[list[str]]:
    recorder = Recorder(baselines)
    found = round_of(
        cast("Any", recorder), 1, plans, 2, lambda group: sum(p.slots for p in group) <= MOST
    )
    assert list(found) == [plan.config.name for plan in plans]
    return recorder.together


def test_neighbours_share_a_process_as_long_as_they_fit() -> None:
    plans = [_plan("a", 4), _plan("b", 6), _plan("c", 1), _plan("d", 99), _plan("e", 2)]

    assert _together(plans, {}) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_what_has_a_baseline_of_its_own_is_alone() -> None:
    plans = [_plan("a", 1), _plan("b", 1), _plan("c", 1)]

    assert _together(plans, dict.fromkeys("abc", object())) == [["a"], ["b"], ["c"]]
