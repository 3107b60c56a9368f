"""What a PyTorch baseline is timed as: chosen once, right, and handed on."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import device_doubles
import pytest
from judging_doubles import Doubles, judge, softmax, write_spec

from kabuild.model.action import Literal
from tests.testkit.own_tasks import action_of

from base.program import CandidateFault, MachineFault, Program  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip
from baseline import gate  # isort: skip
from gpu import session  # isort: skip
from perf.choice import EAGER, Choice, Looks  # isort: skip
from perf.chooser import LOOKS, TUNINGS, Chooser  # isort: skip
from perf.gate_samples import SidePlan  # isort: skip
from perf.phases import Phases  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from terms.reasons import Reason  # isort: skip
from truth import compiled_cache  # isort: skip
from truth.oracle import TaskFault  # isort: skip

COMPILED, GRAPHS = "max-autotune-no-cudagraphs", "max-autotune"
CONFIGS = [device_doubles.config(f"f32 n={n}") for n in (1, 2)]
FIRST, SECOND = (config.name for config in CONFIGS)


# on the processor


def chosen(folder, baseline, **changes):
    value = write_spec(folder, gate="baseline", salt="", **changes)
    spec = parse_spec({**value, "candidate": value["baseline"]})
    return gate.run(spec, Doubles({"baseline": baseline}))


def test_a_baseline_on_the_processor_is_timed_as_it_is(tmp_path):
    verdict = chosen(tmp_path, softmax)

    assert (verdict.outcome, verdict.summary) == ("PASS", "eager for 2 of 2 configs")
    told = json.loads(verdict.files["baseline.json"])
    names = ["f16 rows=3 cols=257", "f32 rows=8 cols=64"]
    assert sorted(told["baselines"]) == names
    for found in told["baselines"].values():
        assert found["counted"] == EAGER
        assert found["eager"] > 0
    assert json.loads(verdict.files["compiled.json"]) == {}


def wrong(x, y, **_):
    softmax(x, y, **_)
    y[0, 3] += 0.5


def fails(**_):
    raise ValueError("no such thing")


def test_a_wrong_baseline_is_no_choice(tmp_path):
    with pytest.raises(
        MachineFault, match=r"gives wrong results here: .* at \[0, 3\].*, in f32 rows=8"
    ):
        chosen(tmp_path, wrong)


def test_a_baseline_that_fails_is_the_task_s_fault(tmp_path):
    with pytest.raises(TaskFault, match="the baseline fails when timed"):
        chosen(tmp_path, fails)


# on a device


class Meter:
    """The baseline's processes, of which some fail and some are wrong.

    ``tuned`` says by config how many ns the calls of each tuning take; by default one that is
    better than eager for the first config only.
    """

    program = Program("torch", "reference.py", "f")
    failure = Reason.EXCEPTION
    crowded: Reason | None = None
    """The reason why the first try of each tuning fails."""

    def __init__(self, folder, failing=(), incorrect=(), tuned=None):
        self.cache = str(folder)
        self.opened = []
        self.caches = []
        self.looks = 0
        self.after = []
        self.alive = 0
        self._tried: set[str] = set()
        self.phases = Phases()
        self._failing, self._incorrect = failing, incorrect
        self._tuned = tuned or {FIRST: [40.0] * TUNINGS, SECOND: [150.0] * TUNINGS}
        self._calls = {}

    def in_mode(self, mode):
        return self._side(mode, f"{self.cache}/compiled")

    def tuning(self, mode, name, after):
        self.after.append((name, Path(after).name))
        return self._side(mode, compiled_cache.tuning_folder(self.cache, name, after), name)

    def _side(self, mode, cache, name=""):
        running = partial(self._running, mode, name, cache)
        return SimpleNamespace(program=self.program, cache=cache, running=running)

    @contextmanager
    def _running(self, mode, name, cache=""):
        runner = SimpleNamespace(loaded="", mode=mode, name=name)
        self.caches.append(cache)
        self.alive += 1

        def load(config, slots):
            runner.loaded = config.name
            self.opened.append((mode, config.name))

        def batch(calls):
            if (mode, runner.loaded) in self._failing:
                raise CandidateFault(self.failure, "cannot be compiled")
            if mode == COMPILED and self.crowded:
                if name not in self._tried:
                    self._tried.add(name)
                    raise CandidateFault(self.crowded, "there are others")
                assert self.alive == 1
            return SimpleNamespace(outputs=[mode] * len(calls))

        runner.load, runner.batch = load, batch
        try:
            yield runner
        finally:
            self.alive -= 1

    @contextmanager
    def running(self, side, config):
        with self._running("", "") as runner:
            self.opened.append(("", ""))
            yield runner

    def draw(self, number, config, batch, size):
        return [SimpleNamespace(inputs={}, config=config)]

    def wrong_by_itself(self, call, outputs):
        return "far off" if outputs in self._incorrect else ""

    def first_slots(self, config):
        return 1

    def fit_together(self, configs):
        return True

    def look(self, side, runner, config, seen=None):
        self.looks += 1
        number = int((runner.name or "0").partition("-")[0])
        by_mode = {"": 100.0, COMPILED: self._tuned[config.name][number]}
        return SidePlan(by_mode.get(runner.mode, 10.0), 8, "gate")

    again = look


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    for name in ("compute_there", "give_back"):
        monkeypatch.setattr(session, name, lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))


def chooser_of(meter):
    return Chooser(meter, meter, meter, meter, CONFIGS, tunings=TUNINGS)


def choose(meter):
    chooser = chooser_of(meter)
    chooser.choose()
    chooser.record()
    return chooser.choice


def test_the_fastest_mode_of_each_config_counts(tmp_path):
    meter = Meter(tmp_path)
    choice = choose(meter)

    assert choice.modes == {FIRST: COMPILED, SECOND: ""}
    first, second = choice.evidence[FIRST], choice.evidence[SECOND]
    assert first == {
        EAGER: 100,
        COMPILED: 40,
        GRAPHS: 10,
        "counted": COMPILED,
        "tunings": [40] * TUNINGS,
    }
    assert second == {EAGER: 100, COMPILED: 150, "counted": EAGER, "tunings": [150] * TUNINGS}
    tuned = [(COMPILED, FIRST), (COMPILED, SECOND)] * TUNINGS
    assert sorted(meter.opened) == sorted([("", ""), *tuned, (GRAPHS, FIRST)])
    assert meter.looks == LOOKS * (len(CONFIGS) + len(tuned) + 1)
    assert not list(tmp_path.glob("tuning-*"))  # they hold all that was tried
    assert meter.after == [
        (f"{number}-{place}", f"tuning-{number - 1}-{place}" if number else "")
        for number in range(TUNINGS)
        for place in range(len(CONFIGS))
    ]


def test_of_several_tunings_the_fastest_counts_and_is_kept(tmp_path):
    meter = Meter(tmp_path, tuned={FIRST: [60.0, 30.0, 50.0], SECOND: [20.0, 90.0, 90.0]})
    for number in range(TUNINGS):
        for place in (0, 1):
            folder = compiled_cache.tuning_folder(str(tmp_path), f"{number}-{place}")
            kept = Path(folder, "inductor/ab", f"{place}.best_config")
            kept.parent.mkdir()
            kept.write_text(str(number))
    choice = choose(meter)

    assert choice.evidence[FIRST][COMPILED] == 30
    assert choice.evidence[SECOND]["tunings"] == [20, 90, 90]
    found = (tmp_path / "compiled/inductor/ab").iterdir()
    assert {path.name: path.read_text() for path in found} == {
        "0.best_config": "1",
        "1.best_config": "0",
    }


def test_a_mode_that_fails_or_is_wrong_does_not_count_and_says_why(tmp_path):
    failing = choose(Meter(tmp_path, failing=[(COMPILED, FIRST)]))
    assert failing.modes == {FIRST: "", SECOND: ""}
    assert "cannot be compiled" in failing.evidence[FIRST][COMPILED]
    assert "tunings" not in failing.evidence[FIRST]
    assert failing.evidence[SECOND][COMPILED] == 150

    off = choose(Meter(tmp_path, incorrect=[COMPILED]))
    assert off.modes[FIRST] == ""
    assert off.evidence[FIRST][COMPILED] == "gives wrong results here: far off"


@pytest.mark.parametrize("reason", [Reason.OUT_OF_MEMORY, Reason.TIMEOUT, Reason.CRASH])
def test_what_fails_beside_others_is_tried_again_alone(tmp_path, reason):
    meter = Meter(tmp_path)
    meter.crowded = reason
    choice = choose(meter)

    assert choice.modes == {FIRST: COMPILED, SECOND: ""}
    assert choice.evidence[FIRST]["tunings"] == [40] * TUNINGS
    assert meter.opened.count((COMPILED, FIRST)) == 2 * TUNINGS


def test_what_fails_alone_is_not_tried_again(tmp_path):
    meter = Meter(tmp_path, failing=[(COMPILED, FIRST)])
    choose(meter)
    assert meter.opened.count((COMPILED, FIRST)) == TUNINGS

    meter = Meter(tmp_path, failing=[(COMPILED, FIRST)])
    meter.failure = Reason.OUT_OF_MEMORY
    choose(meter)
    assert meter.opened.count((COMPILED, FIRST)) == 2 * TUNINGS  # beside the other, and alone


def test_what_is_crowded_out_when_it_is_compiled_again_is_tried_again_alone(tmp_path):
    choice = chooser_of(Meter(tmp_path)).choose()
    choice = Choice(dict.fromkeys(choice.modes, COMPILED), choice.evidence)
    meter = Meter(tmp_path)
    meter.crowded = Reason.OUT_OF_MEMORY

    assert chooser_of(meter).compile_again(choice)
    assert meter.opened.count((COMPILED, FIRST)) >= 1
    assert len(meter.opened) == 3  # both at once, and the one that was first once more


def test_one_tuning_that_fails_leaves_the_others():
    looks = Looks()
    looks.note(COMPILED, "it broke", "a")
    looks.note(COMPILED, [5.0, 4.0, 9.0], "b")
    looks.note(COMPILED, "it broke again", "c")

    assert (looks.times, looks.refused) == ({COMPILED: [5.0, 4.0, 9.0]}, {})
    assert (looks.tunings, looks.fastest) == ([5.0], "b")


def test_each_config_is_compiled_again_in_its_mode_by_a_fresh_process(tmp_path):
    meter = Meter(tmp_path)
    chooser = chooser_of(meter)
    choice = chooser.choose()
    meter.opened.clear()

    assert chooser.compile_again(choice)
    assert meter.opened == [(COMPILED, FIRST)]
    assert meter.caches[-1] == f"{tmp_path}/compiled"
    for changes in ({"failing": [(COMPILED, FIRST)]}, {"incorrect": [COMPILED]}):
        assert not chooser_of(Meter(tmp_path, **changes)).compile_again(choice)


def test_what_is_wrong_as_it_is_is_no_baseline(tmp_path):
    with pytest.raises(MachineFault, match="the baseline gives wrong results here: far off"):
        choose(Meter(tmp_path, incorrect=[""]))


def test_a_gain_has_the_bounds_that_a_replay_is_compared_by():
    looks = {FIRST: Looks({"": [100.0, 99.0, 101.0], COMPILED: [50.0, 49.0, 52.0]})}
    (case,) = gate._verdict(Choice.fastest(CONFIGS[:1], looks), looks, {}).cases

    assert case["times"]["counted"] == COMPILED
    assert case["low"] < 99 / 52 < case["speedup"] == 2.0 < 101 / 49 < case["high"]

    looks[FIRST].tunings = [50.0, 87.0, 60.0]  # of which a replay may get the worst
    (other,) = gate._verdict(Choice.fastest(CONFIGS[:1], looks), looks, {}).cases
    assert other["low"] < 99 / 87
    assert other["high"] == case["high"]


def test_a_gate_that_knows_the_choice_looks_at_nothing(tmp_path, monkeypatch):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(choose(Meter(tmp_path)).to_json()))
    meter = device_doubles.Meter(lambda *_: [1e5, 1e5])
    names = (FIRST, SECOND)
    device_doubles.timed(
        monkeypatch, meter, names, PerfPolicy(half_width=1.0), choice=str(file)
    )  # its pilot has no looks

    assert meter.modes == {FIRST: COMPILED, SECOND: ""}


# what is handed on


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"schema": 2, "baselines": {}}',
        b'{"schema": 1, "baselines": {}}',
        b'{"schema": 1, "baselines": {"f32 n=1": {"eager": 1}}}',
        b'{"schema": 1, "baselines": {"f32 n=1": {"counted": "max-autotune"}}}',
        b'{"schema": 1, "baselines": {"f32 n=1": {"counted": "../x"}}}',
    ],
)
def test_a_file_that_is_no_choice_is_refused(tmp_path, content):
    (tmp_path / "baseline.json").write_bytes(content)

    with pytest.raises(SpecError, match=r"baseline\.json"):
        Choice.read(tmp_path / "baseline.json", CONFIGS[:1])


def test_perf_on_the_processor_shows_what_it_is_timed_against(tmp_path):
    counted = {name: {"counted": EAGER, EAGER: 5} for name in ("f32 rows=8 cols=64",)}
    counted["f16 rows=3 cols=257"] = {"counted": COMPILED}
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"schema": 1, "baselines": counted}))
    spec = parse_spec(write_spec(tmp_path, choice=str(file)))

    with pytest.raises(SpecError, match="nothing is compiled"):
        Choice.of_host(spec)
    counted["f16 rows=3 cols=257"] = {"counted": EAGER, EAGER: 7}
    file.write_text(json.dumps({"schema": 1, "baselines": counted}))
    assert Choice.of_host(spec).evidence == counted
    assert judge(tmp_path)[1]["baselines"] == {}


# as actions


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_no_candidate_has_a_part_in_the_choice(platform):
    """Nothing of it is an input, and whoever hands in has the same action."""
    action = action_of("torch2hip", platform, "baseline")

    assert action == action_of("torch2hip", platform, "baseline", "expert")
    assert not [path for path, _ in action.inputs if path.startswith("candidate")]
    perf = dict(action_of("torch2hip", platform, "perf").inputs)
    for name in ("baseline.json", "compiled.json"):
        assert perf[f"choice/{name}"] == action.output(name)
    assert isinstance(perf["spec.json"], Literal)
    assert json.loads(perf["spec.json"].data)["choice"] == "choice/baseline.json"


@pytest.mark.parametrize("part", ["correctness", "unseen", "retention", "agent"])
def test_only_perf_waits_for_the_choice(part):
    agent = "random" if part == "agent" else "none"
    inputs = dict(action_of("torch2hip", "cpu", part, agent).inputs)

    assert not [path for path in inputs if "baseline.json" in path]
