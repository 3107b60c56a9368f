"""The perf gate measures honestly, and refuses clocks and times that cannot be."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
import os
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import count

import pytest
from judging_doubles import Double, Doubles, judge, side_of, softmax, steady

from truth.oracle import TaskFault  # isort: skip
from perf import plausibility  # isort: skip
from perf.baseline_fault import baseline_fault  # isort: skip
from base.program import CandidateFault, MachineFault, Program, Signature  # isort: skip
from truth.side import Side  # isort: skip
from terms.reasons import Reason  # isort: skip
from base.spec import SpecError  # isort: skip

TIMED = {(8, 64), (3, 257)}  # the configs


def test_a_steady_clock_gives_its_ratio(tmp_path):
    verdict, _, _ = judge(tmp_path)

    assert verdict.outcome == "PASS", verdict.detail
    assert verdict.extra["configs"] == ["f32 rows=8 cols=64", "f16 rows=3 cols=257"]
    for case in verdict.cases:
        assert (case["candidate_ns"], case["baseline_ns"]) == (10_000_000, 20_000_000)
        assert (case["speedup"], case["low"], case["high"]) == (2.0, 2.0, 2.0)
        assert case["faster"]
    assert verdict.extra["mean_speedup"] == 2.0


def test_each_config_says_how_much_work_a_call_is(tmp_path):
    verdict, _, _ = judge(tmp_path)

    case = verdict.cases[0]
    assert case["config"] == "f32 rows=8 cols=64"
    assert (case["bytes"], case["flops"]) == (2 * 8 * 64 * 4, 5 * 8 * 64)


def test_equal_programs_are_not_faster(tmp_path):
    jitter = count()

    def noisy(program, calls):
        reported = calls * (10_000_000 + next(jitter) * 7919 % 500_000)
        return reported, reported + 100_000

    verdict, _, _ = judge(tmp_path, clock=noisy)

    assert verdict.outcome == "PASS"
    assert all(case["low"] < 1 < case["high"] for case in verdict.cases)
    assert not any(case["faster"] for case in verdict.cases)


def test_each_side_has_three_fresh_processes_and_none_waits(tmp_path):
    _, samples, launcher = judge(tmp_path)

    pilot, asked, rounds = launcher.opened[:2], launcher.opened[2], launcher.opened[3:]
    assert pilot == ["baseline", "candidate"]
    assert asked == "baseline"  # which values and sizes it is right on
    assert rounds == ["candidate", "baseline", "baseline", "candidate", "candidate", "baseline"]
    assert launcher.most_alive == 1
    for config in samples["configs"].values():
        for side in ("candidate", "baseline"):
            assert [len(process) for process in config[side]] == [2, 2, 2]


def test_wide_intervals_get_more_processes_while_the_budget_lasts(tmp_path):
    jitter = count()

    def wild(program, calls):
        reported = calls * (10_000_000 + next(jitter) * 2_654_435_761 % 9_000_000)
        return reported, reported + 100_000

    def stopped(**policy):
        verdict, samples, _ = judge(tmp_path, clock=wild, max_slots=3, **policy)
        widest = max(math.log(case["high"] / case["low"]) / 2 for case in verdict.cases)
        stop = verdict.extra["stop"]
        assert stop["half_width"] == pytest.approx(widest, rel=1e-4)
        assert stop["processes"] == len(samples["configs"]["f32 rows=8 cols=64"]["candidate"])
        assert f"stopped by {stop['reason']}" in verdict.detail
        return stop["reason"], stop["processes"], widest > stop["wanted"]

    assert stopped(budget_seconds=600.0, max_processes=5) == ("max_processes", 5, True)
    assert stopped(budget_seconds=1e-6) == ("budget", 3, True)
    assert stopped(budget_seconds=600.0, half_width=9.0) == ("half_width", 3, False)


def test_narrow_intervals_need_no_more_processes(tmp_path):
    verdict, _, _ = judge(tmp_path, budget_seconds=600.0)

    stop = {"reason": "half_width", "half_width": 0.0, "wanted": 0.05, "processes": 3}
    assert verdict.extra["stop"] == stop


def test_the_state_of_the_machine_is_noted_before_and_after_every_round(tmp_path):
    _, samples, _ = judge(tmp_path)

    found = samples["machine"]
    assert len(found["readings"]) == 4
    assert found["load"] == found["readings"][-1]["load"]
    assert found["cores"] == os.cpu_count()


def test_batches_are_filled_up_to_the_wanted_time(tmp_path):
    def quick(program, calls):
        return calls * 1_000_000, calls * 1_000_000 + 100_000

    verdict, samples, _ = judge(tmp_path, clock=quick, budget_seconds=100.0, max_slots=6)
    assert verdict.cases[0]["slots"] == 6
    process = samples["configs"]["f32 rows=8 cols=64"]["candidate"][0]
    assert process[0] == {
        "attempts": 1,
        "reported_ns": 6_000_000,
        "slots": 6,
        "thread_ns": 0,
        "waited_ns": 0,
        "wall_ns": 6_100_000,
    }


def test_a_faster_side_has_more_calls_so_that_its_batches_are_as_long(tmp_path, monkeypatch):
    monkeypatch.setattr("perf.measure.Meter.seconds_per_call", 1e-6)

    def uneven(program, calls):
        each = 200_000 if side_of(program) == "candidate" else 4_000_000
        return calls * each, calls * each + 100_000

    verdict, samples, _ = judge(tmp_path, clock=uneven, budget_seconds=1.0)

    case = verdict.cases[0]
    assert (case["slots"], case["baseline_slots"]) == (64, 3)
    for side, calls in (("candidate", 64), ("baseline", 3)):
        process = samples["configs"][case["config"]][side][0]
        assert [sample["slots"] for sample in process] == [calls, calls]
        assert process[0]["reported_ns"] >= 10_000_000
    assert case["speedup"] == pytest.approx(20)


def lying(share):
    """The candidate reports only a share of its time."""

    def clock(program, calls):
        reported, wall = steady(program, calls)
        return (int(reported * share) if side_of(program) == "candidate" else reported), wall

    return clock


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.5])
def test_a_lying_clock_is_rejected(tmp_path, share):
    verdict, _, _ = judge(tmp_path, clock=lying(share))

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "CLOCK_MISMATCH")
    assert "by the judge's clock" in verdict.detail


def test_a_lie_within_the_tolerance_gains_nothing(tmp_path):
    verdict, _, _ = judge(tmp_path, clock=lying(0.95))

    assert verdict.outcome == "PASS"
    assert verdict.cases[0]["charged_ns"] == pytest.approx(500_000, rel=0.05)
    assert verdict.cases[0]["speedup"] == pytest.approx(2.0, rel=0.01)


def test_a_lie_now_and_then_gains_nothing(tmp_path):
    """One of two batches in two of three processes: the audit calls it noise, the median too."""
    batches = count()  # one to warm up and two timed ones for each of two configs

    def sometimes(program, calls):
        reported, wall = steady(program, calls)
        if side_of(program) == "candidate" and calls:
            process, batch = divmod(next(batches), 6)
            reported -= 1_900_000 if batch % 3 == 1 and process % 3 else 0
        return reported, wall

    verdict, _, _ = judge(tmp_path, clock=sometimes, min_batch_ms=1.0, max_slots=1)

    assert verdict.outcome == "PASS"
    for case in verdict.cases:
        assert case["high"] == pytest.approx(2.0, rel=0.01)


def test_inputs_differ_from_judging_to_judging_and_can_be_drawn_again(tmp_path):
    seen = []

    def records(x, y, scale, **_):
        # Zeros are zeros in every judging, and a few elements may well be the same.
        if tuple(x.shape) in TIMED and x.min() < x.max():
            seen.append(x.numpy().tobytes())
        softmax(x, y, scale)

    def inputs(**policy):
        seen.clear()
        samples = judge(tmp_path, records, **policy)[1]
        return samples["draw"], list(seen)

    draw, first = inputs()
    _, second = inputs()
    _, again = inputs(draw=draw)

    assert not set(first) & set(second)
    assert first[:2] == again[:2]  # how many follow depends on what judging costs


def test_one_late_reading_moves_no_figure(tmp_path):
    batches = count()

    def late_once(program, calls):
        reported, wall = steady(program, calls)
        late = side_of(program) == "candidate" and calls and next(batches) == 7
        return reported, wall + (50_000_000 if late else 0)

    verdict, _, _ = judge(tmp_path, clock=late_once)

    assert verdict.outcome == "PASS"
    assert [case["speedup"] for case in verdict.cases] == [2.0, 2.0]


def test_a_batch_that_is_read_again_has_inputs_of_its_own(tmp_path):
    seen = []

    def records(x, y, scale, **_):
        if tuple(x.shape) in TIMED and x.min() < x.max():  # processes share calls of other sizes
            seen.append(x.numpy().tobytes())
        softmax(x, y, scale)

    judge(tmp_path, records, clock=lying(0.5), readings=4, warm=False)

    assert len(seen) > 30
    assert len(set(seen)) == len(seen)


def test_a_machine_whose_clock_is_broken_judges_nobody(tmp_path):
    def backwards(program, calls):
        return calls * 20_000_000 + 1, calls * 10_000_000

    with pytest.raises(MachineFault, match="clock of this machine is broken"):
        judge(tmp_path, clock=backwards)


def instant(program, calls):
    each = 1 if side_of(program) == "candidate" else 20_000_000
    return calls * each, calls * each + 100_000


def test_nothing_is_paid_below_what_an_empty_batch_costs(tmp_path, monkeypatch):
    monkeypatch.setattr("perf.measure.Meter.seconds_per_call", 1e-6)

    verdict, _, _ = judge(tmp_path, clock=instant, budget_seconds=100.0, max_slots=8)

    for case in verdict.cases:
        assert (case["slots"], case["candidate_ns"]) == (8, 100_000 / 8)


def test_an_impossible_time_is_rejected(tmp_path, monkeypatch):
    slow = plausibility.Device(
        bytes_per_second=8 * 64 * 4 * 1e3 / (os.cpu_count() or 1), flops_per_second=1e15
    )
    monkeypatch.setattr(plausibility, "PER_CORE", slow)  # 1 ms for the first config

    verdict, _, _ = judge(tmp_path, clock=instant)

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "IMPLAUSIBLE")


def test_a_wrong_result_in_a_timed_batch_fails(tmp_path):
    calls = count()

    def lazy(x, y, scale, **_):
        softmax(x, y, scale)
        if next(calls) % 3 == 2:
            y.zero_()

    verdict, _, _ = judge(tmp_path, lazy)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "in a timed call of " in verdict.detail


def test_results_kept_from_earlier_calls_do_not_help(tmp_path):
    kept = {}

    def memoises(x, y, scale, **_):
        if y.shape not in kept:
            softmax(x, y, scale)
            kept[y.shape] = y.clone()
        y.copy_(kept[y.shape])

    assert judge(tmp_path, memoises)[0].reason == "WRONG_RESULT"


def test_a_crash_when_timed_fails(tmp_path):
    def crashes(**_):
        raise CandidateFault(Reason.CRASH, "signal 11")

    verdict, _, _ = judge(tmp_path, crashes)

    assert (verdict.outcome, verdict.reason, verdict.cases) == ("FAIL", "CRASH", ())


def test_a_baseline_that_fails_is_the_task_s_fault(tmp_path):
    def crashes(**_):
        raise CandidateFault(Reason.CRASH, "signal 11")

    with pytest.raises(TaskFault, match="baseline fails"):
        judge(tmp_path, baseline=crashes)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("import torch\n\ndef reference(x):\n    pass\n", "{}:3: "),
        ("reference = print\n", "{}:1: "),
        (None, ""),
    ],
)
def test_a_baseline_in_python_is_told_with_its_line(tmp_path, text, place):
    path = tmp_path / "reference.py"
    if text is not None:
        path.write_text(text)
    program = Program("torch", str(path), "baseline", platform="cpu")
    fault = CandidateFault(Reason.INPUT_MUTATED, "the candidate changed its input 'x'")

    said = "the baseline fails when timed: INPUT_MUTATED: it changed its input 'x'"
    assert str(baseline_fault(program, fault)) == place.format(path) + said
    native = replace(program, abi="hip", path=str(tmp_path / "kernel.so"))
    assert str(baseline_fault(native, fault)) == said


@pytest.mark.parametrize("policy", [{"processes": 2}, {"samples": 1}, {"max_processes": 2}])
def test_a_policy_with_too_few_samples_is_refused(tmp_path, policy):
    with pytest.raises(SpecError):
        judge(tmp_path, **policy)


def test_all_calls_together_have_a_limit(tmp_path):
    """A gate that timed out would judge nobody: who is slow enough would never be judged."""
    verdict, _, launcher = judge(tmp_path, total_seconds=1e-9)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "TIMEOUT")
    assert "of all its calls together" in verdict.detail
    assert launcher.opened.count("candidate") == 1


@pytest.mark.parametrize(("requests", "refused"), [(0.0, False), (1.0, True)])
def test_only_the_time_of_its_own_requests_counts(tmp_path, monkeypatch, requests, refused):
    """The judge may take longer to verify a call than the call takes."""
    monkeypatch.setattr(Double, "spent_seconds", property(lambda _: requests))
    launcher, limit = Doubles({"candidate": softmax}), 0.2
    program = Program("python", str(tmp_path / "kernel.py"), "kernel")
    side = Side(launcher, program, Signature((), (), (), ()), total_seconds=limit)
    with side.running():
        time.sleep(1.5 * limit)
    with pytest.raises(CandidateFault) if refused else nullcontext(), side.running():
        pass
