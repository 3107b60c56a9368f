"""Two agents on the same tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.model.label import Label
from kabuild.model.task_result import TaskResult
from kabuild.report.paired import Comparison, compare, sign_test
from kabuild.report.paired_text import render_comparison
from tests.kabuild.report.test_page import evaluation, result
from tests.testkit.cli import CliWorkspace
from tests.testkit.evaluations import in_trial, said, saying
from tests.testkit.examples import examples
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path

    from kabuild.report.evaluation import Evaluation


def judged(name: str, *speedups: float | None) -> Evaluation:
    """One task for each speedup; None is a failure."""
    return evaluation(name, *(result(f"t{n}", speedup) for n, speedup in enumerate(speedups)))


def ends(found: Comparison) -> tuple[float, float, float]:
    """Its interval, and its ratio in between."""
    assert found.figures.ratio is not None
    assert found.figures.low is not None
    assert found.figures.high is not None
    return found.figures.low, found.figures.ratio, found.figures.high


def stopped(name: str, trial: int = 1, **more: Any) -> TaskResult:
    """A trial that the machine failed."""
    infra = {"verdict": "INFRA", "reason": "NO_SECRET", "summary": "no key"}
    one = TaskResult(Label(f"tasks/hip2hip/{name}", name).in_trial(trial), {}, **more)
    return saying(one, {"compile": infra, "perf": infra})


def test_a_clear_winner_is_one() -> None:
    found = compare(judged("a", *[2.0 + n / 10 for n in range(10)]), judged("b", *[1.0] * 10))
    assert (found.figures.wins, found.figures.losses, found.figures.ties) == (10, 0, 0)
    assert ends(found)[0] > 1.9
    assert found.figures.significant
    assert found.figures.p_value == pytest.approx(2 / 1024)


def keyed(name: str, key: str, *, high: float = 9.0) -> Evaluation:
    """One task whose times have a key and a wide interval."""
    one = result("t0", 1.0)
    cases = [{"config": "f32", "speedup": 1.0, "low": 1.0, "high": high}]
    figures = {"mean_speedup": 1.0, "speedup_low": 1.0, "speedup_high": high, "cases": cases}
    gates = {
        gate: replace(found, key=key, data={**found.data, **figures})
        for gate, found in one.gates.items()
    }
    score = {"speedup": 1.0, "speedup_low": 1.0, "speedup_high": high}
    return evaluation(name, replace(one, gates=gates, figures=score))


def test_a_measurement_is_as_fast_as_itself_however_wide_its_interval_is() -> None:
    (same,) = compare(keyed("a", "k"), keyed("b", "k")).pairs
    assert same.speedup.to_json() == {"speedup": 1.0, "speedup_low": 1.0, "speedup_high": 1.0}
    assert str(same.one).startswith("~")
    for other in (keyed("b", "another key"), keyed("b", "k", high=8.0), keyed("b", "")):
        (pair,) = compare(keyed("a", "k"), other).pairs
        assert pair.speedup.wide, "measured twice, or who knows"
    (unknown,) = compare(keyed("a", ""), keyed("b", "")).pairs
    assert unknown.speedup.wide


def test_one_task_is_as_sure_as_its_times() -> None:
    """Of a single task no bootstrap over tasks knows anything."""
    found = compare(judged("a", 3.0), judged("b", 2.0))

    low, ratio, high = ends(found)
    assert ratio == pytest.approx(1.5)
    assert (low, high) == pytest.approx(found.pairs[0].speedup.ends, rel=0.02)
    assert low < 1.4 < 1.6 < high
    assert not found.figures.significant
    assert "1.50x ±15 %, 95 % interval 1.3 to 1.73" in render_comparison(found)


def test_one_task_whose_intervals_nobody_knows_has_none() -> None:
    def vague(item: TaskResult) -> TaskResult:
        cases = [{"config": "a", "speedup": 2.0}]
        return saying(item, {**said(item), "perf": {"verdict": "PASS", "cases": cases}})

    found = compare(evaluation("a", vague(result("t0", 2.0))), judged("b", 1.0))

    assert (found.figures.low, found.figures.high) == (None, None)
    assert "2.00x, 95 % interval unknown" in render_comparison(found)


def untimed(name: str, speedup: float | None = 2.0) -> Evaluation:
    """One task, of which no gate that times was requested; None is a failure."""
    timed = result("t0", speedup)
    gates = {gate: told for gate, told in said(timed).items() if gate != "perf"}
    return evaluation(name, saying(timed, gates, figures={}))


def test_what_nobody_timed_is_said_to_be_so() -> None:
    found = compare(untimed("a"), untimed("b"))

    assert not found.timed
    assert "nothing was timed" in render_comparison(found)
    assert "nothing was timed" not in render_comparison(compare(judged("a", 2.0), untimed("b")))


def test_where_nothing_was_timed_no_figure_is_shown() -> None:
    equal = render_comparison(compare(untimed("a"), untimed("b")))
    unequal = render_comparison(compare(untimed("a"), untimed("b", None)))

    assert equal.splitlines()[1].split()[1:] == ["-", "-", "-", "="]
    assert "a / b: - (1 task is too few to be sure)" in equal
    assert unequal.splitlines()[1].split()[1:3] == ["-", "failed"]
    assert "- +  only a is right" in unequal
    assert "1.00x" not in equal + unequal


def test_equal_agents_are_not_told_apart() -> None:
    found = compare(judged("a", 2.0, 1.0, 3.0, 1.5, 1.1), judged("b", 1.0, 2.0, 1.5, 3.0, 1.1))
    assert not found.figures.significant
    assert found.figures.ties == 1
    low, _, high = ends(found)
    assert low < 1.0 < high


def test_a_failure_counts_as_no_gain_and_stays() -> None:
    found = compare(judged("a", None, 2.0), judged("b", 4.0, 2.0))
    assert [pair.one.value for pair in found.pairs] == [1.0, 2.0]
    assert found.pairs[0].one_right == 0.0
    assert found.figures.ratio == pytest.approx(0.5)
    assert "failed (1.00x)" in render_comparison(found)


def test_failing_never_wins_however_slow_the_other_is() -> None:
    """A kernel that is right and slower than its baseline is worth no less than none."""
    there = compare(judged("a", None, 2.0), judged("none", 0.83, 2.0))
    back = compare(judged("none", 0.83, 2.0), judged("a", None, 2.0))
    assert [(p.winner, p.ratio) for p in there.pairs] == [(2, 1.0), (0, 1.0)]
    assert [(p.winner, p.ratio) for p in back.pairs] == [(1, 1.0), (0, 1.0)]
    assert (there.figures.losses, there.figures.ratio, back.figures.wins) == (1, 1.0, 1)
    assert there.to_json()["pairs"][0]["winner"] == 2


def test_a_ratio_that_the_columns_do_not_give_is_explained() -> None:
    """0.96x against 1.00x of a failure is no 1.00x, unless one knows the rule."""
    lines = render_comparison(compare(judged("none", 0.96), judged("mine", None))).splitlines()
    rule = "if only one is right, it wins, and its ratio counts as at least 1.00x"
    assert lines[1].endswith("  0.96x ±11 %  failed (1.00x)  1.00x +  only none is right")
    assert lines.count(rule) == 1
    assert rule not in render_comparison(compare(judged("none", 0.96), judged("mine", 1.0)))


def vague(name: str, low: float, high: float) -> Evaluation:
    """An evaluation whose interval is too wide, so that its lower end is its speedup."""
    figures = {"speedup": low, "speedup_low": low, "speedup_high": high}
    return evaluation(name, replace(result("t0", low), figures=figures))


def test_two_lower_ends_are_not_divided_as_if_they_were_middles() -> None:
    found = compare(vague("a", 0.3, 2.7), vague("b", 0.8, 1.2))
    low, ratio, high = ends(found)
    assert ratio == pytest.approx(0.9 / 0.8)
    assert low < 1.0 < high
    (pair,) = found.to_json()["pairs"]
    assert (pair["one"], pair["one_low"], pair["one_high"]) == pytest.approx((0.9, 0.3, 2.7))
    text = render_comparison(found)
    assert "~0.30x  0.80x ±22 %  ~" in text
    assert text.count("~: the 95 % interval is too wide for a figure") == 1


def test_one_against_itself_is_a_tie_between_ends_that_have_it() -> None:
    found = compare(vague("a", 0.3, 2.7), vague("b", 0.3, 2.7))
    low, ratio, high = ends(found)
    assert low < ratio == 1.0 < high
    assert (found.figures.ties, found.figures.significant) == (1, False)


def test_two_that_fail_are_a_tie() -> None:
    found = compare(judged("a", None), judged("b", None))
    assert (found.figures.ties, found.figures.ratio) == (1, 1.0)


def test_what_was_not_judged_is_in_no_pair_and_named() -> None:
    one = evaluation("claude_code", stopped("t0"), result("t1", 2.0))
    found = compare(one, judged("none", 1.2, 1.0))

    assert [pair.task for pair in found.pairs] == ["//tasks/hip2hip/t1"]
    assert (found.figures.wins, found.figures.losses, found.figures.ratio) == (1, 0, 2.0)
    assert found.unjudged == ({"//tasks/hip2hip/t0": "NO_SECRET"}, {})
    last = render_comparison(found).splitlines()[-1]
    assert last == (
        "not judged of claude_code, excluded from all figures: //tasks/hip2hip/t0 (NO_SECRET)"
    )


def test_where_nothing_was_judged_there_is_no_ratio() -> None:
    found = compare(evaluation("a", stopped("t0")), judged("none", 1.2))
    none = found.figures
    assert (found.pairs, none.ratio, none.low, none.high) == ((), None, None, None)
    assert (none.wins, none.losses, none.p_value) == (0, 0, 1.0)
    assert not none.significant
    assert "nothing to compare" in render_comparison(found)
    assert json.dumps(found.to_json(), allow_nan=False)


def scripted(name: str, *speedups: float) -> Evaluation:
    """A task for each speedup, all of tier ``script``."""
    made = judged(name, *speedups)
    tasks = (replace(one, figures={**one.figures, "tier": "script"}) for one in made.results)
    return replace(made, results=tuple(tasks))


def test_what_a_script_judged_is_averaged_with_nothing_else() -> None:
    """A script's eightfold speedup is in neither the ratio, the wins nor the tasks of the rest."""
    odd = result("gather", 8.0), result("gather", 1.0)
    one, other = (replace(r, figures={**r.figures, "tier": "script"}) for r in odd)
    found = compare(
        evaluation("a", result("softmax", 2.0), one), evaluation("b", result("softmax", 1.0), other)
    )
    told, text = found.to_json(), render_comparison(found)

    (apart,) = found.apart
    assert found.figures.ratio == pytest.approx(2.0)
    assert apart.ratio == pytest.approx(8.0)
    assert (found.figures.tasks, found.figures.wins, apart.tier, apart.wins) == (1, 1, "script", 1)
    assert (told["ratio"], told["wins"]) == (pytest.approx(2.0), 1)
    assert [pair["tier"] for pair in told["pairs"]] == ["script", ""]
    assert [one["tier"] for one in told["apart"]] == ["script"]
    assert "a / b: 2.00x" in text
    assert "a / b, tier script: 8.00x" in text
    assert "4.00x" not in text


def test_tasks_of_tier_script_alone_have_no_other_ratio() -> None:
    found = compare(scripted("a", 3.0, 3.0), scripted("b", 1.0, 1.0))
    text = render_comparison(found)
    assert (found.figures.ratio, found.figures.tasks, found.apart[0].tasks) == (None, 0, 2)
    assert "a / b, tier script: 3.00x" in text
    assert "nothing to compare" not in text


def test_where_nothing_was_judged_nothing_is_said_of_times() -> None:
    untimed = saying(stopped("t0"), {"compile": {"verdict": "INFRA", "reason": "NO_SECRET"}})
    text = render_comparison(compare(evaluation("a", untimed), evaluation("b", untimed)))
    assert "nothing to compare" in text
    assert "nothing was timed" not in text


def test_a_task_counts_by_the_trials_that_were_judged() -> None:
    one = evaluation("a", result("t0", 4.0), stopped("t0", 2))
    found = compare(one, judged("b", 2.0))
    (pair,) = found.pairs
    assert (pair.one.value, pair.one_right) == (4.0, 1.0)
    assert found.unjudged[0] == {"//tasks/hip2hip/t0#2": "NO_SECRET"}


def test_a_trial_that_failed_shows_with_those_that_did_not() -> None:
    one = evaluation("a", result("t0", 4.0), in_trial(result("t0", None), 2))
    found = compare(one, judged("b", 2.0))
    assert "2.00x ±5 % (50% right)" in render_comparison(found)


def test_reasons_of_others_write_on_no_terminal() -> None:
    odd = saying(stopped("t0"), {"perf": {"verdict": "\x1b[31m", "reason": ""}})
    found = compare(evaluation("a", odd), judged("b", 1.0))
    assert "\x1b" not in render_comparison(found)


def test_few_tasks_prove_nothing() -> None:
    found = compare(judged("a", 5.0, 5.0, 5.0), judged("b", 1.0, 1.0, 1.0))
    assert not found.figures.significant
    assert "3 tasks are too few to be sure" in render_comparison(found)


def test_tasks_that_only_one_has_are_no_pairs() -> None:
    found = compare(judged("a", 2.0, 2.0), judged("b", 1.0))
    assert len(found.pairs) == 1
    assert found.unpaired == ("//tasks/hip2hip/t1",)
    assert "1 task is too few to be sure" in render_comparison(found)
    assert "in one of them only, excluded from all figures: //tasks" in render_comparison(found)
    with pytest.raises(ValueError, match="no task in common"):
        compare(judged("a"), judged("b", 1.0))


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 1 / 16), (8, 2, 0.109375), (3, 3, 1)]
)
def test_the_sign_test_is_exact(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)
    assert sign_test(losses, wins) == pytest.approx(p)


@settings(max_examples=examples(25))
@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=12))
def test_swapping_agents_turns_everything_around(speedups: list[float]) -> None:
    one, other = judged("a", *speedups), judged("b", *[1.0] * len(speedups))
    there, back = compare(one, other), compare(other, one)
    low, ratio, high = ends(there)
    assert ratio == pytest.approx(1 / ends(back)[1])
    assert (there.figures.wins, there.figures.losses) == (back.figures.losses, back.figures.wins)
    assert low <= ratio * 1.0000001
    assert ratio <= high * 1.0000001


def test_what_sessions_cost_is_summed() -> None:
    usage = {"output_tokens": 5, "dollars": None}
    told: dict[str, Any] = {"agent": {"seconds": 10.0, "usage": usage}}
    one = evaluation("a", result("t0", 2.0, **told), result("t1", 2.0, **told))
    found = compare(one, judged("b", 1.0, 1.0))
    assert found.costs == ({"seconds": 20.0, "output_tokens": 10}, {})
    assert "all sessions of a: 20 seconds, 10 output_tokens" in render_comparison(found)


def test_an_agent_that_did_not_finish_is_named() -> None:
    """What is judged of it is what it left, such as the kernel that it was given."""
    crashed: dict[str, Any] = {"agent": {"state": "failed", "message": "no\nmodule"}}
    one = evaluation("a", *(result(f"t{n}", 1.0, **crashed) for n in range(2)))
    found = compare(one, judged("b", 1.0, 1.0))
    assert found.to_json()["ended"][0]["//tasks/hip2hip/t1"] == "agent: failed: no module"
    told = "a: agent: failed: no module (//tasks/hip2hip/t0, //tasks/hip2hip/t1)"
    assert told in render_comparison(found).splitlines()


def test_the_command_pairs_agents_and_bundles(tmp_path: Path) -> None:
    generate(tmp_path / "work", 3, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    workspace.run("publish", "//...", "-o", "a.kab")
    agents = workspace.run("compare", "none", "expert", "//...", "--json")
    bundles = workspace.run("compare", "a.kab", "a.kab")

    assert agents.json["schema"] == "kabuild/compare/1"
    assert (agents.json["ties"], agents.json["ratio"]) == (3, 1.0)
    assert "3 ties" in bundles.out
    assert len([*(workspace.root / "out/.keys").iterdir()]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("expert",), "name two agents"),
        (("none", "expert"), "name two agents"),
        (("none", "expert", "//...", "--agent=none"), "no option"),
        (("none", "expert", "//...", "--solution=x"), "no option"),
        (("none", "exprt", "//..."), "exprt"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    ran = CliWorkspace(tmp_path / "work", tmp_path / "store").run("compare", *arguments)
    assert ran.code in {1, 2}
    assert message in ran.err
    assert "Traceback" not in ran.err
