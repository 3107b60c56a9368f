"""What a process of the perf gate on a device is asked, and what its times become."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
from base.program import Batch, CandidateFault, Config, Gated
from gpu import session
from perf import device_state, gated
from perf.device_budget import GIB, Budget
from perf.gate_samples import GATE_CLOCK, HOST_CLOCK, Empties, GateSample, SidePlan, Taken
from perf.gated import _AHEAD, MORE_DOUBTS, GatedMeter
from terms.reasons import Reason
from truth.oracle import TaskFault

CONFIGS = [Config(f"f32 n={n}", {"n": n}, "f32", {}) for n in (1024, 2048)]
SLOTS, EMPTY_NS, CALL_NS, HOST_NS = 10, 1_000, 500, 90_000


class Runner:
    """A runner whose calls take ``CALL_NS``; whether it waits behind the gate is ``holds``."""

    repeated: ClassVar[list[int]] = []

    def __init__(self, log, *, holds=True, doubts=()):
        self.log = log
        self.holds = holds
        self.doubts = [*doubts]
        self.loaded = None

    def load(self, config, slots):
        self.log.append(f"load {config.name}")
        self.loaded = config, slots

    def has_loaded(self, config, slots):
        return self.loaded == (config, slots)

    def batch(self, inputs):
        return Batch(tuple({} for _ in inputs), HOST_NS, HOST_NS + EMPTY_NS)

    def repeat(self, inputs, slots):
        self.repeated.append(slots)
        return self.batch([inputs])

    def empty(self):
        return Batch((), 0, EMPTY_NS)

    def gated(self, inputs, *, repeats=1, at_once=False):
        self.log.append("at once" if at_once else "gate")
        open_ns = EMPTY_NS + CALL_NS * len(inputs) * repeats
        doubt = self.doubts.pop(0) if inputs and self.doubts else 0
        outputs = self.batch(inputs).outputs
        return Gated(outputs, self.holds, open_ns + doubt, open_ns, 7, doubt)

    def replay(self, inputs):
        self.log.append("graph")
        return Batch(tuple({} for _ in inputs), CALL_NS * len(inputs), 0)


class Side:
    """A program; each process is a ``Runner``."""

    def __init__(self, name, log, **how):
        self.program = SimpleNamespace(path="/candidate/kernel.so")
        self._name, self._log, self._how = name, log, how

    def in_mode(self, mode):
        return self

    @contextmanager
    def running(self):
        self._log.append(f"{self._name} starts")
        yield Runner(self._log, **self._how)
        self._log.append(f"{self._name} ends")


@pytest.fixture
def log():
    return []


@pytest.fixture
def cases():
    """What the judge was asked for."""
    return []


@pytest.fixture
def made(monkeypatch, log, cases):
    """A function that returns a meter; ``how`` is what its candidate's runners are."""
    monkeypatch.setattr(session, "give_back", lambda: None)
    monkeypatch.setattr(device_state, "reading", dict)
    monkeypatch.setattr(Budget, "note", lambda _: None)
    doubles = {
        "Checking": SimpleNamespace(seconds=lambda *_: 0.25),
        "Verifier": SimpleNamespace(
            add=lambda verified, *_, **__: verified.note("y", 3.0),
            refuse=lambda *_: None,
            finding=lambda _call, _outputs, slack: SimpleNamespace(ok=slack == {"y": 3.0}),
        ),
        "Untimed": SimpleNamespace(
            place=lambda _: 0,
            mix=lambda _: log.append("mix"),
            follow=lambda _: log.append("follow"),
            refuse=lambda *_: None,
        ),
    }
    for name, double in doubles.items():
        monkeypatch.setattr(gated, name, lambda *_, double=double: double)

    def called(case):
        cases.append(case)
        return SimpleNamespace(inputs={}, case=case)

    def make(*, repeatable=True, **how):
        judge = SimpleNamespace(
            baseline=Side("baseline", log),
            candidate=Side("candidate", log, **how),
            repeatable=repeatable,
            remember=lambda _: None,
            call=called,
            host_seconds=lambda _: 0.5,
        )
        held = Budget.of(8 * GIB, 8 * GIB, 1.0)
        return GatedMeter(judge, None, held, draw=1, warm=False, samples=2)

    return make


def planned(side, runner, config):
    """Ten calls behind the gate."""
    return SidePlan(CALL_NS, SLOTS, GATE_CLOCK)


def test_the_sides_take_turns_and_an_empty_batch_is_subtracted(made, log):
    meter = made()

    rounds = [meter.round(number, CONFIGS, planned) for number in (1, 2)]

    assert [entry for entry in log if entry.endswith("starts")] == [
        f"{side} starts" for side in ("candidate", "baseline", "baseline", "candidate")
    ]
    for found in rounds:
        for config in CONFIGS:
            for side in ("candidate", "baseline"):
                taken = found[config.name][side]
                times = {sample.per_call_ns for sample in (*taken.samples, *taken.at_once)}
                assert (len(taken.samples), len(taken.at_once), times) == (2, 1, {CALL_NS})
                assert {sample.clock for sample in taken.samples} == {GATE_CLOCK}


def test_the_baseline_begins_where_calls_are_too_large_to_be_kept(made, log):
    meter = made()
    meter.large = frozenset({CONFIGS[-1].name})

    meter.round(1, CONFIGS, planned)

    started = [entry for entry in log if entry.endswith("starts")]
    assert started == ["baseline starts", "candidate starts"]


def test_calls_that_fill_the_memory_have_fewer_empty_batches(made):
    usual, large = made(), made()
    large.large = frozenset({CONFIGS[0].name})
    for meter in (usual, large):
        meter.round(1, CONFIGS, planned)

    for side in ("candidate", "baseline"):
        assert len(usual.empties.sides[side].settled) == 3 * len(large.empties.sides[side].settled)
        assert len(usual.empties.sides[side].at_once) == 3 * len(large.empties.sides[side].at_once)
        assert large.empties.sides[side].at_once


def test_a_batch_that_the_judge_saw_late_is_read_again(made):
    found = made(doubts=[90_000, 80_000, 0, 7_000]).round(1, CONFIGS[:1], planned)

    taken = found[CONFIGS[0].name]["candidate"]
    first, *others = sorted((*taken.samples, *taken.at_once), key=lambda one: -one.attempts)
    assert (first.attempts, first.per_call_ns) == (3, CALL_NS)
    assert {one.attempts for one in others} == {1}
    assert max(one.doubt_ns for one in others) == 7_000


@pytest.mark.parametrize(
    ("times", "agree"),
    [
        ([1_000, 1_004], True),
        ([1_000, 1_030], False),
        ([1_000, 3_000, 1_004], True),  # one that was disturbed
        ([1_000, 3_000, 1_004, 2_000], False),
        ([1_000, 1_050, 1_100, 1_150, 1_200, 1_250], False),  # the data decide
    ],
)
def test_a_median_counts_if_most_batches_are_near_it(times, agree):
    taken = Taken([GateSample(1, GATE_CLOCK, time, time, 0, 0) for time in times])

    assert taken.agree(0.005) is agree


def test_a_candidate_that_disturbs_the_judge_soon_gets_no_other_reading(made):
    found = made(doubts=[90_000] * 99).round(1, CONFIGS[:1], planned)

    taken = found[CONFIGS[0].name]["candidate"]
    readings = [one.attempts for one in (*taken.samples, *taken.at_once)]
    assert sum(readings) - len(readings) == MORE_DOUBTS
    assert all(one.doubtful for one in taken.samples)


def test_empty_batches_of_all_processes_are_subtracted_in_the_end():
    empties = Empties()
    empties.sides["candidate"].settled.extend([900, 1_000, 5_000])
    early = GateSample(SLOTS, GATE_CLOCK, 1, 10_000, 0, 0)
    taken = Taken(samples=[early], at_once=[replace(early, at_once=True)])
    empties.sides["baseline"].settled.extend([1_200] * 9)
    empties.sides["baseline"].at_once.extend([3_000])

    settled = empties.applied("candidate", taken)

    assert [one.reported_ns for one in (*settled.samples, *settled.at_once)] == [9_000, 7_000]
    assert settled.verified is taken.verified
    empties.sides["baseline"].settled.clear()
    assert empties.applied("candidate", taken).samples[0].reported_ns == 10_000


def test_graphs_are_timed_once_after_all_else_and_are_as_exact_as_timed_calls(made, log):
    meter = made()

    for number in (1, 2):
        meter.round(number, CONFIGS, planned)

    assert meter.graphs == {
        config.name: {"candidate": CALL_NS, "baseline": CALL_NS} for config in CONFIGS
    }
    first = log[: log.index("candidate ends")]
    assert first[first.index("graph") :] == ["graph", f"load {CONFIGS[1].name}", "graph"]
    assert log.count("graph") == 4


def test_calls_of_a_round_have_one_state_and_those_of_the_next_another(made, cases):
    meter = made()

    states = []
    for number in (1, 2):
        meter.round(number, CONFIGS, planned)
        states.append({case.epoch for case in cases})
        cases.clear()

    assert [len(epochs) for epochs in states] == [1, 1]
    assert states[0].isdisjoint(states[1])


def test_calls_that_change_their_inputs_are_never_repeated(made, log, cases):
    Runner.repeated.clear()
    made(repeatable=False).round(1, CONFIGS[:1], planned)
    assert not Runner.repeated
    assert "graph" not in log  # it is launched twice
    ahead = {case.round for case in cases if case.round >> 16 & 255 == _AHEAD}
    assert len(ahead) == SLOTS

    made().round(1, CONFIGS[:1], planned)
    assert set(Runner.repeated) == {SLOTS}
    assert "graph" in log


def test_the_host_s_time_has_the_check_in_it(made):
    assert made().host_seconds(CONFIGS[0]) == 0.75


def test_what_is_loaded_is_not_loaded_again(made, log):
    made().round(1, CONFIGS[:1], planned)

    first = log[: log.index("candidate ends")]
    assert "graph" in first
    assert first.count(f"load {CONFIGS[0].name}") == 1


def test_what_does_not_wait_behind_the_gate_is_timed_with_its_host_time(made):
    meter = made(holds=False)

    found = meter.round(1, CONFIGS[:1], planned)[CONFIGS[0].name]

    samples = found["candidate"].samples
    assert {(one.clock, one.per_call_ns) for one in samples} == {(HOST_CLOCK, HOST_NS / SLOTS)}
    assert {one.clock for one in found["baseline"].samples} == {GATE_CLOCK}


def test_a_round_says_where_its_seconds_went(made):
    meter = made()

    meter.round(1, CONFIGS, planned)

    assert {*meter.phases.seconds} == {
        *("start", "load", "draw", "first_calls", "verify", "calibrate", "calls"),
        *("untimed", "graph", "end"),
    }


def test_a_baseline_that_fails_is_the_tasks_fault(made, monkeypatch):
    meter = made()

    def fail(self, config, slots):
        raise CandidateFault(Reason.CRASH, "no such operator")

    monkeypatch.setattr(Runner, "load", fail)

    with pytest.raises(CandidateFault, match="no such operator"):
        meter.round(1, CONFIGS, planned)
    with pytest.raises(TaskFault, match="no such operator"):
        meter.round(2, CONFIGS, planned)
