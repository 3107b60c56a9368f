"""Rows of a leaderboard: who counts in them, and how often."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kabuild.report.exports import brief, render_json, render_markdown
from kabuild.report.leaderboard import LeaderboardRow, leaderboard
from tests.kabuild.report.test_page import evaluation, result
from tests.testkit.evaluations import in_trial, saying

if TYPE_CHECKING:
    from kabuild.model.task_result import TaskResult

PASS, SKIPPED = {"verdict": "PASS"}, {"verdict": "SKIPPED", "reason": "EARLIER_GATE"}
FAILS = {"verdict": "FAIL", "reason": "COMPILE_ERROR", "summary": "", "detail": ""}
INFRA = {"verdict": "INFRA", "reason": "NO_SECRET", "summary": "no key", "detail": ""}


def refused(name: str) -> TaskResult:
    """A kernel that does not compile, all gates of which were asked for."""
    skipped = dict.fromkeys(("correctness", "perf", "unseen"), SKIPPED)
    return saying(result(name, None), {"compile": FAILS, **skipped, "score": FAILS})


def stopped(name: str, trial: int = 1) -> TaskResult:
    """A trial whose agent the machine failed."""
    gates = dict.fromkeys(("compile", "correctness", "perf", "unseen", "score"), INFRA)
    return in_trial(saying(result(name, None), gates), trial)


def row_of(*results: TaskResult) -> LeaderboardRow:
    (row,) = leaderboard([evaluation("a", *results)])
    return row


def test_who_fails_everywhere_stays_in_every_figure() -> None:
    row = row_of(refused("softmax"), refused("gemm"))
    assert (row.tasks, row.shares["compiled"], row.shares["correct"], row.shares["unseen"]) == (
        2,
        0.0,
        0.0,
        0.0,
    )
    assert (row.geomean, row.median, row.faster) == (1.0, 1.0, 0.0)
    assert (row.average, row.middle) == (None, None)
    assert "1.00x" not in render_markdown([evaluation("a", refused("softmax"))])
    assert set(row.fast.values()) == {0.0}


def test_gates_that_nobody_asked_for_have_no_share() -> None:
    row = row_of(saying(result("softmax", None), {"compile": FAILS}))
    assert (row.shares["compiled"], row.shares["correct"], row.shares["unseen"]) == (
        0.0,
        None,
        None,
    )
    assert (row.geomean, row.faster, row.fast) == (None, None, {})


def test_what_was_not_judged_is_in_no_figure_and_named() -> None:
    row = row_of(stopped("softmax"), result("gemm", 2.0))
    assert (row.tasks, row.shares["correct"], row.shares["compiled"]) == (1, 1.0, 1.0)
    assert row.geomean == pytest.approx(2.0)
    assert row.unjudged == {"//tasks/hip2hip/softmax": "NO_SECRET"}

    both = [evaluation("a", stopped("softmax"), result("gemm", 2.0))]
    text = render_markdown(both)
    assert "a: not judged, excluded from all figures: //tasks/hip2hip/softmax (NO_SECRET)" in text
    assert "| //tasks/hip2hip/softmax | not judged: NO_SECRET |" in text
    (standing,) = json.loads(render_json(both))["standings"]
    assert standing["unjudged"] == {"//tasks/hip2hip/softmax": "NO_SECRET"}


def test_an_agent_that_the_machine_failed_everywhere_has_no_figures() -> None:
    row = row_of(stopped("softmax"), stopped("gemm"))
    assert (row.tasks, row.trials, len(row.unjudged)) == (0, 0, 2)
    assert (row.shares["compiled"], row.geomean, row.median, row.faster, row.fast) == (
        *(None, None, None, None),
        {},
    )
    assert brief(stopped("softmax")) == "not judged: NO_SECRET"


def test_a_task_counts_once_however_often_it_was_tried() -> None:
    trials = [in_trial(result("softmax", gain), n + 1) for n, gain in enumerate((4.0, None))]
    row = row_of(*trials, stopped("softmax", 3), result("gemm", 8.0))
    assert (row.tasks, row.trials, list(row.unjudged)) == (2, 3, ["//tasks/hip2hip/softmax#3"])
    assert row.shares["correct"] == 0.75
    assert row.median == pytest.approx(5.0)
    assert row.geomean == pytest.approx(4.0)
    assert row.fast[3.0] == 0.75


def test_faster_means_surely_faster_and_fast_p_measured() -> None:
    """1.02x with an interval around 1 is fast_1, and no more than that."""
    row = row_of(result("gemm", 1.02), result("softmax", 4.0))
    assert (row.faster, row.fast[1.0]) == (0.5, 1.0)
    assert "| 0 % | 100 % |" in render_markdown([evaluation("a", result("gemm", 1.02))])


def test_times_without_intervals_say_nothing_of_faster() -> None:
    bare = saying(result("gemm", 2.0), {"compile": PASS, "correctness": PASS})
    row = row_of(bare, refused("softmax"))
    assert row.faster is None
    assert row.geomean == pytest.approx(2.0**0.5)


def test_the_geometric_mean_has_the_interval_of_its_times() -> None:
    def errors(*results: TaskResult) -> Any:
        row = row_of(*results)
        assert row.average is not None
        return pytest.approx(row.average.errors)

    below, above = -math.log(0.9), math.log(1.1)
    root = math.sqrt(2)
    assert errors(result("softmax", 2.0)) == (below, above)
    assert errors(result("softmax", 2.0), result("gemm", 2.0)) == (below / root, above / root)
    assert errors(result("softmax", 2.0), refused("gemm")) == (below / 2, above / 2)

    bare = saying(result("rope", 3.0), {"perf": {**PASS, "mean_speedup": 3.0}})
    assert row_of(result("softmax", 2.0), bare).geomean_low is None


def wide(name: str, low: float, high: float) -> TaskResult:
    """A task whose interval is too wide, so that its lower end is its speedup."""
    figures = {"speedup": low, "speedup_low": low, "speedup_high": high}
    return replace(result(name, low), figures=figures)


def test_lower_ends_are_not_averaged_as_if_they_were_middles() -> None:
    """A baseline against itself, on a machine with others' work: 0.9x, from 0.3x to 2.7x."""
    row = row_of(*(wide(f"t{number}", 0.3, 2.7) for number in range(3)))
    assert row.geomean == pytest.approx(0.9)
    assert row.median == pytest.approx(0.9)
    assert row.geomean_low is not None
    assert row.geomean_high is not None
    assert row.geomean_low < 1.0 < row.geomean_high

    alone = row_of(wide("t", 0.3, 2.7))
    assert (alone.geomean_low, alone.geomean_high) == pytest.approx((0.3, 2.7))
    assert (str(alone.average), str(alone.middle)) == ("~0.30x", "~0.30x")


def test_markdown_shows_each_figure_with_its_uncertainty() -> None:
    vague = render_markdown([evaluation("a", wide("t", 0.3, 2.7))])
    sharp = render_markdown([evaluation("a", result("t", 2.0))])
    assert vague.count("~0.30x") == 3
    assert "~: the 95 % interval is too wide" in vague
    assert sharp.count("2.00x ±11 %") == 3
    assert "~" not in sharp


def test_what_a_script_judged_is_averaged_with_nothing_else() -> None:
    scripted = result("gather", 8.0)
    scripted = replace(scripted, figures={**scripted.figures, "tier": "script"})
    rows = leaderboard([evaluation("a", result("softmax", 2.0), scripted)])

    (declared, alone) = rows
    assert alone.family == f"{declared.family} (script)"
    assert [row.tasks for row in rows] == [1, 1]
    assert [row.geomean for row in rows] == pytest.approx([2.0, 8.0])
