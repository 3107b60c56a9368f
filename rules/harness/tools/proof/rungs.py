"""A ladder of results, from right to wrong, for a benchmark's own check and for ours.

A benchmark calls a candidate in its own process; ``Answer`` is one that spoils right results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from terms.tolerance import Bound
from torch import Tensor

NOISE = (0.1, 0.5, 2.0, 10.0, 100.0)
"""Amounts of noise, in units of our tolerance."""

ORIGINALS_OWN = "the original"
WITHOUT_TF32 = "without TF32"

Spoil = Callable[[Tensor, Tensor | None], Tensor | None]
"""Makes another tensor from the right one and the first call's; None if there is none."""

Right = Callable[..., Any]


@dataclass(frozen=True)
class Rung:
    """One kind of result.

    Attributes:
        wrong: whether a check that accepts it is fooled.
        zeroes: whether the candidate sets its inputs to zero.
        halves: whether it computes from inputs in half precision.
        exact: whether it computes without TF32.
        only: the index of the one output that is spoilt; -1 for all.
        twice: whether the check runs twice, and the second run counts.
    """

    name: str
    spoil: Spoil
    wrong: bool = True
    zeroes: bool = False
    halves: bool = False
    exact: bool = False
    only: int = -1
    twice: bool = False

    def of(self, right: Sequence[Tensor], first: Sequence[Tensor]) -> list[Tensor] | None:
        """The results in place of ``right``; None if the rung does not apply."""
        if self.only >= len(right):
            return None
        made = []
        for place, tensor in enumerate(right):
            earlier = first[place] if place < len(first) else None
            spoilt = self.spoil(tensor, earlier) if self.only in {-1, place} else tensor
            if spoilt is None:
                return None
            made.append(spoilt.to(tensor.dtype).reshape(tensor.shape))
        return made


def ladder(outputs: Sequence[str], bounds: Mapping[str, Bound]) -> Iterator[Rung]:
    """All rungs for outputs of these names, the original's own result first."""
    yield Rung(ORIGINALS_OWN, lambda right, _: right, wrong=False)
    yield Rung(WITHOUT_TF32, lambda right, _: right, wrong=False, exact=True)
    yield Rung("zeros", _zeros)
    yield Rung("inputs zeroed, zeros", _zeros, zeroes=True)
    yield Rung("stale", lambda _, first: first, twice=True)
    yield Rung("mean", _mean)
    yield Rung("half-precision result", _half)
    yield Rung("half-precision inputs", lambda right, _: right, halves=True)
    yield Rung("one element", _one)
    yield Rung("transposed", _transposed)
    for place, name in enumerate(outputs) if len(outputs) > 1 else ():
        yield Rung(f"{name} alone wrong", _one, only=place)
    for times in NOISE:
        yield Rung(f"noise {times:g}", partial(_noisy, bounds, times), wrong=False)


class OwnError(BaseException):
    """Our own mistake: not a check's finding, and a check must not catch it."""


@dataclass
class Answer:
    """The candidate of a rung. A benchmark's check calls it with the right function.

    Attributes:
        applied: whether a result was spoilt.
    """

    rung: Rung
    applied: bool = False
    _first: list[Tensor] = field(default_factory=list)

    def __call__(self, right: Right) -> Right:
        """A function to use in place of ``right``. Its own mistakes are not an ``Exception``."""

        def candidate(*arguments: Any, **named: Any) -> Any:
            given = [*tensors((arguments, named))]
            if self.rung.halves:
                arguments, named = changed((arguments, named), halved)
            before = [tensor.detach().clone() for tensor in tensors((arguments, named))]
            with exactly() if self.rung.exact else nullcontext():
                result = right(*arguments, **named)
            after = [*tensors((arguments, named))]
            try:
                written = [t for t, old in zip(after, before, strict=True) if not _same(t, old)]
                return self._spoilt(result, given, written)
            except Exception as error:
                raise OwnError(str(error)) from error

        return candidate

    def _spoilt(self, result: Any, given: list[Tensor], written: list[Tensor]) -> Any:
        """The result in place of a right one; ``written`` are the arguments that changed."""
        returned = [*tensors(result)]
        held = {tensor.untyped_storage().data_ptr() for tensor in returned}
        updates = [t for t in written if t.untyped_storage().data_ptr() not in held]
        found = [*returned, *updates]
        if not self._first:
            self._first = [tensor.detach().clone() for tensor in found]
        made = self.rung.of(found, self._first)
        if made is None:
            return result
        self.applied = True
        if self.rung.zeroes:
            for tensor in given:
                tensor.detach().zero_()
        for old, new in zip(updates, made[len(returned) :], strict=True):
            old.detach().copy_(new)
        places = {tensor.untyped_storage().data_ptr() for tensor in given}
        placed = iter(made)
        return changed(result, lambda old: _in_place(old, next(placed), places))


def tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in lists, tuples and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item)


def changed(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same value with its tensors changed, in order."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: changed(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(changed(item, change) for item in value)
    return value


@contextmanager
def exactly() -> Iterator[None]:
    """Have PyTorch's layers compute single precision without TF32 in the body.

    Matrix products are without it by default.
    """
    layers: Any = torch.backends.cudnn
    before = layers.allow_tf32
    try:
        layers.allow_tf32 = False
        yield
    finally:
        layers.allow_tf32 = before


def halved(tensor: Tensor) -> Tensor:
    """A wide float tensor rounded to half precision; unchanged if not wide or if it overflows."""
    if tensor.dtype not in {torch.float32, torch.float64} or not tensor.numel():
        return tensor
    rounded = tensor.half()
    return tensor if bool(rounded.isinf().any()) else rounded.to(tensor.dtype)


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one type hold the same bits."""
    first, second = (t.detach().contiguous().reshape(-1) for t in (one, other))
    return torch.equal(first.view(torch.uint8), second.view(torch.uint8))


def _in_place(old: Tensor, new: Tensor, held: set[int]) -> Tensor:
    """The new tensor, in the old one's memory if that belongs to an argument."""
    return old.copy_(new) if old.untyped_storage().data_ptr() in held else new


def _zeros(right: Tensor, _: Tensor | None) -> Tensor:
    return torch.zeros_like(right)


def _mean(right: Tensor, _: Tensor | None) -> Tensor | None:
    if right.numel() < 2 or not right.is_floating_point():
        return None
    finite = right[right.isfinite()].double()
    return torch.full_like(right, float(finite.mean())) if finite.numel() else None


def _half(right: Tensor, _: Tensor | None) -> Tensor | None:
    rounded = halved(right)
    return None if rounded is right else rounded


def _one(right: Tensor, _: Tensor | None) -> Tensor | None:
    """One element moved by 1 plus the elements' mean magnitude, for integers by 1."""
    if not right.numel():
        return None
    flat = right.detach().clone().reshape(-1)
    step = 1 + float(flat[flat.isfinite()].double().abs().mean()) if flat.is_floating_point() else 1
    place = flat.numel() // 2
    flat[place] = ~flat[place] if flat.dtype is torch.bool else flat[place] + step
    return flat


def _transposed(right: Tensor, _: Tensor | None) -> Tensor | None:
    return right.mT.contiguous() if right.dim() > 1 and min(right.shape[-2:]) > 1 else None


def _noisy(
    bounds: Mapping[str, Bound], times: float, right: Tensor, _: Tensor | None
) -> Tensor | None:
    """The right values, off by ``times`` tolerances up and down in turn."""

    bound = bounds.get(_NAMES.get(right.dtype, ""))
    if bound is None or bound.exact or not right.numel():
        return None
    exact = right.detach().double()
    finite = torch.where(exact.isfinite(), exact, 0.0)
    allowed = bound.atol * finite.square().mean().sqrt() + bound.rtol * finite.abs()
    signs = torch.ones(right.numel(), dtype=torch.float64, device=right.device)
    signs[1::2] = -1.0
    return exact + times * allowed * signs.reshape(right.shape)


_NAMES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
}
