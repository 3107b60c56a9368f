"""Scores: AgentKernelArena's own values, and every way of failing closed."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import score
from hypothesis import given
from hypothesis import strategies as st
from terms import scoring
from terms.scoring import Outcome, TimesError
from terms.speedup import Speedup

from kabuild.model.speedup import Speedup as Reported

NAN, INF = math.nan, math.inf
GATES = ["compile", "correctness", "perf", "unseen"]
SPEC = {"schema": 1, "gate": "score", "policy": "aka", "gates": GATES}
CASES = [
    {"config": "a", "candidate_ns": 2.0, "baseline_ns": 4.0, "speedup": 2.0}
    | {"low": 1.9, "high": 2.1, "faster": True},
    {"config": "b", "candidate_ns": 4.0, "baseline_ns": 12.0, "speedup": 3.0}
    | {"low": 2.9, "high": 3.3, "faster": True},
]
QUADRANTS = {"both_pass": 8, "opt_regression": 0, "both_fail": 0, "opt_improvement": 0}


def verdicts(**changes):
    """The verdicts of a task that passes everything, with ``gate=(verdict, reason)`` changed."""
    made = {
        gate: {"schema": 1, "gate": gate, "verdict": "PASS", "reason": "", "summary": "fine"}
        for gate in GATES
    }
    made["perf"].update(cases=CASES, configs=["a", "b"])
    made["unseen"].update(quadrants=QUADRANTS, conditional_correctness=1.0)
    for gate, change in changes.items():
        made[gate].update(zip(("verdict", "reason"), change, strict=True))
    return made


def scored(made, **spec):
    return score.score(score.parse_spec({**SPEC, **spec}), made)


# Values executed from AgentKernelArena's own functions.


@pytest.mark.parametrize(
    ("compiled", "correct", "ratios", "points"),
    [
        (False, False, (), 0),
        (True, False, (), 20),
        (True, True, (1.58,), 278),
        (True, True, (), 120),
        (True, True, (0.5,), 170),
        (True, False, (9.0,), 20),
    ],
)
def test_aka_points(compiled, correct, ratios, points):
    assert scoring.aka(Outcome(compiled, correct, ratios)) == pytest.approx(points)


def test_the_speedup_is_the_mean_of_ratios_whatever_the_order():
    ratios = scoring.ratios(["a", "b"], {"a": 2, "b": 4}, {"b": 1, "a": 2})
    assert ratios == (1.0, 4.0)
    assert Outcome(True, True, ratios).mean == 2.5


# The figure.


@pytest.mark.parametrize("ends", [(2.0, 1.7, 2.4), (140.2, 140.0, 141.0), (27.9, 27.9, 3355.0)])
def test_a_figure_reads_the_same_from_the_judge_and_in_reports(ends):
    data = dict(zip(("speedup", "speedup_low", "speedup_high"), ends, strict=True))

    assert str(Speedup(*ends)) == str(Reported.read(data))


def test_a_task_lies_between_the_means_of_its_configs_ends():
    mean = Speedup.mean([Speedup(2.0, 1.0, 3.0), Speedup(4.0, 3.0, 6.0)])

    assert (mean.value, mean.low, mean.high) == (3.0, 2.0, 4.5)
    assert str(mean) == "3.00x ±50 %"


@pytest.mark.parametrize(
    "change",
    [
        {"low": None},
        {"low": 3.1},
        {"high": NAN},
        # AgentKernelArena scores these by the times beside them, and infinity as infinity.
        *({"speedup": said} for said in (0, None, -3, NAN, "1.5", INF)),
    ],
)
def test_a_figure_without_an_interval_around_it_gives_no_score(change):
    made = verdicts()
    made["perf"]["cases"] = [{**CASES[0], **change}, CASES[1]]

    assert scored(made).verdict.reason == "UNUSABLE_TIMES"


def test_a_figure_that_its_times_do_not_give_is_refused():
    made = verdicts()
    made["perf"]["cases"] = [{**CASES[0], "speedup": 2.1}, CASES[1]]

    assert "times give 2" in scored(made).verdict.summary


def test_the_lower_end_counts_where_the_interval_is_wide():
    made = verdicts()
    wide = {**CASES[0], "speedup": 0.5, "low": 0.5, "high": 40.0}
    made["perf"]["cases"] = [wide, CASES[1]]

    found = scored(made)

    assert (found.document["speedup"], found.document["speedup_high"]) == (1.7, 21.65)
    assert found.verdict.summary == "aka 290, speedup ~1.70x"
    assert found.document["fast"]["1.5"] == 1.0
    assert found.document["scores_visible"]["geomean"] == pytest.approx(math.sqrt(0.5 * 2.9))


def noisy(count, ratio, low, high):
    """A perf verdict with one config that is too noisy for a figure, and ``count`` good ones."""
    made = verdicts()
    bad = {"config": "bad", "candidate_ns": 1.0, "baseline_ns": ratio, "faster": False}
    good = [{**CASES[0], "config": f"c{index}"} for index in range(count)]
    cases = [{**bad, "speedup": low, "low": low, "high": high}, *good]
    made["perf"].update(cases=cases, configs=[case["config"] for case in cases])
    return scored(made).document


def test_a_noisy_config_counts_as_it_was_measured():
    """A thing against itself is not below 1 for it."""
    same = {**CASES[0], "baseline_ns": 2.0, "speedup": 1.0, "low": 0.9, "high": 1.1}
    made = verdicts()
    wide = {**same, "config": "b", "speedup": 0.5, "low": 0.5, "high": 2.1}
    made["perf"]["cases"] = [same, wide]

    document = scored(made).document

    assert (document["speedup"], document["scores"]["geomean"]) == (1.0, 1.0)
    assert document["speedup_low"] == pytest.approx(0.7)


def test_noise_pays_at_most_twice_what_is_sure():
    document = noisy(9, 1412.0, 27.9, 60.0 * 27.9)
    assert document["speedup"] == pytest.approx((27.9 + 9 * 1.9) / 10)  # too wide as a whole

    document = noisy(9, 3.9, 1.0, 4.1)

    assert document["speedup"] == pytest.approx((2.0 + 9 * 2.0) / 10)
    assert document["speedup_high"] == pytest.approx((4.1 + 9 * 2.1) / 10)


# The other scoring.


@pytest.mark.parametrize(
    ("outcome", "v4", "fast", "geomean"),
    [
        (Outcome(True, True, (2.1,)), 0.5, 1.0, 2.1),
        (Outcome(True, True, (1.0,)), 0.0, 0.0, 1.0),
        (Outcome(True, True, (0.5,)), 0.0, 0.0, 0.5),
        (Outcome(True, True, (1.0, 4.0)), 1 - 1.05 / 2.5, 1.0, 2.0),
        (Outcome(True, False, (9.0,)), 0.0, 0.0, 1.0),
        (Outcome(False, False), 0.0, 0.0, 1.0),
    ],
)
def test_other_policies(outcome, v4, fast, geomean):
    assert scoring.aka_v4(outcome) == pytest.approx(v4)
    assert scoring.fast_p(outcome) == fast
    assert scoring.geomean(outcome) == pytest.approx(geomean)


def test_fast_p_is_strict_at_every_threshold():
    at_two = scoring.fast(Outcome(True, True, (2.0,)))
    assert at_two == {"0": 1, "0.8": 1, "1": 1, "1.2": 1, "1.5": 1, "2": 0, "3": 0, "5": 0}
    assert set(scoring.fast(Outcome(True, False, (9.0,))).values()) == {0.0}


@pytest.mark.parametrize("bad", [0, -1, NAN, INF, None, "1", True])
def test_a_time_that_is_no_time_has_no_ratio(bad):
    with pytest.raises(TimesError, match="time for 'a'"):
        scoring.ratios(["a"], {"a": 1}, {"a": bad})
    with pytest.raises(TimesError, match="time for 'a'"):
        scoring.ratios(["a"], {"a": bad}, {"a": 1})


@pytest.mark.parametrize(
    ("baseline", "candidate", "message"),
    [
        ({"a": 1}, {"a": 1, "b": 1}, "baseline has no time for 'b'"),
        ({"a": 1, "b": 1}, {"a": 1}, "candidate has no time for 'b'"),
        ({"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, "'c', which is not a config"),
        ({"a": 1e-300, "b": 1}, {"a": 1e300, "b": 1}, "no finite ratio"),
    ],
)
def test_missing_and_extra_times_have_no_ratio(baseline, candidate, message):
    with pytest.raises(TimesError, match=message):
        scoring.ratios(["a", "b"], baseline, candidate)
    with pytest.raises(TimesError, match="no configs"):
        scoring.ratios([], {}, {})


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_every_policy_is_finite_and_failing_never_pays(ratios, compiled, correct):
    for policy in scoring.POLICIES.values():
        found = policy(Outcome(compiled, correct, tuple(ratios)))
        assert math.isfinite(found)
        assert policy(Outcome(True, False, tuple(ratios))) <= policy(Outcome(True, True, (1.0,)))


# The gate.


def test_a_task_that_passes_everything():
    found = scored(verdicts())

    assert found.verdict.outcome == "PASS"
    assert found.document["score"] == 20 + 100 + 250
    assert found.document["speedup"] == 2.5
    assert found.document["scores"]["geomean"] == pytest.approx(6**0.5)
    assert found.document["quadrants"] == QUADRANTS
    assert found.document["conditional_correctness"] == 1.0
    assert [config["config"] for config in found.document["configs"]] == ["a", "b"]
    assert found.verdict.extra["speedup"] == 2.5


@pytest.mark.parametrize(
    ("changes", "outcome", "reason", "points"),
    [
        ({"compile": ("FAIL", "COMPILE_ERROR")}, "FAIL", "COMPILE_ERROR", 0),
        ({"correctness": ("FAIL", "WRONG_RESULT")}, "FAIL", "WRONG_RESULT", 20),
        ({"perf": ("REJECTED", "CLOCK_MISMATCH")}, "REJECTED", "CLOCK_MISMATCH", 20),
        ({"unseen": ("FAIL", "TIMEOUT")}, "FAIL", "TIMEOUT", 20),
        ({"perf": ("SKIPPED", "EARLIER_GATE")}, "SKIPPED", "EARLIER_GATE", 20),
    ],
)
def test_one_failing_gate_fails_the_task(changes, outcome, reason, points):
    found = scored(verdicts(**changes))

    assert (found.verdict.outcome, found.verdict.reason) == (outcome, reason)
    assert found.document["score"] == points
    assert found.document["speedup"] is None
    assert set(found.document["gates"]) == set(GATES)


def test_the_gate_that_failed_is_named_and_not_those_it_stopped():
    skipped = ("SKIPPED", "EARLIER_GATE")
    found = scored(
        verdicts(correctness=("FAIL", "CRASH"), perf=skipped, unseen=skipped),
        gates=["compile", "perf", "unseen", "correctness"],
    )

    assert (found.verdict.outcome, found.verdict.reason) == ("FAIL", "CRASH")
    assert found.verdict.summary == "correctness: fine"


def test_a_failure_on_unseen_configs_still_shows_what_was_visible():
    document = scored(verdicts(unseen=("FAIL", "WRONG_RESULT"))).document

    assert document["scores"]["aka"] == 20
    assert document["scores_visible"]["aka"] == 370


@pytest.mark.parametrize("policy", list(scoring.POLICIES))
def test_the_policy_decides_the_score(policy):
    document = scored(verdicts(), policy=policy).document
    assert document["score"] == document["scores"][policy]


@pytest.mark.parametrize("missing", GATES)
def test_without_a_needed_gate_there_is_no_score(missing):
    made = verdicts()
    found = scored(made, gates=[gate for gate in GATES if gate != missing])

    assert found.document["score"] is None
    assert found.document["score_reason"] == f"not asked for: {missing}"
    assert found.document["not_requested"] == [missing]
    assert found.verdict.outcome == "PASS"


def test_a_task_without_hidden_configs_has_a_score_that_names_its_tier():
    made = {gate: verdict for gate, verdict in verdicts().items() if gate != "unseen"}
    told = {"gates": GATES[:3], "without": ["unseen"], "tier": "script"}
    found = scored(made, **told)

    assert found.document["score"] == pytest.approx(370)
    assert (found.document["tier"], found.verdict.extra["tier"]) == ("script", "script")
    assert found.document["not_requested"] == []
    assert "tier" not in scored(verdicts()).document


def test_a_further_gate_counts_as_well():
    made = verdicts()
    made["sanitize"] = {"gate": "sanitize", "verdict": "FAIL", "reason": "DATA_RACE"}
    found = scored(made, gates=[*GATES, "sanitize"])

    assert found.verdict.reason == "DATA_RACE"
    assert found.document["score"] == 20


@pytest.mark.parametrize(
    "perf",
    [
        {"cases": CASES[:1]},
        {"cases": [*CASES, {**CASES[0], "config": "c"}]},
        {"cases": [*CASES, CASES[0]]},
        {"cases": [CASES[0], {**CASES[1], "candidate_ns": 0}]},
        {"cases": [CASES[0], {**CASES[1], "baseline_ns": NAN}]},
        {"cases": [CASES[0], {**CASES[1], "candidate_ns": INF}]},
        {"cases": [CASES[0], {"config": "b"}]},
        {"cases": [CASES[0], "b"]},
        {"configs": []},
    ],
)
def test_unusable_times_fail_closed(perf):
    made = verdicts()
    made["perf"].update(perf)
    found = scored(made)

    assert (found.verdict.outcome, found.verdict.reason) == ("FAIL", "UNUSABLE_TIMES")
    assert found.document["score"] == 120
    assert found.document["speedup"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"gate": "perf"},
        {"policy": "best"},
        {"gates": []},
        {"gates": ["../x"]},
        {"without": ["perf"]},
        {"tier": "best"},
    ],
)
def test_a_malformed_spec_is_refused(change):
    with pytest.raises(ValueError, match=r"score spec|policy|gates|tier"):
        score.parse_spec({**SPEC, **change})


def run(folder, made):
    (folder / "verdicts").mkdir()
    (folder / "spec.json").write_text(json.dumps(SPEC))
    for gate, verdict in made.items():
        (folder / "verdicts" / f"{gate}.json").write_text(json.dumps(verdict))
    command = [sys.executable, "-S", score.__file__, "spec.json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_script_writes_both_files_with_the_standard_library_alone(tmp_path):
    done = run(tmp_path, verdicts())

    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((tmp_path / "out" / "score.json").read_text())
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert (document["score"], verdict["score"], verdict["speedup"]) == (370, 370, 2.5)
    assert [case["verdict"] for case in verdict["cases"]] == ["PASS"] * 4


def test_a_missing_verdict_is_no_neutral_one(tmp_path):
    made = verdicts()
    del made["unseen"]
    done = run(tmp_path, made)

    assert done.returncode == 2
    assert "unseen.json" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_verdict_in_another_gate_s_place_is_refused(tmp_path):
    made = verdicts()
    made["perf"] = made["unseen"]

    assert "not 'perf'" in run(tmp_path, made).stderr
