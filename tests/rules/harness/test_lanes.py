"""Cases that are judged beside each other, as on devices."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
import torch
from judging_doubles import Doubles, softmax, write_spec

from base.program import CandidateFault, Config, MachineFault  # isort: skip
from base.seeds import Seeds  # isort: skip
from base.spec import parse_spec  # isort: skip
from gpu import session  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from terms.reasons import Reason  # isort: skip
from truth import lanes, lazy_outputs  # isort: skip
from truth.judge import Case, Judge  # isort: skip
from truth.side import Side  # isort: skip
from truth.stage import run_cases  # isort: skip

LANES = 3
SECONDS = 60.0  # only a test that fails waits as long


@pytest.fixture
def judging(tmp_path, monkeypatch):
    """What makes a judge with lanes for programs of this process."""
    monkeypatch.setattr(session, "compute_there", lambda: None)
    monkeypatch.setattr(session, "give_back", lambda: None)
    monkeypatch.setattr(Side, "may_prove", property(lambda _: False))  # as on a device
    spec = parse_spec(write_spec(tmp_path))

    def make(candidate, baseline=softmax):
        launcher = Doubles({"candidate": candidate, "baseline": baseline})
        plain = Judge.assemble(spec, launcher, PerfPolicy())
        source = Seeds("", "", "correctness")
        parts = (plain.candidate, plain.baseline, plain.oracle, plain.assessor, source)
        return Judge(*parts, at_once=LANES), launcher

    return make


def case(rows: int) -> list[Case]:
    dims = {"rows": rows, "cols": 8}
    return [Case("edges", Config(f"rows={rows}", dims, "f32", {"scale": 1.0}))]


def test_both_sides_of_all_lanes_run_at_once(judging):
    meeting = threading.Barrier(2 * LANES)

    def waits_for_all(x, y, scale, **dims):
        meeting.wait(SECONDS)
        softmax(x, y, scale, **dims)

    judge, launcher = judging(waits_for_all, waits_for_all)
    found = list(judge.judge_each(case(rows) for rows in range(1, 2 * LANES + 1)))

    assert [judged.case.config.dims["rows"] for (judged,) in found] == [1, 2, 3, 4, 5, 6]
    assert all(judged.candidate.ok and judged.baseline.ok for (judged,) in found)
    judge.finish()
    assert launcher.alive == 0


def test_a_large_case_runs_alone(judging, monkeypatch):
    monkeypatch.setattr(lanes, "_LARGE_BYTES", 4 * 8 * 4)  # of four rows
    running, seen = set[int](), list[set[int]]()
    lock = threading.Lock()

    def recorded(x, y, scale, rows, **dims):
        with lock:
            running.add(rows)
            seen.append(set(running))
        time.sleep(0.05)  # so that others would be seen beside it
        softmax(x, y, scale, **dims)
        with lock:
            running.discard(rows)

    judge, _ = judging(recorded)
    sizes = [1, 2, 9, 3, 4, 8, 7]
    found = list(judge.judge_each(case(rows) for rows in sizes))
    judge.kill()

    assert [judged.case.config.dims["rows"] for (judged,) in found] == sizes
    assert [others for others in seen if others & {7, 8, 9} and len(others) > 1] == []


def test_a_wrong_case_is_found_in_whichever_lane(judging):
    for wrong in range(1, LANES + 2):

        def spoilt(x, y, scale, rows, wrong=wrong, **dims):
            softmax(x, y, scale, **dims)
            if rows == wrong:
                y[0, 0] += 0.5

        judge, launcher = judging(spoilt)
        report = run_cases(judge, "edges", [case(rows) for rows in range(1, LANES + 2)])
        judge.kill()

        assert report.worst is not None
        assert (report.outcome, report.worst["config"]) == ("FAIL", f"rows={wrong}")
        assert launcher.alive == 0


def test_after_a_timeout_nothing_is_begun_and_nothing_left_running(judging):
    asked = []

    def hangs(x, y, scale, rows, **dims):
        asked.append(rows)
        raise CandidateFault(Reason.TIMEOUT, "gave no answer")

    judge, launcher = judging(hangs)
    report = run_cases(judge, "edges", [case(rows) for rows in range(1, 20)])
    judge.kill()

    assert report.reason == Reason.TIMEOUT.value
    assert report.configs == ("rows=1",)
    assert sorted(asked) == [1, 2, 3]
    assert launcher.alive == 0


def test_a_fault_of_the_machine_counts_if_it_lasts(judging, monkeypatch):
    for lasts in (False, True):
        judge, launcher = judging(softmax)
        opened, plain = itertools.count(), launcher.open

        def open_some(*given, opened=opened, plain=plain, lasts=lasts):
            if (number := next(opened)) == LANES or (lasts and number > LANES):
                raise MachineFault("a runner could not be started")
            return plain(*given)

        monkeypatch.setattr(launcher, "open", open_some)
        left = list[int]()
        monkeypatch.setattr(
            session, "give_back", lambda here=launcher, left=left: left.append(here.alive)
        )
        groups = [case(rows) for rows in range(1, LANES + 1)]
        if lasts:
            with pytest.raises(MachineFault, match="could not be started"):
                run_cases(judge, "edges", groups)
        else:
            assert run_cases(judge, "edges", groups).outcome == "PASS"
        assert left == [0]  # it has the device's memory, of which nobody else holds any
        judge.kill()
        assert launcher.alive == 0


@pytest.mark.parametrize("failing", [1, 2, 2 * LANES])
def test_what_errors_of_lanes_hold_is_free_before_others_run(judging, monkeypatch, failing):
    """A lane keeps its error, and that its frames, with tensors that fill a device.

    All lanes may fail before the first error is seen.
    """
    judge, launcher = judging(softmax)
    refs, left = list[weakref.ref[torch.Tensor]](), list[list[torch.Tensor]]()
    plain, turns = launcher.open, itertools.count()
    together = threading.Barrier(failing)

    def full(*given):
        if next(turns) < failing:
            held = torch.zeros(8)
            refs.append(weakref.ref(held))
            together.wait(SECONDS)
            try:
                raise torch.OutOfMemoryError(f"no room beside {held.nbytes} bytes")
            except torch.OutOfMemoryError as error:
                raise MachineFault("no room") from error
        return plain(*given)

    monkeypatch.setattr(launcher, "open", full)
    monkeypatch.setattr(session, "give_back", lambda: left.append(held_of(refs)))

    report = run_cases(judge, "edges", [case(rows) for rows in range(1, LANES + 1)])
    judge.kill()

    assert report.outcome == "PASS"
    assert left
    assert not any(left)
    assert len(refs) == failing


def held_of(refs):
    return [tensor for ref in refs if (tensor := ref()) is not None]


def test_a_large_answer_is_dropped_before_memory_is_given_back(judging, monkeypatch):
    judge, _ = judging(softmax)
    monkeypatch.setattr(lazy_outputs, "_LARGE_BYTES", 8)
    done = list[str]()
    judge._answers._latest = (SimpleNamespace(inputs={}), {"y": torch.zeros(8)})
    cycle: list[object] = [torch.zeros(8)]
    cycle.append(cycle)  # only a collection frees it
    ref = weakref.ref(cycle[0])
    del cycle

    def check():
        assert judge._answers._latest is None
        assert ref() is None
        done.append("gave back")

    monkeypatch.setattr(session, "give_back", check)
    judge.give_back_memory()

    assert done == ["gave back"]


@pytest.mark.parametrize("wrong", [False, True])
def test_a_candidate_cannot_have_the_baseline_fail(judging, wrong):
    """By taking the device's memory, say: where the baseline fails, nobody has to be right."""
    asked, launchers = set[int](), list[Doubles]()

    def spoilt(x, y, scale, rows, **dims):
        softmax(x, y, scale, **dims)
        y[0, 0] += 0.5 * wrong

    def crowded_out(x, y, scale, rows, **dims):
        if rows not in asked:
            asked.add(rows)
            raise CandidateFault(Reason.EXCEPTION, "CUDA out of memory")
        assert set(launchers[-1].alive_sides()) == {"baseline"}
        softmax(x, y, scale, **dims)

    judge, launcher = judging(spoilt, crowded_out)
    launchers.append(launcher)
    groups = [case(rows) for rows in range(1, 2 * LANES)]
    report = run_cases(judge, "edges", groups, excused=True)
    judge.kill()

    assert asked == set(range(1, 2 * LANES))
    assert report.not_applicable == ()
    assert report.outcome == ("FAIL" if wrong else "PASS")


def test_a_candidate_without_memory_has_another_try_alone(judging):
    asked, launchers = set[int](), list[Doubles]()

    def greedy(x, y, scale, rows, **dims):
        if rows == 2 and (rows not in asked or never):
            asked.add(rows)
            raise CandidateFault(Reason.OUT_OF_MEMORY, "no memory left")
        if rows == 2:
            assert launchers[-1].alive_sides().count("candidate") == 1
        softmax(x, y, scale, **dims)

    for never in (False, True):
        asked.clear()
        judge, launcher = judging(greedy)
        launchers.append(launcher)
        report = run_cases(judge, "edges", [case(rows) for rows in range(1, 2 * LANES)])
        judge.kill()

        assert report.reason == ("OUT_OF_MEMORY" if never else "")


def test_a_baseline_that_fails_alone_too_excuses(judging):
    def fails(x, y, scale, rows, **dims):
        if rows == 2:
            raise CandidateFault(Reason.CRASH, "ended by signal 11")
        softmax(x, y, scale, **dims)

    judge, launcher = judging(softmax, fails)
    groups = [case(rows) for rows in range(1, 2 * LANES)]
    report = run_cases(judge, "edges", groups, excused=True)
    judge.kill()

    assert (report.outcome, report.not_applicable) == ("PASS", ("rows=2",))
    assert launcher.alive == 0


@pytest.mark.parametrize("part", ["call", "assessor"])
def test_a_config_for_which_the_device_is_too_small_is_named(judging, monkeypatch, part):
    judge, _ = judging(softmax)

    def refused(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nSee more")

    if part == "call":
        monkeypatch.setattr(judge, "call", refused)
    else:
        monkeypatch.setattr(judge.assessor, "assess", refused)
    told = "DEVICE_MEMORY: rows=1 does not fit: CUDA out of memory. Tried to allocate 2.00 GiB.$"
    with pytest.raises(MachineFault, match=told):
        run_cases(judge, "edges", [case(rows) for rows in range(1, 9)])
    judge.kill()


def test_a_candidate_that_ends_badly_in_any_lane_is_found(judging):
    judge, launcher = judging(softmax)
    list(judge.judge_each(case(rows) for rows in range(1, LANES + 1)))
    judge.candidate.kill()  # only others are left to be asked
    launcher.end = CandidateFault(Reason.PROTOCOL_VIOLATION, "an answer prepared before")

    with pytest.raises(CandidateFault, match="prepared before"):
        judge.finish()
    assert launcher.alive == 0


def test_thinning_out_leaves_one_pair(judging):
    judge, launcher = judging(softmax)
    list(judge.judge_each(case(rows) for rows in range(1, LANES + 1)))
    assert launcher.alive == 2 * LANES

    judge.thin_out()
    assert launcher.alive == 2
    judge.kill()


@pytest.mark.parametrize(
    ("processors", "gib", "expected"),
    [(2, 80, 1), (4, 80, 1), (8, 80, 2), (16, 141, 3), (64, 141, 3), (16, 20, 2), (16, 8, 1)],
)
def test_lanes_need_processors_and_memory(monkeypatch, processors, gib, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.setattr(session, "free_bytes", lambda: gib << 30)

    assert lanes.affordable() == expected
