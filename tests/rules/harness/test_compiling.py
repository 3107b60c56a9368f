"""A PyTorch baseline's configs, compiled by processes that run at once."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type,attr-defined"

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import device_doubles
import pytest

from base.program import CandidateFault, MachineFault, Program  # isort: skip
from gpu import session  # isort: skip
from perf import compiling, device_gate  # isort: skip
from perf.compiling import Trial  # isort: skip
from perf.device_budget import GIB  # isort: skip
from perf.device_plan import Need, Wishes  # isort: skip
from perf.phases import Phases  # isort: skip
from perf.pilot import Pilot  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from terms.reasons import Reason  # isort: skip
from truth.judge import Judge  # isort: skip
from truth.oracle import TaskFault  # isort: skip

CONFIGS = [device_doubles.config(f"f32 n={n}") for n in (1, 2, 3)]
FIRST, SECOND, THIRD = (config.name for config in CONFIGS)
PILOT = SimpleNamespace(first_slots=lambda _: 4, fit_together=lambda _: True)
PATIENCE = 60.0
given_back: list[int] = []


class Machine:
    """Processes, of which ``faults`` says by config how one fails when it compiles."""

    def __init__(self, faults=None, at_once=1):
        self.alive = set()
        self.at_the_end: CandidateFault | None = None
        self.most = 0
        self.ended = []
        self.phases = Phases()
        self._faults = faults or {}
        self._all_there = threading.Barrier(at_once)

    def trials(self, configs):
        program = Program("torch", "reference.py", "f")
        side = SimpleNamespace(program=program, running=self._running)
        return [Trial(config, side) for config in configs]

    def draw(self, number, config, batch, size):
        return [SimpleNamespace(inputs={"x": config.name})] * size

    @contextmanager
    def _running(self):
        runner = Runner(self._compile)
        try:
            yield runner
            if self.at_the_end:
                raise self.at_the_end
            self.ended.append((runner.name, "asked"))
        except BaseException:
            self.ended.append((runner.name, "killed"))
            raise
        finally:
            self.alive.discard(runner.name)

    def _compile(self, runner):
        self.alive.add(runner.name)
        self._all_there.wait(PATIENCE)  # all of them compile at once, or none gets on
        self.most = max(self.most, len(self.alive))
        if fault := self._faults.get(runner.name):
            raise fault


class Runner:
    def __init__(self, work):
        self.name = ""
        self._work = work

    def load(self, config, slots):
        self.name, self.slots = config.name, slots

    def batch(self, calls):
        assert calls == [{"x": self.name}]
        self._work(self)


@pytest.fixture(autouse=True)
def there(monkeypatch):
    """The threads that were told to make their tensors on the device."""
    told = []
    monkeypatch.setattr(session, "compute_there", lambda: told.append(threading.get_ident()))
    monkeypatch.setattr(session, "give_back", lambda: given_back.append(1))
    given_back.clear()
    return told


def test_all_compile_at_once_and_each_ends_with_its_own_turn(there):
    machine = Machine(at_once=3)
    with compiling.together(machine, PILOT, machine.trials(CONFIGS)) as made:
        assert machine.alive == {FIRST, SECOND, THIRD}
        for config, one in zip(CONFIGS, made, strict=True):
            with one.running() as runner:
                assert (runner.name, runner.slots) == (config.name, 4)
            assert config.name not in machine.alive
            assert len(given_back) == CONFIGS.index(config) + 1  # for the next one

    assert machine.most == 3
    assert machine.ended == [(name, "asked") for name in (FIRST, SECOND, THIRD)]
    assert len(set(there)) == 3
    assert threading.get_ident() not in there
    assert machine.phases.seconds.keys() == {"first_calls"}


def test_one_config_may_have_several_processes():
    machine = Machine(at_once=3)
    with compiling.together(machine, PILOT, machine.trials(CONFIGS[:1] * 3)) as made:
        for one in made:
            with one.running() as runner:
                assert runner.name == FIRST
    assert machine.ended == [(FIRST, "asked")] * 3


def test_one_that_fails_fails_in_its_turn_alone():
    fault = CandidateFault(Reason.EXCEPTION, "the candidate cannot be compiled")
    machine = Machine({SECOND: fault}, at_once=3)
    with compiling.together(machine, PILOT, machine.trials(CONFIGS)) as (first, second, third):
        with first.running():
            assert not first.crowded
        with (
            pytest.raises(TaskFault, match="baseline fails when timed: EXCEPTION: it cannot"),
            second.running(),
        ):
            raise AssertionError("it has no runner")
        with pytest.raises(TaskFault, match="timed: EXCEPTION: it broke"), third.running():
            raise CandidateFault(Reason.EXCEPTION, "the candidate broke")

    assert machine.ended == [(SECOND, "killed"), (FIRST, "asked"), (THIRD, "killed")]
    assert not second.crowded


@pytest.mark.parametrize("reason", [Reason.OUT_OF_MEMORY, Reason.TIMEOUT, Reason.CRASH])
def test_what_may_have_lacked_room_says_so(reason):
    machine = Machine({FIRST: CandidateFault(reason, "no room")})
    with compiling.together(machine, PILOT, machine.trials(CONFIGS[:1])) as (only,):
        with pytest.raises(TaskFault, match="no room"), only.running():
            raise AssertionError("it has no runner")
        assert only.crowded


def test_how_a_process_ends_that_had_no_turn_tells_nothing():
    machine = Machine(at_once=2)
    machine.at_the_end = CandidateFault(Reason.TIMEOUT, "it does not end")
    with compiling.together(machine, PILOT, machine.trials(CONFIGS[:2])):
        pass
    assert not machine.alive
    with (
        compiling.together(machine, PILOT, machine.trials(CONFIGS[:2])) as made,
        pytest.raises(TaskFault, match="does not end"),
        made[0].running(),
    ):
        pass


def test_no_process_outlives_the_machine_s_fault():
    machine = Machine({SECOND: MachineFault("the device is lost")}, at_once=3)
    with (
        pytest.raises(MachineFault, match="the device is lost"),
        compiling.together(machine, PILOT, machine.trials(CONFIGS)),
    ):
        raise AssertionError("nothing may be timed")

    assert not machine.alive
    assert sorted(machine.ended) == [(name, "killed") for name in (FIRST, SECOND, THIRD)]


def test_what_has_had_no_turn_is_killed_when_the_block_fails():
    machine = Machine(at_once=2)

    def work():
        with compiling.together(machine, PILOT, machine.trials(CONFIGS[:2])) as made:
            with made[0].running():
                pass
            raise MachineFault("later")

    with pytest.raises(MachineFault, match="later"):
        work()
    assert machine.ended == [(FIRST, "asked"), (SECOND, "killed")]


@pytest.mark.parametrize(
    ("processors", "rooms", "sizes"),
    [(1, 9, [1, 1, 1]), (4, 9, [2, 1]), (32, 9, [3]), (32, 2, [2, 1]), (32, 0, [1, 1, 1])],
)
def test_groups_have_room_on_processors_and_in_memory(monkeypatch, processors, rooms, sizes):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    pilot = SimpleNamespace(fit_together=lambda configs: len(configs) <= rooms)
    trials = [Trial(config, None) for config in CONFIGS]

    made = compiling.groups(pilot, trials)
    assert [len(group) for group in made] == sizes
    assert [trial for group in made for trial in group] == trials
    assert compiling.groups(pilot, []) == []


def test_no_more_compile_at_once_than_is_of_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(99)))
    trials = [Trial(CONFIGS[0], None)] * (compiling.MOST + 1)

    assert [len(group) for group in compiling.groups(PILOT, trials)] == [compiling.MOST, 1]


def test_first_looks_fit_together_while_what_they_need_does():
    """Each process has a context on the device, too, however small its config is."""
    needs = {FIRST: Need(10, 3, 20), SECOND: Need(20, 2, 30)}
    room = sum(need.bytes(8) for need in needs.values()) + 2 * GIB
    for left, fits in ((room, True), (room - 1, False)):
        wishes = Wishes(1e6, 0, 64, left, needs)
        pilot = Pilot(None, device_doubles.SIGNATURE, wishes)
        assert [pilot.first_slots(config) for config in CONFIGS[:2]] == [8, 8]
        assert pilot.fit_together(CONFIGS[:2]) is fits
        assert pilot.fit_together(CONFIGS[:1])


def test_a_gate_on_a_device_tunes_the_baseline_as_often_as_it_is_told(monkeypatch):
    judge = SimpleNamespace(assessor=None, baseline=object(), candidate=object())
    told = []
    meter = device_doubles.Meter(lambda *_: [])
    device_doubles.arrange(monkeypatch, meter)
    monkeypatch.setattr(Judge, "assemble", lambda *_: judge)
    monkeypatch.setattr(device_gate, "Asides", lambda *given: told.append(given))
    spec = device_doubles.spec_of((FIRST,), abi="torch")
    policy = PerfPolicy(distributions=("rows",))
    made = device_gate.DeviceGate(spec, None, policy)

    assert [made.chooser()._tunings, made.chooser(3)._tunings] == [1, 3]
    assert made.chooser()._baseline is judge.baseline
    assert policy in told[0]
