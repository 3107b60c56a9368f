"""Which part the next session goes to, from recorded numbers alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kabuild.neural.spending import (
    Attempt,
    End,
    Left,
    Next,
    Rules,
    Standing,
    decide,
    gain,
    spent,
    time_now,
)

RULES = Rules(budget=1000, part_budget=500, session=100)
NORM = Standing("norm", share=0.5, roof_share=0.25)
LINEAR = Standing("linear", share=0.4, roof_share=0.8)
SUB = Standing("sub", share=0.1, roof_share=0.1)


def after(part: Standing, *speedups: float | None, seconds: float = 10) -> Standing:
    """The part after sessions with these results."""
    for speedup in speedups:
        part = part.after(Attempt(speedup, seconds), RULES)
    return part


def chosen(*parts: Standing, rules: Rules = RULES) -> str:
    found = decide(parts, rules)
    return found.part.name if isinstance(found, Next) else found.value


def test_the_largest_saving_comes_first_not_the_largest_share() -> None:
    flat = Standing("flat", share=0.9, roof_share=0.89)

    assert chosen(flat, LINEAR, NORM) == "norm"
    assert chosen(flat, LINEAR) == "flat"


def test_of_equals_the_first_by_name_is_taken_in_any_order() -> None:
    other = replace(NORM, name="a_norm")

    assert chosen(NORM, other) == chosen(other, NORM) == "a_norm"


def test_what_resists_waits_for_others_and_comes_again() -> None:
    near = replace(NORM, name="near", share=0.3)
    parts = {"norm": NORM, "near": near}
    order = []
    for _ in range(5):
        name = chosen(*parts.values())
        order.append(name)
        parts[name] = after(parts[name], None)

    assert order == ["norm", "near", "norm", "norm", "near"]


def test_progress_keeps_a_part_going() -> None:
    part = after(NORM, None, None, 1.3)

    assert (part.speedup, part.best, part.failed, part.sessions) == (1.3, 3, 0, 3)


def test_a_little_faster_is_kept_but_is_no_progress() -> None:
    part = after(NORM, 1.5, 1.505)

    assert (part.speedup, part.best, part.failed) == (1.505, 2, 1)


def test_a_slower_kernel_changes_nothing_but_the_count() -> None:
    part = after(NORM, 1.5, 0.3)

    assert (part.speedup, part.best, part.failed, part.seconds) == (1.5, 1, 1, 20)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (NORM, None),
        (after(LINEAR, 1.12), None),
        (after(LINEAR, 1.13), Left.NEAR_ROOF),
        (after(NORM, 1.99), None),
        (after(NORM, 2.0), Left.FAST_ENOUGH),
        (after(NORM, None, None), None),
        (after(NORM, None, None, None), Left.STALLED),
        (after(NORM, 1.2, None, 1.2, 1.2), Left.STALLED),
        (after(NORM, None, seconds=400), None),
        (after(NORM, None, seconds=401), Left.PART_BUDGET),
    ],
)
def test_a_part_is_left_by_its_rules(part: Standing, why: Left | None) -> None:
    assert part.left(RULES) is why
    assert chosen(part) == ("parts_done" if why else part.name)


def test_no_session_begins_that_may_exceed_the_budget() -> None:
    almost = after(NORM, 1.2, seconds=450)
    rules = replace(RULES, budget=550.0, part_budget=550.0)

    assert chosen(almost, SUB, rules=rules) == "norm"
    assert decide([almost, after(SUB, None, seconds=1)], rules) is End.BUDGET


def test_where_all_is_done_no_budget_is_missing() -> None:
    assert decide([after(NORM, 2.5, seconds=1000)], RULES) is End.PARTS_DONE


def test_amdahl_says_what_is_won_and_what_can_be() -> None:
    parts = [after(NORM, 2.0), LINEAR, SUB]

    assert time_now(parts) == pytest.approx(0.75)
    assert gain([NORM, LINEAR, SUB], NORM) == pytest.approx(1 / (1 - 0.5 * 0.75))
    assert spent(parts) == 10
