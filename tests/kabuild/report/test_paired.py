"""Two agents on the same tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.report.paired import compare, render_comparison, sign_test
from tests.kabuild.report.test_page import evaluation, result
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path

    from kabuild.report.evaluation import Evaluation


def judged(name: str, *speedups: float | None) -> Evaluation:
    """One task for each speedup; None is a failure."""
    return evaluation(name, *(result(f"t{n}", speedup) for n, speedup in enumerate(speedups)))


def test_a_clear_winner_is_one() -> None:
    found = compare(judged("a", *[2.0 + n / 10 for n in range(10)]), judged("b", *[1.0] * 10))
    assert (found.wins, found.losses, found.ties) == (10, 0, 0)
    assert found.low > 1.9
    assert found.significant
    assert found.p_value == pytest.approx(2 / 1024)


def test_equal_agents_are_not_told_apart() -> None:
    found = compare(judged("a", 2.0, 1.0, 3.0, 1.5, 1.1), judged("b", 1.0, 2.0, 1.5, 3.0, 1.1))
    assert not found.significant
    assert found.ties == 1
    assert found.low < 1.0 < found.high


def test_a_failure_counts_as_no_gain_and_stays() -> None:
    found = compare(judged("a", None, 2.0), judged("b", 4.0, 2.0))
    assert [pair.one for pair in found.pairs] == [1.0, 2.0]
    assert found.pairs[0].one_right == 0.0
    assert found.ratio == pytest.approx(0.5)
    assert "1.00x 0%" in render_comparison(found)


def test_few_tasks_prove_nothing() -> None:
    found = compare(judged("a", 5.0, 5.0, 5.0), judged("b", 1.0, 1.0, 1.0))
    assert not found.significant
    assert "3 tasks are too few" in render_comparison(found)


def test_tasks_that_only_one_has_are_no_pairs() -> None:
    assert len(compare(judged("a", 2.0, 2.0), judged("b", 1.0)).pairs) == 1
    with pytest.raises(ValueError, match="no task in common"):
        compare(judged("a"), judged("b", 1.0))


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 1 / 16), (8, 2, 0.109375), (3, 3, 1)]
)
def test_the_sign_test_is_exact(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)
    assert sign_test(losses, wins) == pytest.approx(p)


@settings(max_examples=25)
@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=12))
def test_swapping_agents_turns_everything_around(speedups: list[float]) -> None:
    one, other = judged("a", *speedups), judged("b", *[1.0] * len(speedups))
    there, back = compare(one, other), compare(other, one)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert there.low <= there.ratio * 1.0000001
    assert there.ratio <= there.high * 1.0000001


def test_what_sessions_cost_is_summed() -> None:
    usage = {"output_tokens": 5, "dollars": None}
    told: dict[str, Any] = {"agent": {"seconds": 10.0, "usage": usage}}
    one = evaluation("a", result("t0", 2.0, **told), result("t1", 2.0, **told))
    found = compare(one, judged("b", 1.0, 1.0))
    assert found.costs == ({"seconds": 20.0, "output_tokens": 10}, {})
    assert "a: 20 seconds, 10 output_tokens" in render_comparison(found)


def test_the_command_pairs_agents_and_bundles(tmp_path: Path) -> None:
    generate(tmp_path / "work", 3, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    workspace.run("publish", "//...", "-o", "a.kab")
    agents = workspace.run("compare", "none", "expert", "//...", "--json")
    bundles = workspace.run("compare", "a.kab", "a.kab")

    assert agents.json["schema"] == "kabuild/compare/1"
    assert (agents.json["ties"], agents.json["ratio"]) == (3, 1.0)
    assert "3 ties" in bundles.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("expert",), "two agents or bundles"),
        (("none", "expert"), "two agents or bundles"),
        (("none", "expert", "//...", "--agent=none"), "have no meaning here"),
        (("none", "exprt", "//..."), "exprt"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    ran = CliWorkspace(tmp_path / "work", tmp_path / "store").run("compare", *arguments)
    assert ran.code in {1, 2}
    assert message in ran.err
    assert "Traceback" not in ran.err
