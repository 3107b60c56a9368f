"""The search of the tuner, on a judge that answers from a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pick
import pytest
from halving import choose, halve
from hypothesis import given
from hypothesis import strategies as st
from kabuild_check import Answer
from tunables import find
from tuner import Tuner

KERNEL = "// kabuild:tune kX = 1, 2, 3, 4, 5, 6, 7, 8\nconstexpr int kX = 4;\n"


class Judge:
    """Says of each value of kX how fast it is; those in ``wrong`` are wrong.

    ``alone`` is how fast they are against the kernel as it is, where that is not the same.
    """

    def __init__(
        self,
        speedups: dict[int, float | None],
        wrong: Sequence[int] = (),
        alone: dict[int, float | None] | None = None,
    ) -> None:
        self.asked: list[tuple[int, str, float]] = []
        self._speedups = speedups
        self._alone = speedups if alone is None else alone
        self._wrong = wrong

    def check(
        self, source: str, gates: Sequence[str], budget: float = 0.0, against: str = ""
    ) -> Answer:
        value = int(find(source)[0].default)
        (gate,) = gates
        self.asked.append((value, gate, budget))
        speedup = self._alone.get(value, 1.0) if against else self._speedups.get(value, 1.0)
        good = speedup is not None if gate == "perf" else value not in self._wrong
        verdict: dict[str, Any] = {"gate": gate, "verdict": "PASS" if good else "FAIL"}
        if gate == "perf" and good:
            verdict["mean_speedup"] = speedup
        return Answer(({**verdict, "reason": "", "summary": "", "detail": ""},))


def _search(judge: Judge, *, end: float = 1e9, seed: int = 1) -> int:
    tuner = Tuner(KERNEL, judge.check, end=end, now=lambda: len(judge.asked))
    return int(find(tuner.search(27, seed))[0].default)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_fastest_is_found_whatever_the_seed(seed: int) -> None:
    assert _search(Judge({6: 2.0, 7: 1.5}), seed=seed) == 6


def test_what_is_wrong_or_does_not_run_is_not_handed_in() -> None:
    judge = Judge({6: 2.0, 7: 1.5, 8: None}, wrong=[6])

    assert _search(judge) == 7


def test_luck_is_not_handed_in() -> None:
    """The best of many measurements is measured once more."""
    assert _search(Judge({6: 2.0, 7: 1.5}, alone={6: 0.9, 7: 1.2})) == 7
    assert _search(Judge({6: 2.0, 7: 1.5}, alone={6: 0.9, 7: None})) == 4


def test_where_nothing_is_faster_the_kernel_stays() -> None:
    assert _search(Judge({4: 1.1})) == 4


def test_the_same_seed_asks_the_same() -> None:
    first, second = Judge({2: 1.3}), Judge({2: 1.3})
    _search(first, seed=5)
    _search(second, seed=5)

    assert first.asked == second.asked


def test_the_kernels_own_values_are_measured_first_and_the_time_is_kept() -> None:
    """Each check takes one unit of time here; what proves a winner has to fit in, too."""
    for end in range(5, 30):
        judge = Judge({6: 2.0, 7: 1.9}, wrong=[6])
        found = _search(judge, end=end)

        assert judge.asked[0] == (4, "perf", 0.2)
        assert 4 <= len(judge.asked) <= end
    assert found == 7


def test_later_rungs_are_measured_longer() -> None:
    budgets: list[float] = []

    def measure(item: int, seconds: float) -> float:
        budgets.append(seconds)
        return float(item)

    ranked = halve(range(9), measure, shortest=1.0)

    assert ranked == [(8, 8.0), (7, 7.0)]
    assert budgets == [1.0] * 9 + [3.0] * 3 + [9.0] * 2


def test_nothing_measured_is_nothing_ranked() -> None:
    assert halve([1, 2], lambda _, __: None, shortest=1.0) == []
    assert halve([1, 2], lambda _, __: 1.0, shortest=1.0, enough=lambda: True) == []


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 40), st.integers())
def test_chosen_points_differ_lie_on_the_grid_and_follow_from_the_seed(
    sizes: list[int], most: int, seed: int
) -> None:
    grid = [[str(value) for value in range(size)] for size in sizes]
    points = choose(grid, most, seed)
    total = 1
    for size in sizes:
        total *= size

    assert len(points) == len(set(points)) == min(most, total)
    assert all(value in axis for point in points for value, axis in zip(point, grid, strict=True))
    assert points == choose(grid, most, seed)


def test_the_random_agent_follows_from_its_seed(tmp_path: Path) -> None:
    picked = []
    for seed in (1, 1, 2, 3, 4, 5):
        (tmp_path / "k.hip").write_text(KERNEL)
        assert pick.main([str(tmp_path / "k.hip"), f"--seed={seed}"]) == 0
        picked.append(find((tmp_path / "k.hip").read_text())[0].default)

    assert picked[0] == picked[1]
    assert len(set(picked)) > 1


def test_the_random_agent_refuses_a_wrong_declaration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.hip").write_text("// kabuild:tune kX\nint kX;\n")

    assert pick.main([str(tmp_path / "k.hip")]) == 1
    assert "k.hip: line 1" in capsys.readouterr().err
