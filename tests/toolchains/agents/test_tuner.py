"""The search of the tuner, on a judge that answers from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pick
import pytest
from costs import MARGIN
from halving import choose, halve
from hypothesis import given
from hypothesis import strategies as st
from kabuild_check import Answer, CheckError
from tunables import find
from tuner import PROOF, SHORTEST, Tuner, points

KERNEL = "// kabuild:tune kX = 1, 2, 3, 4, 5, 6, 7, 8\nconstexpr int kX = 4;\n"


class Judge:
    """Says of each value of kX how fast it is, give or take ``noise``.

    Those in ``wrong`` are wrong, those in ``broken`` do not compile. ``alone`` is how fast they are
    in the last measurement, where that is not the same. ``takes`` is what a check takes by its
    gate, ``perf`` besides what it is given. ``modelled`` has the modelled times that are known.
    """

    def __init__(
        self,
        speedups: Mapping[int, float | None],
        *,
        wrong: Sequence[int] = (),
        broken: Sequence[int] = (),
        alone: Mapping[int, float | None] | None = None,
        noise: float = 0.01,
        takes: Mapping[str, float] | None = None,
        modelled: Mapping[int, float] | None = None,
    ) -> None:
        self.asked: list[tuple[int, str, float]] = []
        self.compiled: list[list[int]] = []
        self.now = 0.0
        self._speedups = speedups
        self._alone = speedups if alone is None else alone
        self._wrong = wrong
        self._broken = broken
        self._noise = noise
        self._takes = takes or {}
        self._modelled = modelled

    def check(
        self, source: str, gates: Sequence[str], *, budget: float = 0.0, against: str = ""
    ) -> Answer:
        value = int(find(source)[0].default)
        (gate,) = gates
        proven = (value, "correctness", 0.0) in self.asked
        self.asked.append((value, gate, budget))
        self.now += self._takes.get(gate, 0.0) + budget
        assert against == (KERNEL if gate == "perf" else "")
        assert any(value in batch for batch in self.compiled), "nothing waits for its compiler"
        speedup = (self._alone if proven else self._speedups).get(value, 1.0)
        good = speedup is not None if gate == "perf" else value not in self._wrong
        verdict: dict[str, Any] = {"gate": gate, "verdict": "PASS" if good else "FAIL"}
        if gate == "perf" and speedup is not None:
            ends = {"low": speedup - self._noise, "high": speedup + self._noise}
            verdict |= {"mean_speedup": speedup, "cases": [ends, ends]}
        return Answer(({**verdict, "reason": "", "summary": "", "detail": ""},))

    def compile_all(self, sources: Sequence[str]) -> Sequence[Answer]:
        values = [int(find(source)[0].default) for source in sources]
        self.compiled.append(values)
        self.now += len(values) * self._takes.get("compile", 0.0)
        said = {"gate": "compile", "reason": "", "summary": ""}
        return [
            Answer(({**said, "verdict": "FAIL" if value in self._broken else "PASS"},))
            for value in values
        ]

    def rank(self, sources: Sequence[str], *, seconds: float) -> Sequence[float | None]:
        if self._modelled is None:
            raise CheckError("nothing models the times", machine=False)
        assert seconds > 0
        return [self._modelled.get(int(find(source)[0].default)) for source in sources]

    @property
    def measured(self) -> set[int]:
        """The values that were timed."""
        return {value for value, gate, _ in self.asked if gate == "perf"}


def _search(judge: Judge, *, end: float = 1e9, seed: int = 1) -> int:
    tuner = Tuner(KERNEL, judge, end=end, now=lambda: judge.now)
    return int(find(tuner.search(27, seed))[0].default)


def test_what_the_model_finds_fastest_is_timed_first() -> None:
    """So that the best is among the few for which there is time; without a model it is not."""
    speedups = dict.fromkeys(range(1, 9), 1.0) | {7: 2.0}
    takes = {"perf": 2.0, "correctness": 2.0, "compile": 1.0}
    modelled = {1: 50.0, 2: 40.0, 3: 30.0, 5: 20.0, 7: 10.0}

    judge = Judge(speedups, takes=takes, modelled=modelled)
    found = _search(judge, end=24.0, seed=2)

    timed = [value for value, gate, _ in judge.asked if gate == "perf"]
    assert timed[:2] == [7, 5]
    assert found == 7
    other = Judge(speedups, takes=takes)
    assert _search(other, end=24.0, seed=2) == 4
    assert 7 not in other.measured


def test_points_without_a_modelled_time_come_last() -> None:
    judge = Judge({}, modelled={8: 1.0, 6: 2.0})

    _search(judge)

    timed = [value for value, gate, _ in judge.asked if gate == "perf"]
    assert timed[:2] == [8, 6]
    assert set(timed) == {1, 2, 3, 5, 6, 7, 8}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_fastest_is_found_whatever_the_seed(seed: int) -> None:
    assert _search(Judge({6: 2.0, 7: 1.5}), seed=seed) == 6


def test_what_is_wrong_or_does_not_run_is_not_handed_in() -> None:
    assert _search(Judge({6: 2.0, 7: 1.5, 8: None}, wrong=[6])) == 7
    assert _search(Judge({6: 2.0, 7: 1.5}, wrong=[6, 7])) == 4


def test_what_does_not_compile_is_not_timed() -> None:
    judge = Judge({6: 2.0, 7: 1.5}, broken=[6, 8])

    assert _search(judge) == 7
    assert not judge.measured & {6, 8}


def test_luck_is_not_handed_in() -> None:
    """The best of many measurements is measured once more."""
    assert _search(Judge({6: 2.0, 7: 1.5}, alone={6: 0.9, 7: 1.2})) == 7
    assert _search(Judge({6: 2.0, 7: 1.5}, alone={6: 0.9, 7: None})) == 4


def test_only_what_is_faster_by_its_whole_interval_is_handed_in() -> None:
    assert _search(Judge({6: 1.05}, noise=0.04)) == 6
    assert _search(Judge({6: 1.05}, noise=0.06)) == 4


def test_what_is_surely_slower_is_measured_once() -> None:
    judge = Judge(dict.fromkeys(range(1, 9), 0.9) | {5: 0.995, 6: 1.5})

    assert _search(judge) == 6
    assert [seconds for value, _, seconds in judge.asked if value == 3] == [1.0]


def test_what_is_no_faster_when_measured_longer_goes_no_further() -> None:
    judge = Judge({value: 1.0 - value / 100 for value in range(1, 9)}, noise=0.1)

    assert _search(judge) == 4
    assert {seconds for _, _, seconds in judge.asked} == {1.0, 3.0}


def test_a_wide_interval_is_no_reason_to_leave_what_may_be_far_faster() -> None:
    """One disturbed process of three: the figure that counts is the lower end, below 1."""

    class Disturbed(Judge):
        def check(
            self, source: str, gates: Sequence[str], *, budget: float = 0.0, against: str = ""
        ) -> Answer:
            answer = super().check(source, gates, budget=budget, against=against)
            value, gate, _ = self.asked[-1]
            if gate != "perf" or value != 6 or budget > SHORTEST:
                return answer
            ends = {"low": 0.8, "high": 400.0}
            return Answer(({**answer.verdicts[0], "mean_speedup": 0.8, "cases": [ends]},))

    assert _search(Disturbed({6: 2.0})) == 6
    assert _search(Disturbed({6: 1.0})) == 4


def test_a_check_that_the_machine_fails_is_asked_again_and_twice_ends_the_search() -> None:
    class Flaky(Judge):
        fails: Sequence[int] = ()

        def check(
            self, source: str, gates: Sequence[str], *, budget: float = 0.0, against: str = ""
        ) -> Answer:
            answer = super().check(source, gates, budget=budget, against=against)
            if len(self.asked) in self.fails:
                raise CheckError("the device is lost", machine=True)
            return answer

    for fails in ((1,), (3,), (1, 3), (1, 5, 8)):
        judge = Flaky({6: 2.0})
        judge.fails = fails

        assert _search(judge) == 6
        for number in fails:
            assert judge.asked[number - 1] == judge.asked[number]
    judge = Flaky({6: 2.0})
    judge.fails = (2, 3)
    with pytest.raises(CheckError, match="lost"):
        _search(judge)


def test_where_nothing_is_faster_the_kernel_stays() -> None:
    judge = Judge(dict.fromkeys(range(1, 9), 0.99), noise=0.001)

    assert _search(judge) == 4
    assert judge.measured == {1, 2, 3, 5, 6, 7, 8}
    assert not [gate for _, gate, _ in judge.asked if gate != "perf"]


def test_the_same_seed_asks_the_same() -> None:
    first, second, other = (Judge({2: 1.3}) for _ in range(3))
    _search(first, seed=5)
    _search(second, seed=5)
    _search(other, seed=6)

    assert first.asked == second.asked
    assert first.asked != other.asked


@pytest.mark.parametrize("end", range(10, 120, 5))
@pytest.mark.parametrize("takes", [(4.0, 1.5, 0.8), (8.0, 7.0, 2.0), (1.0, 4.0, 0.1)])
def test_the_time_is_kept_and_used(end: int, takes: tuple[float, float, float]) -> None:
    """What proves a winner fits in, and where much time is left, all was timed."""
    costs = dict(zip(("perf", "correctness", "compile"), takes, strict=True))
    judge = Judge({value: 1.0 + value / 10 for value in range(1, 9)}, takes=costs)
    found = _search(judge, end=end)
    measure, correctness = sum(takes) + 1.0 - takes[1], takes[1]
    began = measure + takes[2] + correctness
    proof = takes[0] + 1.0 + correctness

    assert judge.now <= max(end, began)
    if end > began + 2 * proof:
        assert judge.asked[-1][1] == "perf"
        assert judge.asked[-1][0] == found == max(judge.measured)
        kept = MARGIN * proof + PROOF * end
        spare = end - began - kept - (MARGIN - 1) * measure
        assert len(judge.measured) >= min(7, 1 + int(spare / measure))


def test_slow_checks_leave_time_for_many() -> None:
    """A minute at five seconds a check, two minutes at nine."""
    for end, perf, correctness, least in ((60, 4.0, 1.5, 6), (120, 8.0, 7.0, 6), (60, 8.0, 7.0, 2)):
        costs = {"perf": perf, "correctness": correctness, "compile": 1.0}
        judge = Judge({6: 1.2}, takes=costs)
        _search(judge, end=end)

        assert len(judge.measured) >= least


def test_only_what_there_is_time_for_is_compiled() -> None:
    judge = Judge({}, takes={"perf": 9.0, "correctness": 2.0, "compile": 1.0})
    _search(judge, end=60)

    assert judge.compiled[:2] == [[], [4, judge.asked[0][0]]]
    assert sum(map(len, judge.compiled)) == 1 + len(judge.measured)


def test_the_last_measurement_takes_the_time_that_is_left() -> None:
    for end, least in ((1e9, 9.0), (40, 1.0)):
        judge = Judge({6: 2.0}, takes={"perf": 4.0, "correctness": 1.0})
        _search(judge, end=end)

        assert judge.asked[-1][1] == "perf"
        assert least <= judge.asked[-1][2] <= 9.0
        assert judge.now <= end


def test_a_winner_is_proven_by_a_longer_measurement_than_it_won() -> None:
    judge = Judge({6: 2.0}, takes={"perf": 8.0, "correctness": 7.0, "compile": 1.0})
    _search(judge, end=120)

    assert judge.asked[-1][:2] == (6, "perf")
    assert judge.asked[-1][2] > 2.0
    assert judge.now <= 120


def test_launches_that_share_a_tunable_are_first_changed_together() -> None:
    text = "".join(
        f"# kabuild:tune {name} = 1, 2, 3\n# kabuild:tune W = 4, 8\nk({name}=1, W=4)\n"
        for name in ("B", "B")
    )
    tunables = find(text)
    chosen = points(tunables, 10, seed=1)

    assert len(set(chosen)) == 10
    assert all(point[:2] == point[2:] for point in chosen[:6])
    assert any(point[:2] != point[2:] for point in chosen[6:])
    assert len(points(tunables, 99, seed=1)) == 36
    assert chosen == points(tunables, 10, seed=1) != points(tunables, 10, seed=2)


def test_later_rungs_are_measured_longer() -> None:
    budgets: list[float] = []

    def measure(item: int, seconds: float) -> float:
        budgets.append(seconds)
        return float(item)

    ranked = halve(range(9), measure, shortest=1.0, longest=9.0)

    assert ranked == [(8, 8.0), (7, 7.0)]
    assert budgets == [1.0] * 9 + [3.0] * 3 + [9.0] * 2


def test_no_rung_follows_the_longest() -> None:
    budgets: set[float] = set()

    def measure(item: int, seconds: float) -> float:
        budgets.add(seconds)
        return float(item)

    ranked = halve(range(100), measure, shortest=1.0, longest=9.0)

    assert budgets == {1.0, 3.0, 9.0}
    assert [item for item, _ in ranked] == list(range(99, 87, -1))


def test_nothing_measured_is_nothing_ranked() -> None:
    assert halve([1, 2], lambda _, __: None, shortest=1.0, longest=9.0) == []
    assert (
        halve([1, 2], lambda _, __: 1.0, shortest=1.0, longest=9.0, late=lambda _, __: True) == []
    )


def test_a_rung_that_is_cut_short_counts_with_the_one_before() -> None:
    figures = {(0, 3.0): 0.5}

    ranked = halve(
        range(9),
        lambda item, seconds: figures.get((item, seconds), 10.0 - item),
        shortest=1.0,
        longest=9.0,
        late=lambda item, seconds: (item, seconds) == (1, 3.0),
    )

    assert ranked == [(1, 9.0), (2, 8.0), (0, 0.5)]


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
