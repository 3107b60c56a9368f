"""Finds faults in sampled outputs: in one call, against earlier calls, and over many calls."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from base import shapes
from base.program import Config, Signature
from base.tensors import torch_dtype
from terms.tolerance import Bound
from torch import Tensor

from truth import comparison, sampling
from truth.draws import BLOCK, Draws
from truth.oracle import Oracle, TaskFault, Tensors
from truth.sampling import Levels

CONVINCING = 256
"""How many draws it takes for their distribution to show that they were drawn."""

MOST_TIMED = 1 << 20
"""How many draws of an output are tested in a call that is timed, of which there are hundreds."""


class Asked(Protocol):
    """A call: its config, its inputs, and the outputs that the reference drew."""

    @property
    def config(self) -> Config:
        """The call's config."""

    @property
    def inputs(self) -> Tensors:
        """The call's inputs, including the seed."""

    @property
    def expected(self) -> Tensors:
        """The reference's outputs."""


class Samples:
    """Judges the sampled outputs of one task.

    Args:
        seeds: the name of the seed input of each sampled output.
        most: how many draws of an output are tested; 0 for all. Of a larger output it is a stretch,
            chosen at random once for each size, and its pairs with draws further away. Impossible
            values are found anywhere.
    """

    def __init__(
        self,
        oracle: Oracle,
        signature: Signature,
        bounds: Mapping[str, Bound],
        seeds: Mapping[str, str],
        most: int = 0,
    ) -> None:
        self._oracle = oracle
        self._signature = signature
        self._bounds = bounds
        self._seeds = seeds
        self._drawn = {name: Draws() for name in seeds}
        self._most = most
        self._stretches: dict[int, slice] = {}

    def complaint(self, asked: Asked, name: str, got: Tensor) -> str:
        """What is wrong with one output of a call; empty if nothing is. Raises TaskFault."""
        levels = self._levels(asked, name, got)
        if isinstance(levels, str):
            return levels
        if said := self._single(asked.config, name, levels, got):
            return said
        tolerance = self._tolerance(asked.config, name)
        tested = self._stretch(got.numel())
        values, part = got.reshape(-1)[tested], levels.part(tested)
        return self._drawn[name].complaint(values, part, self._seed(asked, name), tolerance)

    def convincing(self, asked: Asked, name: str, got: Tensor) -> bool:
        """Whether the draws are right, and too many to be right by chance. Raises TaskFault."""
        levels = self._levels(asked, name, got)
        if got.numel() < CONVINCING or isinstance(levels, str):
            return False
        return not self._single(asked.config, name, levels, got)

    def together(self, calls: Sequence[tuple[Asked, Tensor]], name: str) -> str:
        """What is wrong with one output over calls that differ only in their seeds.

        Empty if nothing is. Raises TaskFault.

        Args:
            calls: each call with the output to judge.
        """
        found: list[Tensor] = []
        for asked, got in calls:
            levels = self._levels(asked, name, got)
            if isinstance(levels, str):
                return levels
            found.append(levels.level.reshape(-1))
        shape = (len(calls), *calls[0][1].shape)
        tolerance = self._tolerance(calls[0][0].config, name)
        said = sampling.complaint(torch.cat(found), sampling.lags(shape), tolerance)
        said = said or sampling.scattered(found, tolerance)
        return f"{said}, in {len(calls)} calls with different seeds" if said else ""

    def _single(self, config: Config, name: str, levels: Levels, got: Tensor) -> str:
        values = 2.0 ** (8 * got.itemsize)
        impossible = torch.nonzero(levels.impossible(self._tolerance(config, name), values))
        if len(impossible):
            first = tuple(int(i) for i in impossible[0])
            return (
                f"{len(impossible)} of {got.numel()} elements have impossible values; first at "
                f"[{', '.join(map(str, first))}]: {got[first].item():.6g}"
            )
        tolerance, level = self._tolerance(config, name), levels.level.reshape(-1)
        tested = self._stretch(level.numel())
        part = level[tested]
        distances = sampling.lags(got.shape)
        near = [distance for distance in distances if sampling.has_pairs(part.numel(), distance)]
        said = sampling.complaint(part, near, tolerance)
        far = [distance for distance in distances if distance not in near]
        return said or sampling.far_complaint(level, tested, far, tolerance)

    def _stretch(self, count: int) -> slice:
        """Which of an output's draws are tested: whole blocks, counted from its end."""
        if not self._most or count <= self._most:
            return slice(0, count)
        known = self._stretches.get(count)
        if known is None:
            spare = random.SystemRandom().randrange((count - self._most) // BLOCK + 1)
            end = count - spare * BLOCK
            known = self._stretches[count] = slice(end - self._most, end)
        return known

    def _levels(self, asked: Asked, name: str, got: Tensor) -> Levels | str:
        """The levels of one output, or why there are none.

        A floating-point value stands for all values that round to it, in the dtype or in the
        generator: generators' steps are as large near zero as elsewhere.
        """
        if got.is_floating_point():
            dtype, values = self._dtype(asked.config, name), got.double()
            typical = asked.expected[name].double().abs().nanmedian()
            step = comparison.step_sizes(values, dtype)
            step = step.maximum(typical * torch.finfo(torch_dtype(dtype)).eps)
            points = [values - step, values, values + step]
        else:
            points = [got.long() - 1, got.long()]
        try:
            levels = [self._cdf(asked, name, point) for point in points]
        except TaskFault as fault:
            own = asked.expected[name]
            self._cdf(asked, name, own.double() if own.is_floating_point() else own.long())
            return f"the draws cannot be checked: {fault}"
        missing = levels[1].isnan()
        tested = _bytes(got.reshape(-1)[self._stretch(got.numel())])
        return Levels.of(levels[0], levels[-1], tested + self._seed(asked, name), missing)

    def _cdf(self, asked: Asked, name: str, values: Tensor) -> Tensor:
        return self._oracle.cdf(asked.config, asked.inputs, {name: values})[name]

    def _seed(self, asked: Asked, name: str) -> bytes:
        return _bytes(asked.inputs[self._seeds[name]])

    def _tolerance(self, config: Config, name: str) -> float:
        return max(self._bounds[d].atol for d in (config.dtype, self._dtype(config, name)))

    def _dtype(self, config: Config, name: str) -> str:
        argument = next(a for a in self._signature.outputs if a.name == name)
        return shapes.dtype_name(argument, config)


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
