"""Figures over several trials."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.task_result import TaskResult
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.report.trials import Trials, render_trials, summarise_trials
from tests.testkit.evaluations import gate_named

TASK = Label("a", "b")


def _row(number: int, verdict: Verdict, speedup: float | None, gate: str = "score") -> TaskResult:
    label = TASK.in_trial(number)
    data = {} if speedup is None else {"speedup": speedup}
    reason = "" if verdict is Verdict.PASS else "WRONG_RESULT"
    settled = Settled(
        label.sub(gate), Outcome.DONE, verdict=GateVerdict(gate, verdict, reason, data=data)
    )
    return TaskResult.of(label, [GateResult.of(gate_named(gate), settled)])


def _stopped(number: int, outcome: Outcome) -> TaskResult:
    """A trial that the machine, or a person, stopped."""
    label = TASK.in_trial(number)
    return TaskResult.of(
        label, [GateResult.of(gate_named("score"), Settled(label.sub("score"), outcome))]
    )


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), min_size=1, max_size=7))
def test_the_estimators_are_the_means_over_all_choices(trials: list[tuple[bool, float]]) -> None:
    found = Trials(TASK, tuple(p for p, _ in trials), tuple(s for _, s in trials))

    for k in range(1, len(trials) + 1):
        choices = list(combinations(trials, k))
        some = fmean(any(passed for passed, _ in choice) for choice in choices)
        best = fmean(max(speedup for _, speedup in choice) for choice in choices)
        assert found.pass_at[k - 1] == pytest.approx(some)
        assert found.best_at[k - 1] == pytest.approx(best)


def test_a_gate_on_request_costs_a_trial_nothing() -> None:
    diagnosis = _row(1, Verdict.FAIL, None, "sanitize").gates
    row = _row(1, Verdict.PASS, 2.0)
    besides = replace(row, gates={**row.gates, **diagnosis})

    (found,) = summarise_trials([besides, _row(2, Verdict.PASS, 2.0)])

    assert (found.passed, found.speedups) == ((True, True), (2.0, 2.0))


def test_a_trial_that_failed_counts_and_gains_nothing() -> None:
    rows = [_row(1, Verdict.PASS, 2.0), _row(2, Verdict.FAIL, 3.0), _row(3, Verdict.PASS, 1.0)]

    (found,) = summarise_trials(rows)

    assert found.label == TASK
    assert found.passed == (True, False, True)
    assert found.speedups == (2.0, 1.0, 1.0)
    assert found.mean == pytest.approx(4 / 3)
    assert found.best_at[-1] == 2.0


@pytest.mark.parametrize("outcome", [Outcome.INFRA, Outcome.CANCELLED])
def test_a_trial_that_was_not_judged_is_no_failure_and_named(outcome: Outcome) -> None:
    rows = [_row(1, Verdict.PASS, 3.0), _stopped(2, outcome), _row(3, Verdict.FAIL, None)]

    (found,) = summarise_trials(rows)

    assert (found.passed, found.unjudged) == ((True, False), (2,))
    assert (found.pass_at[0], found.mean) == (0.5, 2.0)
    assert (found.to_json()["trials"], found.to_json()["unjudged"]) == (3, [2])
    _, line, last = render_trials((found,)).splitlines()
    assert line.split()[:5] == ["//a:b", "2", "of", "3", "1"]
    assert last == "not judged, excluded from all figures: //a:b#2"


def test_where_nothing_was_judged_there_is_no_figure() -> None:
    (found,) = summarise_trials([_stopped(1, Outcome.INFRA), _stopped(2, Outcome.INFRA)])

    assert (found.pass_at, found.best_at, found.mean) == ((), (), None)
    _, line, last = render_trials((found,)).splitlines()
    assert line.split() == ["//a:b", "0", "of", "2", "0", *"-----"]
    assert last.endswith("//a:b (all 2 trials)")


def test_one_trial_is_no_summary_and_trials_without_scores_have_no_speedups() -> None:
    assert summarise_trials([_row(1, Verdict.PASS, 2.0)]) == ()
    unscored = [_row(number, Verdict.PASS, None, "compile") for number in (1, 2)]

    (found,) = summarise_trials(unscored)

    assert (found.speedups, found.mean, found.spread, found.best_at) == ((), None, None, ())
    assert found.to_json()["pass_at"] == {"1": 1.0, "2": 1.0}


def test_the_table_has_a_line_for_each_task() -> None:
    rows = [_row(1, Verdict.PASS, 2.0), _row(2, Verdict.PASS, 1.0)]

    header, line = render_trials(summarise_trials(rows)).splitlines()

    assert header.split() == [
        *("task", "trials", "passed", "pass@1", "best@1", "best@all", "mean", "spread"),
    ]
    assert line.split() == ["//a:b", "2", "2", "1.00", "1.50x", "2.00x", "1.50x", "0.71x"]
    assert render_trials(()) == ""
