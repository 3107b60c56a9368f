"""Draws of many calls are tested as one: right ones pass, and no call can hide among the others."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch
from test_sampled import CONFIG, spec_of
from truth.assessment import Call
from truth.oracle import Oracle
from truth.samples import TOGETHER, Samples

from terms.tolerance import bounds  # isort: skip

CALLS = TOGETHER + 5


def asked(tmp_path, seeds, *, config=None):
    """The task's samples, and a call with right draws for each seed."""
    spec = spec_of(tmp_path, "noise")
    oracle = Oracle(spec.reference, spec.signature)
    limits = bounds({"f32": {"atol": 0.0, "rtol": 0.0}})
    config = config or spec.configs[0]
    calls = []
    for seed in seeds:
        inputs = oracle.inputs(config, torch.Generator().manual_seed(seed))
        call = Call(config, "", inputs, oracle.expected(config, inputs))
        calls.append((call, call.expected["y"].float()))
    return Samples(oracle, spec.signature, limits, {"y": "seed"}, most=1024), calls


def test_right_draws_of_many_calls_pass(tmp_path):
    for first in range(0, 1000, CALLS):
        samples, calls = asked(tmp_path, range(first, first + CALLS))
        assert samples.first_wrong(calls, "y") is None


@pytest.mark.parametrize("number", [0, 7, TOGETHER, CALLS - 1])
@pytest.mark.parametrize("spoil", [torch.abs, lambda drawn: 0.5 * drawn, torch.zeros_like])
def test_one_wrong_call_among_right_ones_is_found(tmp_path, number, spoil):
    samples, calls = asked(tmp_path, range(CALLS))
    calls[number] = (calls[number][0], spoil(calls[number][1]))
    wrong = samples.first_wrong(calls, "y")
    assert wrong is not None
    assert wrong[0] in {number, TOGETHER - 1, CALLS - 1}  # itself, or the last of its group


def test_small_faults_of_all_calls_add_up(tmp_path):
    """Each call alone has too few draws to show that its mean is off."""
    found = []
    for first in range(0, 10 * TOGETHER, TOGETHER):
        samples, calls = asked(tmp_path, range(first, first + TOGETHER))
        narrow = [(call, drawn + 0.12) for call, drawn in calls]
        alone, _ = asked(tmp_path, [])
        assert not any(alone.first_wrong([pair], "y") for pair in narrow[:4])
        found.append(samples.first_wrong(narrow, "y"))
    assert sum(wrong is not None for wrong in found) >= 8
    assert "calls, 1024 of each" in next(wrong for wrong in found if wrong)[1]


def test_calls_that_share_draws_are_found(tmp_path):
    """Each has those of the first one, elsewhere, so that no block is the same."""
    samples, calls = asked(tmp_path, range(CALLS))
    numbers = calls[0][1].flatten()
    shared = [
        (call, numbers.roll(number).reshape(drawn.shape))
        for number, (call, drawn) in enumerate(calls)
    ]
    assert samples.first_wrong(shared, "y") is not None


@pytest.mark.parametrize("apart", [1, 2, 3, 5, 7])
def test_calls_that_are_alike_in_pairs_are_found(tmp_path, apart):
    """Numbers of another call, mirrored, so that no value is the same."""
    samples, calls = asked(tmp_path, range(TOGETHER))
    alike = [
        (call, -calls[number - apart][1] if number // apart % 2 else drawn)
        for number, (call, drawn) in enumerate(calls)
    ]
    wrong = samples.first_wrong(alike, "y")
    assert wrong is not None
    assert "depend on each other" in wrong[1]


def test_calls_like_any_of_an_earlier_batch_are_found(tmp_path):
    samples, calls = asked(tmp_path, range(2 * TOGETHER))
    order = torch.randperm(TOGETHER, generator=torch.Generator().manual_seed(4)).tolist()
    first, later = calls[:TOGETHER], calls[TOGETHER:]
    replayed = [(call, -first[order[i]][1]) for i, (call, _) in enumerate(later)]
    assert samples.first_wrong(first, "y") is None
    wrong = samples.first_wrong(replayed, "y")
    assert wrong is not None
    assert "correlate with those of an earlier call" in wrong[1]


def test_calls_that_repeat_themselves_are_found_whatever_the_distance(tmp_path):
    """Each after another period, in mirrored values, so that no block is the same."""
    large = {**CONFIG, "name": "f32 rows=64 cols=512", "dims": {"rows": 64, "cols": 512}}
    spec = spec_of(tmp_path, "noise", configs=[large])
    samples, calls = asked(tmp_path, range(TOGETHER), config=spec.configs[0])
    repeating = []
    for number, (call, drawn) in enumerate(calls):
        numbers = drawn.flatten()[: 3001 + 131 * number]
        turned = torch.cat([numbers, -numbers])
        parts = turned.repeat(-(-drawn.numel() // len(turned)))[: drawn.numel()]
        repeating.append((call, parts.reshape(drawn.shape)))
    wrong = samples.first_wrong(repeating, "y")
    assert wrong is not None
    assert "they correlate with those" in wrong[1]


def test_what_is_outside_of_the_stretch_of_all_calls_is_tested_too(tmp_path):
    """Half of a large output is constant, in whichever half the stretch lies."""
    for _ in range(12):
        samples, calls = asked(tmp_path, range(TOGETHER))
        partly = []
        for call, drawn in calls:
            half = drawn.numel() // 2
            spoilt = drawn.flatten().clone()
            spoilt[half:] = spoilt[half]
            partly.append((call, spoilt.reshape(drawn.shape)))
        assert samples.first_wrong(partly, "y") is not None


def test_calls_with_an_earlier_seed_are_tested_too(tmp_path):
    """Equal seeds give equal draws, which no test of independence may hold against anybody."""
    samples, calls = asked(tmp_path, [*range(6), *range(6)])
    assert samples.first_wrong(calls, "y") is None
    calls[9] = (calls[9][0], calls[9][1].abs())
    wrong = samples.first_wrong(calls, "y")
    assert wrong is not None


def test_configs_are_not_mixed(tmp_path):
    """Sizes of a batch have a stretch and a group each."""
    spec = spec_of(
        tmp_path,
        "noise",
        configs=[
            CONFIG,
            {**CONFIG, "name": "f32 rows=3 cols=500", "dims": {"rows": 3, "cols": 500}},
        ],
    )
    samples, calls = asked(tmp_path, range(6))
    _, others = asked(tmp_path, range(50, 56), config=spec.configs[1])
    mixed = [pair for both in zip(calls, others, strict=True) for pair in both]
    assert samples.first_wrong(mixed, "y") is None
    mixed[5] = (mixed[5][0], mixed[5][1].abs())
    wrong = samples.first_wrong(mixed, "y")
    assert wrong is not None
    assert wrong[0] % 2 == 1
