"""The stage ``modelled``, on any machine."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
import time_model
from analyze.fitted import H100, LAUNCH, MEMORY, TERMS, Fitted, read_fitted, terms
from analyze.sums import sums
from model_page import modelled
from ranking import draw, ordered, ranked
from time_model import fit, halves, spearman
from variant_counts import in_turns
from variants import GIVEN, Variant, variants
from workplace import ROOT

from kabuild.loading.platform_index import PlatformIndex


def call(blocks: int, *, threads: int = 256, sectors: int = 1000, loads: int = 0) -> dict[str, Any]:
    shape = {
        "grid": [blocks, 1, 1],
        "block": [threads, 1, 1],
        "count": 1,
        "shared_bytes": 0,
        "sectors_read": sectors,
        "sectors_written": 0,
        "sectors_read_by_blocks": None,
        "loads_most_of_thread": None,
        "operations_most_of_thread": None,
        "exchanges": 0,
    }
    kernel = {
        "kernel": "k",
        "shapes": [shape],
        "accesses": {"global load requests": loads},
        "arithmetic": {"f32": 32 * sectors},
        "branches": 0,
        "divergent": 0,
        "barriers": 0,
    }
    return {"config": "f32 n=1", "of": "f32 n=1", "flops": 0, "launches": [kernel]}


def test_there_are_200_variants_with_names_of_their_own() -> None:
    found = list(variants())

    assert len(found) >= 200
    assert len({variant.name for variant in found}) == len(found)
    assert len({(variant.task, variant.text) for variant in found}) == len(found)


def test_a_variant_has_another_value_of_one_constant() -> None:
    own = {v.kind: v.text for v in variants() if v.task == "hip2hip/rmsnorm"}

    assert "constexpr int kThreads = 256;" in own[GIVEN]
    assert own["given_t64"] == own[GIVEN].replace("kThreads = 256;", "kThreads = 64;")
    changed = {kind for kind in own if kind.startswith(f"{GIVEN}_")}
    assert changed == {"given_t64", "given_t128", "given_t512"}


def test_variants_of_all_tasks_are_counted_first() -> None:
    chosen = [Variant(task, str(number), "") for task in "ab" for number in range(2)]

    assert [(v.task, v.kind) for v in in_turns(chosen)] == [
        *(("a", "0"), ("b", "0")),
        *(("a", "1"), ("b", "1")),
    ]


def test_what_is_counted_is_summed_by_kernel() -> None:
    launch = {
        "kernel": "k",
        "grid": [2, 1, 1],
        "block": [64, 1, 1],
        "count": 3,
        "shared_bytes": 16,
        "exchanges": 0,
        "sectors_read": 5,
        "sectors_written": 6,
        "sectors_read_by_blocks": 7,
        "loads_most_of_thread": None,
        "operations_most_of_thread": None,
        "wave": 32,
    }
    access = {"kernel": "k", "space": "global", "operation": "load", "warp32": {"requests": 4}}
    counted = {
        "config": "f32 n=1",
        "of": "f32 n=2",
        "flops": 9,
        "launches": [launch],
        "accesses": [access, access],
        "arithmetic": [{"kernel": "k", "kind": "f32", "operations": 8}],
        "branches": [{"kernel": "other", "warp32": {"requests": 1, "divergent": 1}}],
        "barriers": [{"kernel": "k", "passed": 2}],
    }

    (kernel,) = sums(counted)["launches"]

    assert kernel["accesses"]["global load requests"] == 8
    assert kernel["arithmetic"] == {"f32": 8}
    assert (kernel["branches"], kernel["barriers"]) == (0, 2)
    assert kernel["shapes"][0]["sectors_read_by_blocks"] == 7
    assert "wave" not in kernel["shapes"][0]


def test_work_is_done_by_as_many_processors_as_there_are_blocks_for() -> None:
    few, many, more = (terms(call(blocks)) for blocks in (1, 132, 264))

    assert few[LAUNCH] == many[LAUNCH] == 1
    assert few[MEMORY] == many[MEMORY] == 1000
    assert few["instructions"] == pytest.approx(132 * many["instructions"])
    assert more["instructions"] == many["instructions"]


def test_a_launch_of_no_threads_takes_no_more_than_itself() -> None:
    """The runtime refuses it, but a kernel can print whatever it likes as its counts."""
    odd = call(0, threads=0)

    assert terms(odd)[LAUNCH] == 1
    assert Fitted(H100, dict.fromkeys(TERMS, 1.0)).of(odd) > 0


def test_blocks_that_do_not_fit_wait_for_others() -> None:
    together, apart = (terms(call(1056, loads=8448 * n)) for n in (1, 1))
    twice = terms(call(2112, loads=8448))

    assert together == apart
    assert together["trips"] == 1
    assert twice["trips"] == 1, "half the trips of a warp, and two rounds of them"


def test_the_last_round_waits_for_the_busiest_warp() -> None:
    def uneven(blocks: int) -> dict[str, Any]:
        made = call(blocks, loads=8 * blocks)
        made["launches"][0]["shapes"][0]["loads_most_of_thread"] = 30
        return made

    assert terms(uneven(1056))["trips"] == 30
    assert terms(uneven(2112))["trips"] == 1 + 30


def test_the_fit_that_ships_is_that_of_what_was_measured() -> None:
    """``peaks.toml`` has the coefficients that ``ranking.py`` left in the results."""
    table = PlatformIndex.of(None).peaks()["sm_90"]
    measured = json.loads((ROOT / "results/h200/modelled.json").read_bytes())["ranking"]["fitted"]

    assert table["fitted"]["ns"] == measured
    assert read_fitted(table["fitted"], table["processors"]).gpu == H100


def test_terms_that_no_call_has_do_not_spoil_a_model() -> None:
    calls = [call(1, sectors=0) for _ in range(4)]

    assert all(math.isfinite(value) for value in fit(calls, [2000.0] * 4).ns.values())


def test_a_model_is_found_again() -> None:
    chance = random.Random(3)
    true = Fitted(H100, dict.fromkeys(TERMS, 0.0) | {LAUNCH: 2000.0, MEMORY: 0.05})
    calls = [call(chance.randint(1, 999), sectors=chance.randint(1, 10**6)) for _ in range(60)]

    found = fit(calls, [true.of(one) for one in calls])

    fresh = [call(64, sectors=10**number) for number in range(3, 7)]
    assert [found.of(one) for one in fresh] == pytest.approx([true.of(f) for f in fresh], rel=0.1)
    assert all(value >= 0 for value in found.ns.values())


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3], [10, 200, 3000], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 2, 3], [1, 2, 3, 4], 0.9487),
    ],
)
def test_ranks_are_correlated(one: list[float], other: list[float], expected: float) -> None:
    assert spearman(one, other) == pytest.approx(expected, abs=1e-4)


def test_no_task_is_both_fitted_and_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[float]] = []

    def watched(_: object, ns: list[float]) -> Fitted:
        seen.append(set(ns))
        return Fitted(H100, dict.fromkeys(TERMS, 1.0))

    monkeypatch.setattr(time_model, "fit", watched)
    rows = [
        {"name": f"{task}{n}", "task": task, "call": call(n + 1), "ns": 10.0 * place + n + 100}
        for place, task in enumerate("abcd")
        for n in range(4)
    ]

    found = time_model.tested(rows)

    assert halves(["b", "a", "b", "c"]) == ({"a", "c"}, {"b"})
    assert seen[0] & seen[1] == set()
    assert found["modelled"].keys() == {row["name"] for row in rows}
    assert {half["tested_on"] for half in found["halves"]} == {8}
    assert found["tasks"].keys() == set("abcd")


def test_wrong_variants_are_not_ranked_and_all_others_are_drawn() -> None:
    names = {f"{task}_{n}": task for task in "abc" for n in range(4)}
    counts = {
        "variants": {
            name: {"task": task, "calls": [call(9, sectors=1000 * place + 1)]}
            for place, (name, task) in enumerate(names.items())
        }
    }
    timed = {name: 2000.0 + 100 * place for place, name in enumerate(names)}

    found: dict[str, Any] = {"timed": timed, "differ": ["a_0"]}
    found |= ranked(found, counts)

    assert found["ranking"]["variants"] == 11
    assert "a_0" not in found["ranking"]["modelled"]
    picture = draw(found)
    assert picture.count("<circle ") == 11
    assert ">1 µs<" in picture
    assert ">10 µs<" in picture


def test_what_was_timed_whole_is_ordered_by_the_model_of_the_other_half() -> None:
    names = {f"{task}_{n}": task for task in "ab" for n in range(4)}
    variants = {name: {"task": task, "calls": [call(9)]} for name, task in names.items()}
    modelled_ns = {name: float(place) for place, name in enumerate(names)}
    found = {"ranking": {"modelled": {**modelled_ns, "gone": 1.0}}}
    timed = {"a_0": 9.0, "a_1": 8.0, "a_2": 7.0, "a_3": 6.0}
    timed |= {"b_0": 5.0, "b_1": 6.0, "b_2": 7.0, "b_3": 8.0, "b_unknown": 1.0}
    counts = {"variants": {**variants, "b_unknown": {"task": "b", "calls": [call(9)]}}}

    told = ordered({"timed": timed, "differ": []}, found, counts)

    assert {task: row["timed_by_model"] for task, row in told["tasks"].items()} == {"a": 4, "b": 1}
    assert told["within_tasks"]["timed_by_chance"] == 5
    whole = {"timed": timed, "again": {"a_0": 9.1, "b_0": 7.0}, "ranking": told}
    ranking = {"variants": 8, "of_tasks": 2, "halves": [], **told}
    page = modelled(
        {"modelled": {"elements": 9, "timed": {}, "ranking": ranking}, "ordered": whole}
    )
    assert "5 of 8 variants of 2 tasks in the model's order, 5 in random order" in page
    assert "1 of 2 are within 2 % on a second machine" in page


def test_the_page_tells_of_the_worst_task_beside_the_median() -> None:
    """A median of zero hides tasks in which the model picks a slow variant."""
    tasks = {
        name: {"spearman": spearman, "best_is_slower_by": slower}
        for name, spearman, slower in (("a", 0.9, 0.0), ("b", 0.8, 0.0), ("c", -0.5, 0.9))
    }
    within = {"spearman": 0.8, "best_is_slower_by": 0.0, "slowest_over_fastest": 1.4}
    within |= {"variants": 12, "timed_by_model": 5, "timed_by_chance": 8.0}
    ranking = {"variants": 20, "of_tasks": 5, "halves": [], "within_tasks": within, "tasks": tasks}

    told = modelled({"modelled": {"elements": 1024, "timed": {}, "ranking": ranking}})

    assert "of these 3 tasks, that variant is within 2 % of the fastest in 2" in told
    assert "slower by 30 % on average and by 90 % at worst; the lowest correlation is -0.50" in told
