"""One output compared with the oracle, a piece at a time, so that temporaries stay small.

The error and the allowance of each element are doubles: those of a large output would fill a
device, beside the output itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from terms.tolerance import Bound
from torch import Tensor

from truth import tolerance
from truth.precision import SLICE, slices
from truth.tolerance import Worst, position

Measured = tuple[Tensor, Tensor]
"""By element, the error in allowances, and the allowance."""


@dataclass(frozen=True)
class Piece:
    """Some elements of an output in a row: which, their error in allowances, and the allowance."""

    of: slice
    over: Tensor
    allowed: Tensor


@dataclass(frozen=True)
class Compared:
    """An output, its true values, and how some elements of it are measured.

    Attributes:
        got, expected: as compared: sorted if their order does not matter.
        measure: what it says of ``got`` and ``expected`` in some place, each in a row.
    """

    got: Tensor
    expected: Tensor
    measure: Callable[[Tensor, Tensor, slice], Measured]

    @classmethod
    def within(cls, got: Tensor, expected: Tensor, dtype: str, bound: Bound) -> Compared:
        """Compared by the tolerance of a dtype."""
        typical = tolerance.scale(expected, dtype)

        def measure(got: Tensor, expected: Tensor, _: slice) -> Measured:
            allowed = tolerance.allowance(expected, dtype, bound, typical)
            return tolerance.excess(got, expected, dtype, allowed), allowed

        return cls(got, expected, measure)

    @classmethod
    def strictly(
        cls, got: Tensor, expected: Tensor, differ: Callable[[Tensor, Tensor], Tensor]
    ) -> Compared:
        """Compared without a tolerance; ``differ`` says 0 of right elements, infinity of others."""

        def measure(got: Tensor, expected: Tensor, _: slice) -> Measured:
            over = differ(got, expected)
            return over, torch.zeros_like(over)

        return cls(got, expected, measure)

    @classmethod
    def whole(cls, got: Tensor, expected: Tensor, over: Tensor) -> Compared:
        """The same, where it took all elements at once to say so."""
        flat = over.reshape(-1)
        return cls(
            got, expected, lambda _got, _expected, of: (flat[of], torch.zeros_like(flat[of]))
        )

    def pieces(self) -> Iterator[Piece]:
        """All elements in their order; those of a small output are measured only once."""
        if self.got.numel() <= SLICE:
            yield from self._only
            return
        for of in slices(self.got.numel(), self.got.device):
            yield self._piece(of)

    def largest(self) -> Tensor:
        """The largest error, in allowances; a scalar tensor on the output's device."""
        found = [piece.over.max() for piece in self.pieces()]
        return torch.stack(found).max() if found else torch.zeros(()).double()

    def largest_of(self, distances: Tensor) -> float:
        """The largest of some distances, one for each element, in allowances."""
        flat = distances.reshape(-1)
        found = [(flat[piece.of] / piece.allowed).max() for piece in self.pieces()]
        return float(torch.stack(found).max().item()) if found else 0.0

    def share_right(self, empty: Compared) -> float:
        """Of the elements that are wrong in ``empty``, the share that is right here; 0 of none.

        Elements that are to be NaN do not count.
        """
        counts, right = [], []
        expected = self._flat[1]
        for piece, nothing in zip(self.pieces(), empty.pieces(), strict=True):
            told = (nothing.over > 1) & ~expected[piece.of].isnan()
            counts.append(told.sum())
            right.append((told & (piece.over <= 1)).sum())
        count = int(torch.stack(counts).sum().item()) if counts else 0
        return int(torch.stack(right).sum().item()) / count if count else 0.0

    def worst(self, output: str, slack: float) -> Worst | None:
        """The element that is the farthest off with ``slack`` times the allowance, if any."""
        found = [(piece.over / slack).max() for piece in self.pieces()]
        if not found:
            return None
        at = int(torch.stack(found).argmax().item())
        piece = (
            self._only[0] if len(found) == 1 else self._piece(slice(at * SLICE, (at + 1) * SLICE))
        )
        over = piece.over / slack
        place = int(over.argmax().item())
        index = position(piece.of.start + place, self.got.shape)
        given, exact = float(self.got[index].item()), float(self.expected[index].item())
        error = abs(given - exact) if given != exact else 0.0
        allowed = float(piece.allowed[place] * slack)
        return Worst(output, index, exact, given, error, allowed, float(over[place]))

    @cached_property
    def _only(self) -> list[Piece]:
        return [self._piece(slice(0, self.got.numel()))] if self.got.numel() else []

    def _piece(self, of: slice) -> Piece:
        got, expected = self._flat
        return Piece(of, *self.measure(got[of], expected[of], of))

    @cached_property
    def _flat(self) -> tuple[Tensor, Tensor]:
        return self.got.reshape(-1), self.expected.reshape(-1)
