"""The retention gate: what is left of a speedup on configs that nobody was shown."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json

import pytest
from base.program import CandidateFault
from judging_doubles import Doubles, side_of, softmax, write_spec
from terms.reasons import Reason
from terms.verdict import PASS, Verdict

from unseen import gate as unseen  # isort: skip
from retention import gate as retention  # isort: skip
from truth.oracle import TaskFault  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip

POLICY = {"processes": 3, "max_processes": 3, "max_slots": 2}


def unevenly(program, calls):
    """The candidate needs 5 ms a call and the baseline 20: four times as fast."""
    each = 5_000_000 if side_of(program) == "candidate" else 20_000_000
    return calls * each, calls * each + 100_000


def visible(*speedups):
    cases = [{"speedup": s, "low": s / 1.1, "high": s * 1.1} for s in speedups]
    return Verdict("perf", PASS, cases=cases)


def prepare(folder, shown, **changes):
    """A spec, with the verdicts of perf and of unseen beside it."""
    spec = parse_spec(write_spec(folder, gate="unseen"))
    drawn = unseen.run(spec, Doubles({"candidate": softmax, "baseline": softmax}))
    verdicts = folder / "verdicts"
    verdicts.mkdir()
    (verdicts / "perf.json").write_bytes(shown.to_json())
    (verdicts / "unseen.json").write_bytes(drawn.to_json())
    return parse_spec(write_spec(folder, gate="retention", policy=POLICY, **changes)), verdicts


def judge(folder, shown, candidate=softmax, edit=None):
    spec, verdicts = prepare(folder, shown)
    if edit:
        value = json.loads((verdicts / "unseen.json").read_bytes())
        edit(value)
        (verdicts / "unseen.json").write_text(json.dumps(value))
    launcher = Doubles({"candidate": candidate, "baseline": softmax}, clock=unevenly)
    found = retention.run(spec, launcher, verdicts)
    assert launcher.alive == 0, "a runner was left behind"
    return found


@pytest.mark.parametrize(("shown", "left"), [((8.0,), 0.5), ((4.0, 4.0), 1.0), ((1.0, 4.0), 2.0)])
def test_it_is_the_ratio_of_the_speedups(tmp_path, shown, left):
    verdict = judge(tmp_path, visible(*shown))

    assert (verdict.gate, verdict.outcome) == ("retention", PASS)
    assert verdict.extra["retention"] == pytest.approx(left, rel=0.01)
    assert verdict.extra["unseen_speedup"] == pytest.approx(4.0, rel=0.01)
    assert verdict.extra["retention_low"] < left < verdict.extra["retention_high"]
    assert f"{left:.2f} [" in verdict.summary
    samples = json.loads(verdict.files["samples.json"])
    assert samples["configs"].keys() == {case["config"] for case in verdict.cases}


def test_a_config_whose_interval_is_wide_counts_as_it_was_measured():
    case = {"speedup": 0.5, "low": 0.5, "high": 2.1, "baseline_ns": 9.0, "candidate_ns": 9.0}

    _, middle, _ = retention.Speedup.of([case]).interval()

    assert middle == pytest.approx(1.0)


def test_edges_and_what_a_side_fails_are_not_timed(tmp_path):
    failing: list[str] = []

    def fail_the_last(value):
        value["cases"][-1]["quadrant"] = "both_fail"
        failing.append(value["cases"][-1]["config"])

    verdict = judge(tmp_path, visible(4.0), edit=fail_the_last)

    classes = {case["class"] for case in verdict.cases}
    assert classes == {"scale_up", "scale_down", "misaligned", "asymmetric", "production"}
    assert len(verdict.cases) == 6
    assert failing[0] not in {case["config"] for case in verdict.cases}


def test_a_fault_while_it_is_timed_is_the_candidate_s(tmp_path):
    def gives_up(**_):
        raise CandidateFault(Reason.OUT_OF_MEMORY, "no memory")

    verdict = judge(tmp_path, visible(4.0), gives_up)

    assert (verdict.gate, verdict.outcome, verdict.reason) == ("retention", "FAIL", "OUT_OF_MEMORY")


def test_wrong_results_under_the_clock_have_no_speed(tmp_path):
    verdict = judge(tmp_path, visible(4.0), lambda y, **_: y.zero_())

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")


def test_without_the_other_verdicts_nothing_is_judged(tmp_path):
    spec, verdicts = prepare(tmp_path, visible(4.0))
    (verdicts / "perf.json").unlink()

    with pytest.raises(SpecError, match="needs the verdicts"):
        retention.run(spec, Doubles({}), verdicts)


def test_a_task_that_leaves_nothing_to_time_is_at_fault(tmp_path):
    def fail_all(value):
        for case in value["cases"]:
            case["quadrant"] = "both_fail"

    with pytest.raises(TaskFault, match="nothing to time"):
        judge(tmp_path, visible(4.0), edit=fail_all)
