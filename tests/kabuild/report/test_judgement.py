"""What counts: judged or not, and what a failure is worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.model.label import Label
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import in_order, told_gates
from kabuild.report.judgement import Pace, gain, pace, typical_gain, unjudged
from tests.kabuild.report.test_page import case, result
from tests.testkit.evaluations import GATES, in_trial, said, saying

INFRA = {"verdict": "INFRA", "reason": "NO_DEVICE", "summary": ""}
PASS = {"verdict": "PASS", "reason": "", "summary": ""}
TASK = Label("tasks/a/b", "b")
EMPTY = TaskResult(TASK, {})

DECLARED = GATES.all


def spoken(*words: str) -> TaskResult:
    """A result whose gates said these."""
    return saying(EMPTY, {f"gate{n}": {"verdict": word} for n, word in enumerate(words)})


@pytest.mark.parametrize(
    ("words", "judged"),
    [
        (("PASS", "PASS"), True),
        (("FAIL", "SKIPPED", "SKIPPED", "FAIL"), True),
        (("SKIPPED",), True),
        (("PASS", "REJECTED", "INFRA"), True),
        (("PASS", "INFRA"), False),
        (("PASS", "SKIPPED", "INFRA"), False),
        (("INFRA",), False),
        (("PASS", "CANCELLED"), False),
        (("PASS", "made up"), False),
        ((), False),
    ],
)
def test_a_trial_is_judged_once_it_is_decided(words: tuple[str, ...], judged: bool) -> None:
    assert spoken(*words).judged is judged


@given(st.lists(st.sampled_from(["PASS", "FAIL", "REJECTED", "SKIPPED", "INFRA", "CANCELLED"])))
def test_the_order_of_gates_decides_nothing(words: list[str]) -> None:
    assert spoken(*words).judged is spoken(*words[::-1]).judged


def test_what_was_not_judged_is_named_with_its_reason() -> None:
    stopped = in_trial(saying(result("softmax", None), {"compile": PASS, "perf": INFRA}), 2)
    silent = saying(stopped, {"perf": {"verdict": "CANCELLED"}})
    assert not stopped.judged
    assert silent.why_unjudged == "CANCELLED"
    assert saying(stopped, {}).why_unjudged == "no gate was asked for"
    assert unjudged([stopped, result("gemm", None), result("gemm", 2.0)]) == {
        "//tasks/hip2hip/softmax#2": "NO_DEVICE"
    }


@pytest.mark.parametrize("word", ["FAIL", "INFRA", "SKIPPED"])
def test_a_gate_on_request_is_in_no_figure_but_where_it_is_alone(word: str) -> None:
    """Else whoever asks for a diagnosis besides would have worse figures than who does not."""
    found = {"verdict": word, "reason": "DATA_RACE"}
    right = result("softmax", 2.0)
    besides = saying(right, {**said(right), "sanitize": found})
    alone = saying(right, {"sanitize": found})

    assert besides.judged
    assert (besides.correct, besides.speedup) == (True, 2.0)
    assert alone.judged is (word != "INFRA")
    assert not alone.correct


def test_a_failure_gains_nothing_and_costs_no_more() -> None:
    assert gain(result("t", None)) == Speedup(1.0, 1.0, 1.0)
    assert gain(result("t", 0.5)).value == 0.5
    assert typical_gain([result("t", 4.0), result("t", None)]).value == pytest.approx(2.0)


def timed(*cases: dict[str, Any]) -> Any:
    return saying(result("t", 1.0), {"perf": {**PASS, "cases": cases}})


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (((1.01, 1.03),), Pace.FASTER),
        (((0.98, 1.09), (0.77, 1.05)), Pace.UNSURE),
        (((1.0, 1.2),), Pace.UNSURE),
        (((0.9, 1.1), (1.3, 1.5)), Pace.FASTER),
        (((0.5, 0.6), (0.9, 1.1)), Pace.SLOWER),
    ],
)
def test_faster_is_said_only_of_a_whole_interval(
    ends: tuple[tuple[float, float], ...], told: Pace
) -> None:
    cases = [{**case(f"n={n}", 1.0), "low": lo, "high": hi} for n, (lo, hi) in enumerate(ends)]
    assert pace(timed(*cases)) is told


def test_without_intervals_and_without_a_pass_nothing_is_sure() -> None:
    assert timed().interval is None
    assert timed(case("n=1", 9.0), {"config": "n=2", "speedup": 9.0}).interval is None
    assert pace(timed({"config": "n=2", "speedup": 9.0})) is Pace.UNSURE
    wrong = replace(timed(case("n=1", 9.0)), figures={})
    refused = saying(wrong, {**said(wrong), "unseen": {"verdict": "FAIL"}})
    assert pace(wrong) is Pace.UNSURE
    assert pace(refused) is Pace.UNSURE


def test_gates_without_a_record_are_kept_in_the_order_of_judging() -> None:
    skipped = {"verdict": "SKIPPED"}
    recorded = saying(EMPTY, {"compile": {"verdict": "FAIL"}, "score": {"verdict": "FAIL"}}).gates
    told = told_gates(TASK, {"perf": skipped, "compile": skipped, "correctness": skipped}, DECLARED)
    found = in_order({**told, **recorded}, DECLARED)
    assert list(found) == ["compile", "correctness", "perf", "score"]
    assert found["compile"].word == "FAIL"
    assert list(in_order(saying(EMPTY, {"record": PASS, "compile": PASS}).gates, DECLARED)) == [
        "compile",
        "record",
    ]


@pytest.mark.parametrize("asked", ["perf", ["perf"], {"perf": "PASS"}, {"perf": None}, 3])
def test_what_a_bundle_says_of_its_gates_may_be_anything(asked: Any) -> None:
    assert told_gates(TASK, asked, DECLARED) == {}
