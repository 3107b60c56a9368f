"""What the tests of draws find, and how seldom they refuse right ones."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch

from truth import sampling  # isort: skip

N = 1 << 14


def uniform(*shape: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def told(levels: torch.Tensor) -> str:
    return sampling.complaint(levels.reshape(-1), sampling.lags(levels.shape), 0.0)


@pytest.mark.parametrize("turned", [False, True], ids=["the unlikeliest", "the likeliest"])
def test_an_end_that_is_never_drawn_is_found(turned):
    """Such as what a generator of few bits cannot reach; a share of 5 / sqrt(n) is much more."""
    missing = 60 / N
    levels = (1.0 - missing) * uniform(N)

    said = told(1.0 - levels if turned else levels)

    assert "by chance once in 10^" in said, said
    assert not told(uniform(N))


def test_a_tolerance_excuses_an_end():
    levels = (1.0 - 60 / N) * uniform(N)

    assert not sampling.complaint(levels, sampling.lags((N,)), 60 / N)


@pytest.mark.parametrize("count", [200, 256, 4096])
def test_first_and_last_draws_may_not_depend_on_each_other(count):
    levels = uniform(count)
    levels[-(count // 2) :] = levels[: count // 2].flip(0)

    assert f"{count // 2} pairs as far from the start as from the end" in told(levels)


@pytest.mark.parametrize(("shared", "calls"), [(4, 128), (32, 32)])
def test_draws_that_are_shared_anywhere_are_found(shared, calls):
    """Groups of rows with one draw, dealt at random: no two calls have equal sums."""
    rows = 256
    groups = torch.randint(rows // shared, (rows,), generator=torch.Generator().manual_seed(3))
    drawn = uniform(calls, rows // shared)[:, groups]
    half = torch.where(uniform(calls, rows, seed=2) < 0.6, drawn, uniform(calls, rows, seed=4))

    said = sampling.scattered(list(half), 0.0)

    assert "the draws of a call depend on each other: its sums vary" in said
    assert not sampling.scattered(list(uniform(calls, rows)), 0.0)


@pytest.mark.parametrize(("calls", "draws"), [(8, 64), (16, 1000), (1, 4096), (128, 32)])
def test_right_draws_are_refused_as_seldom_as_promised(monkeypatch, calls, draws):
    monkeypatch.setattr(sampling, "REFUSED", 0.2)
    tries = 200
    levels = [uniform(calls, draws, seed=seed) for seed in range(tries)]

    refused = sum(
        bool(told(one) or sampling.placed(list(one), 0.0) or sampling.scattered(list(one), 0.0))
        for one in levels
    )

    assert 0 < refused <= 0.2 * tries
