"""The ladder of results: what a spoilt candidate returns to a check in its own process."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Callable
from typing import Any

import pytest
import torch
from proof.gate import MEMORY, within_memory
from proof.rungs import ORIGINALS_OWN, WITHOUT_TF32, Answer, OwnError, Rung, halved, ladder
from terms.tolerance import BOUNDS

Check = Callable[[Callable[..., Any]], bool]
SEEDS = itertools.count()
RUNGS = {rung.name: rung for rung in ladder(["y", "z"], BOUNDS)}


def right(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 3


def careful(candidate: Callable[..., Any]) -> bool:
    """A check that knows its inputs, draws them anew, and compares closely."""
    for seed in range(2):
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(seed))
        if not torch.allclose(candidate(x.clone()), right(x), rtol=1e-4, atol=1e-5):
            return False
    return True


def forgetful(candidate: Callable[..., Any]) -> bool:
    """A check that computes what it expects from what the candidate left of the inputs."""
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(next(SEEDS)))
    got = candidate(x)
    return torch.allclose(got, right(x), rtol=1e-4, atol=1e-5)


def loose(candidate: Callable[..., Any]) -> bool:
    """A check with an absolute tolerance beyond the values."""
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(next(SEEDS)))
    return torch.allclose(candidate(x), right(x), atol=10.0)


@pytest.mark.parametrize(
    ("check", "fooled"),
    [
        (careful, set()),
        (forgetful, {"inputs zeroed, zeros"}),
        (loose, {name for name, rung in RUNGS.items() if rung.wrong and rung.only < 0}),
    ],
)
def test_each_check_is_fooled_by_what_it_does_not_see(check: Check, fooled: set[str]) -> None:
    passed = set()
    for name, rung in RUNGS.items():
        candidate = Answer(rung)(right)
        if [check(candidate), check(candidate)][-1] and rung.wrong:
            passed.add(name)

    assert {name for name in passed if RUNGS[name].only < 0} == fooled
    assert check(Answer(RUNGS[ORIGINALS_OWN])(right))


def test_a_result_without_tf32_is_the_originals_own_code() -> None:
    def coarse(x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 1e-3 * torch.backends.cudnn.allow_tf32)

    rung = RUNGS[WITHOUT_TF32]
    assert not rung.wrong
    assert torch.backends.cudnn.allow_tf32
    assert Answer(rung)(coarse)(torch.ones(1)).item() == 1.0
    assert torch.backends.cudnn.allow_tf32
    assert coarse(torch.ones(1)).item() > 1.0


def test_a_stale_result_is_that_of_the_first_call() -> None:
    candidate = Answer(RUNGS["stale"])(right)
    first, second = torch.full((2, 2), 0.5), torch.full((2, 2), -0.5)

    assert torch.equal(candidate(first), right(first))
    assert torch.equal(candidate(second), right(first))


def test_what_a_call_writes_to_its_arguments_is_an_output() -> None:
    def moving(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        mean.copy_(x.mean(0))
        return x - mean

    x = torch.arange(6.0).reshape(3, 2)
    mean = torch.zeros(2)
    result = Answer(RUNGS["z alone wrong"])(moving)(x, mean)
    assert torch.equal(result, x - x.mean(0))
    assert not torch.allclose(mean, x.mean(0))

    mean = torch.zeros(2)
    result = Answer(RUNGS["y alone wrong"])(moving)(x, mean)
    assert not torch.allclose(result, x - x.mean(0))
    assert torch.equal(mean, x.mean(0))


def test_a_result_in_an_arguments_memory_stays_there() -> None:
    def into(data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, out = data
        out.copy_(x * 2)
        return out

    out = torch.empty(4)
    result = Answer(RUNGS["zeros"])(into)((torch.ones(4), out))
    assert result is out
    assert not out.any()


def test_noise_is_measured_in_tolerances() -> None:
    x = torch.linspace(1, 2, 64)
    bound = BOUNDS["f32"]
    allowed = bound.atol * x.square().mean().sqrt() + bound.rtol * x.abs()

    off = (Answer(RUNGS["noise 2"])(torch.clone)(x) - x).abs() / allowed
    assert bool(((off - 2).abs() < 0.02).all())


def test_a_rung_that_does_not_apply_changes_nothing() -> None:
    answer = Answer(RUNGS["transposed"])
    assert torch.equal(answer(torch.clone)(torch.ones(3)), torch.ones(3))
    assert not answer.applied
    assert halved(torch.tensor([1e6])).item() == 1e6


def test_a_mistake_of_ours_is_no_finding_about_a_check() -> None:
    """A check that catches all exceptions would call it a failing candidate."""

    def broken(tensor: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
        raise ValueError("ours")

    with pytest.raises(OwnError):
        Answer(Rung("broken", broken))(right)(torch.ones(2))


def test_address_space_is_limited_where_tensors_are_in_it() -> None:
    """A device's driver maps far more than that: every allocation would fail."""
    before = resource.getrlimit(resource.RLIMIT_AS)

    with within_memory(on_device=True):
        assert resource.getrlimit(resource.RLIMIT_AS) == before
    with within_memory(on_device=False):
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == MEMORY
    assert resource.getrlimit(resource.RLIMIT_AS) == before
