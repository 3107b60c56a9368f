"""The nouns of a search, each by itself: replies, kernels, ratios, populations, budgets."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from attempts import Attempt, Outcome, clip, errors, recent
from budget import Budget, Cost, Limits, Prices
from hypothesis import given
from hypothesis import strategies as st
from journal import Journal, key_of
from judging import Judge, Judgement, Ratio, overall
from normal_form import digest
from population import Candidate, Population
from replies import MOST_BYTES, ReplyError, read_proposal

from .scripted import Gates, kernel

NOTHING = Judgement(())
lines = st.text(st.characters(exclude_characters="`~\0", exclude_categories=("Cc", "Cs", "Zl")))


@given(st.lists(lines.filter(str.strip), min_size=1), lines, lines)
def test_a_block_comes_out_as_it_went_in(body: list[str], before: str, after: str) -> None:
    source = "\n".join(body)
    text = f"{before}\n```cpp\n{source}\n```\n{after}"

    assert read_proposal(text).splitlines() == source.splitlines()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no block of code"),
        ("Use `this`.", "no block of code"),
        ("```\na\n```\n```\nb\n```", "has 2 blocks"),
        ("```cpp\nint a;", "does not end"),
        ("```\n\n```", "is empty"),
        ("```\na\0\n```", "zero byte"),
        ("```\na\ud800\n```", "is not text"),
        (f"```\n{'x' * MOST_BYTES}\n```", "more than"),
    ],
)
def test_a_reply_that_proposes_nothing(text: str, complaint: str) -> None:
    with pytest.raises(ReplyError, match=complaint):
        read_proposal(text)


def test_a_longer_fence_holds_shorter_ones() -> None:
    assert read_proposal("````py\na = '''\n```\n'''\n````") == "a = '''\n```\n'''\n"


SOURCE = '#define A "//no" /* one */\nint f(int x) { return x + A[0]; } // two\n'


@given(st.sampled_from([" ", "\n", "  // note\n", "/* a\nb */", "\t"]), st.integers(0, 3))
def test_comments_and_blanks_are_not_what_a_kernel_says(extra: str, line: int) -> None:
    before = SOURCE.splitlines(keepends=True)
    changed = "".join([*before[:line], extra, *before[line:]])

    assert digest(changed, python=False) == digest(SOURCE, python=False)


@pytest.mark.parametrize("other", ["//np", "y + A[0]", "A[1]", "int  g"])
def test_everything_else_is(other: str) -> None:
    old = {"//np": "//no", "y + A[0]": "x + A[0]", "A[1]": "A[0]", "int  g": "int f"}[other]

    assert digest(SOURCE.replace(old, other), python=False) != digest(SOURCE, python=False)


def test_python_says_what_it_parses_to() -> None:
    one, same = "def f(x):\n    return x  # y\n", "def f( x ):\n\n  return (x)\n"

    assert digest(one, python=True) == digest(same, python=True)
    assert digest(one, python=True) != digest(one.replace("return", "yield"), python=True)
    assert digest("def (", python=True) != digest("def  (", python=True)


ratios = st.builds(
    lambda value, below, above: Ratio(value, value / below, value * above),
    st.floats(0.1, 10),
    st.floats(1, 3),
    st.floats(1, 3),
)


@given(st.lists(ratios, min_size=1, max_size=8))
def test_many_ratios_are_known_better_than_one_and_no_better_than_that(many: list[Ratio]) -> None:
    whole = overall(many)
    values = [ratio.value for ratio in many]

    assert min(values) * 0.999 <= whole.value <= max(values) * 1.001
    assert whole.low <= whole.value * 1.001
    assert whole.value <= whole.high * 1.001
    widest = max(ratio.high / ratio.low for ratio in many)
    assert whole.high / whole.low <= widest * 1.001
    if len(many) == 1:
        assert whole.value == pytest.approx(values[0])
        assert whole.low == pytest.approx(many[0].low)


def test_a_gain_within_the_noise_is_none() -> None:
    assert not overall([Ratio(1.1, 0.99, 1.2)]).is_faster
    assert overall([Ratio(1.1, 1.01, 1.2)]).is_faster
    assert overall([Ratio(1.06, 0.98, 1.15)] * 4).is_faster, "four configs say it together"


@pytest.mark.parametrize(
    ("told", "faster"), [({}, False), ({"noise": 0.004}, True), ({"noise": 0.03}, False)]
)
def test_on_a_device_the_noise_of_this_machine_decides(
    told: dict[str, float], faster: bool
) -> None:
    times = {"candidate_ns": 1000.0, "baseline_ns": 1010.0, "speedup": 1.01}
    case = {"config": "small", **times, "low": 0.99, "high": 1.03, **told}
    judged = Judgement(({"gate": "perf", "verdict": "PASS", "cases": [case]},))

    assert judged.ratio is not None
    assert judged.ratio.is_faster is faster


def test_the_judge_is_asked_once_about_each_text(tmp_path: Path) -> None:
    for _ in range(2):
        gates = Gates()
        judge = Judge(gates.check, Journal(tmp_path / "journal", lambda: 0.0))
        proved = judge.prove(kernel(2))
        timed = judge.time(kernel(2), kernel())
        assert proved.is_right
        assert timed.ratio is not None
        assert timed.ratio.value == pytest.approx(2.0)
        assert [case.config for case in timed.cases] == ["small", "large"]
    assert gates.asked == []


def test_a_judge_that_fails_is_asked_again(tmp_path: Path) -> None:
    gates = Gates()
    judge = Judge(gates.check, Journal(tmp_path / "journal", lambda: 0.0))

    assert [judge.prove(f"{kernel()}// BREAKS").problem for _ in range(2)] == [
        "the machine broke"
    ] * 2
    assert len(gates.asked) == 2


def _candidate(fitness: float, name: str) -> Candidate:
    return Candidate(name, name, fitness, NOTHING, NOTHING)


@given(st.lists(st.tuples(st.floats(0.1, 9), st.integers(0, 5), st.booleans()), max_size=30))
def test_a_population_holds_the_best_and_the_fittest_others_once(
    many: list[tuple[float, int, bool]],
) -> None:
    population = Population(3)
    for fitness, name, is_kept in many:
        made = _candidate(fitness, str(name))
        (population.keep if is_kept else population.add)(made)

    members = population.members
    assert len({member.digest for member in members}) == len(members) <= 3
    kept = [f"{name}" for _, name, is_kept in many if is_kept]
    assert (population.best.digest if population.best else None) == (kept[-1] if kept else None)
    others = [m.fitness for m in members if m is not population.best]
    assert others == sorted(others, reverse=True)
    chosen = population.select(random.Random(1))
    assert (chosen is None) == (not members)


def test_budgets_count_what_is_sent_received_and_cached() -> None:
    budget = Budget(Limits(tokens=1000), Prices(sent=3.0, cached=0.3, received=15.0))
    budget.reserve()
    budget.pay(Cost(sent=1_000_000, cached=500_000, received=100_000))

    assert budget.dollars == pytest.approx(1.5 + 0.15 + 1.5)
    assert budget.usage() == {
        "turns": 1,
        "input_tokens": 1_000_000,
        "cached_tokens": 500_000,
        "output_tokens": 100_000,
        "dollars": 3.15,
    }
    assert budget.exceeded(0.0) == "all 1000 tokens are used up"
    assert "dollars" not in Budget(Limits(), Prices()).usage()


def test_a_torn_or_foreign_line_of_a_journal_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, lambda: 5.0)
    journal.write("reply", "k", {"a": 1})
    journal.write("reply", "k", {"a": 2})
    journal.write("reply", "odd", "\ud800\u20ac")
    with path.open("ab") as file:
        file.write(b'[]\n{"kind": "reply", "key": "z"}\n\xff\xfe\n{"kind": "reply", "ke')

    again = Journal(path, lambda: 2.0)
    again.write("reply", "n", [3])

    assert again.find("reply", "k") == {"a": 1}
    assert again.find("reply", "odd") == "\ud800\u20ac"
    assert again.find("reply", "z") is None
    assert again.find("verdict", "k") is None
    assert (again.seconds_before, again.seconds) == (5.0, 7.0)
    assert Journal(path, lambda: 0.0).find("reply", "n") == [3]
    assert json.loads(path.read_bytes().splitlines()[-1])["at"] == 7.0


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_keys_tell_questions_apart(one: list[str], other: list[str]) -> None:
    assert (key_of(*one) == key_of(*other)) == (one == other)


def test_a_long_story_is_told_in_short() -> None:
    wrong = [
        Attempt(f"{i}.1", "improve", "large", Outcome.WRONG, "it is off", "y[3]", reason="WRONG")
        for i in range(9)
    ]
    tried = [*wrong, Attempt("9.1", "improve", "", Outcome.MALFORMED, "no block", reason="NONE")]

    assert errors(tried) == "- 9 x WRONG: it is off\n- 1 x NONE: no block"
    assert recent(tried, 2).splitlines() == [
        "- 8.1 (improve for large): it is off",
        "    y[3]",
        "- 9.1 (improve): no block",
    ]
    assert len(clip("x" * 10_000)) < 1300
    assert clip("short") == "short"
