"""Finds faults in sampled outputs: in one call, against earlier calls, and over many calls."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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

MOST_TIMED = 1 << 16
"""How many draws of an output are tested in a call that is timed, of which there are hundreds."""

TOGETHER = 16
"""How many calls of one config are tested as one, at most."""


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


@dataclass(frozen=True)
class _Stretch:
    """The draws of one call that are tested.

    Attributes:
        number: which call it is.
        tested: which draws of the output these are.
        level: their levels.
        far: by the distance, pairs with draws outside of the stretch.
    """

    number: int
    tested: slice
    level: Tensor
    far: Mapping[int, sampling.Pairs]


_Group = dict[bytes, _Stretch]
"""Calls of one config, by their seeds."""


class Samples:
    """Judges the sampled outputs of one task.

    Args:
        seeds: the name of the seed input of each sampled output.
        most: how many draws of an output are tested; 0 for all. Of a larger output it is a stretch,
            chosen at random once for each size, and its pairs with draws further away; of some
            calls ``TOGETHER`` times as many, anywhere. Impossible values are found in all.
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
        wrong = self.first_wrong([(asked, got)], name)
        return wrong[1] if wrong else ""

    def first_wrong(
        self, calls: Sequence[tuple[Asked, Tensor]], name: str
    ) -> tuple[int, str] | None:
        """The number of a call with a wrong output, and what is wrong; None if nothing is.

        Impossible values and repetitions are found in each call. The draws of calls of one config
        with different seeds are tested together, and with those of earlier calls; those of one of
        them, chosen at random, by themselves. Raises TaskFault.
        """
        waiting: dict[str, list[_Group]] = {}
        for number, (asked, got) in enumerate(calls):
            levels = self._levels(asked, name, got)
            if isinstance(levels, str):
                return number, levels
            stretch = self._cut(number, levels, got, self._stretch(got.numel()))
            seed = self._seed(asked, name)
            said = self._impossible(asked.config, name, levels, got) or self._drawn[name].repeated(
                got.reshape(-1)[stretch.tested], levels.part(stretch.tested), seed
            )
            if said:
                return number, said
            known = waiting.setdefault(asked.config.name, [])
            group = next((one for one in known if seed not in one), None)
            if group is None:
                known.append(group := {})
            group[seed] = stretch
            if len(group) == TOGETHER:
                known[:] = [one for one in known if one is not group]
                if wrong := self._of_group(group, calls, name):
                    return wrong
        rest = (self._of_group(group, calls, name) for group in chain(*waiting.values()))
        return next(filter(None, rest), None)

    def convincing(self, asked: Asked, name: str, got: Tensor) -> bool:
        """Whether the draws are right, and too many to be right by chance. Raises TaskFault."""
        levels = self._levels(asked, name, got)
        if got.numel() < CONVINCING or isinstance(levels, str):
            return False
        if self._impossible(asked.config, name, levels, got):
            return False
        cut = self._cut(0, levels, got, self._stretch(got.numel()))
        return not self._uneven(asked.config, name, got.shape, [cut])

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
        said = sampling.complaint(sampling.joined(found), sampling.lags(shape), tolerance)
        said = said or sampling.placed(found, tolerance) or sampling.scattered(found, tolerance)
        return f"{said}, in {len(calls)} calls with different seeds" if said else ""

    def _impossible(self, config: Config, name: str, levels: Levels, got: Tensor) -> str:
        values = 2.0 ** (8 * got.itemsize)
        impossible = torch.nonzero(levels.impossible(self._tolerance(config, name), values))
        if len(impossible):
            first = tuple(int(i) for i in impossible[0])
            return (
                f"{len(impossible)} of {got.numel()} elements have impossible values; first at "
                f"[{', '.join(map(str, first))}]: {got[first].item():.6g}"
            )
        return ""

    def _cut(self, number: int, levels: Levels, got: Tensor, tested: slice) -> _Stretch:
        level = levels.level.reshape(-1)
        part = level[tested]
        lags = [lag for lag in sampling.lags(got.shape) if not sampling.has_pairs(len(part), lag)]
        far = {lag: sampling.far_pairs(level, tested, lag) for lag in lags}
        if len(part) < len(level):  # what is kept of many calls must not hold all their levels
            part = part.clone()
            far = {lag: (one.clone(), other.clone()) for lag, (one, other) in far.items()}
        return _Stretch(number, tested, part, far)

    def _of_group(
        self, group: _Group, calls: Sequence[tuple[Asked, Tensor]], name: str
    ) -> tuple[int, str] | None:
        """As ``first_wrong``, of calls of one config with different seeds."""
        chosen = random.SystemRandom().choice([*group.values()])
        asked, got = calls[chosen.number]
        several, tolerance = len(group) > 1, self._tolerance(asked.config, name)
        said = self._uneven(asked.config, name, got.shape, [*group.values()])
        levels = [stretch.level for stretch in group.values()]
        said = said or self._drawn[name].related(levels, frozenset(group), tolerance)
        if said:
            return max(stretch.number for stretch in group.values()), said
        if several:
            seeds = frozenset({self._seed(asked, name)})
            said = self._drawn[name].related([chosen.level], seeds, tolerance)
        if not said and (several or chosen.level.numel() < got.numel()):
            said = self._alone(asked, name, got)
        return (chosen.number, said) if said else None

    def _alone(self, asked: Asked, name: str, got: Tensor) -> str:
        """What is wrong with more of a call's draws than those that are tested of every call.

        Of a large output it is a stretch as long as those of ``TOGETHER`` calls, elsewhere in each.
        """
        levels = self._levels(asked, name, got)
        if isinstance(levels, str):
            return levels
        tested = _any_stretch(got.numel(), TOGETHER * self._most)
        cut = self._cut(0, levels, got, tested)
        return self._uneven(asked.config, name, got.shape, [cut])

    def _uneven(
        self, config: Config, name: str, shape: Sequence[int], part: Sequence[_Stretch]
    ) -> str:
        tolerance, size = self._tolerance(config, name), part[0].level.numel()
        level = sampling.joined([stretch.level for stretch in part])
        near = [lag for lag in sampling.lags(shape) if lag not in part[0].far]
        far = {lag: [stretch.far[lag] for stretch in part] for lag in part[0].far}
        said = sampling.complaint(level, near, tolerance) or sampling.far_complaint(far, tolerance)
        said = said or sampling.beside([stretch.level for stretch in part], tolerance)
        return f"{said}, in {len(part)} calls, {size} of each" if said and len(part) > 1 else said

    def _stretch(self, count: int) -> slice:
        """Which of an output's draws are tested: whole blocks, counted from its end."""
        if count not in self._stretches:
            self._stretches[count] = _any_stretch(count, self._most)
        return self._stretches[count]

    def _levels(self, asked: Asked, name: str, got: Tensor) -> Levels | str:
        """The levels of one output, or why there are none.

        A floating-point value stands for all values that round to it, in the dtype or in the
        generator: generators' steps are as large near zero as elsewhere.
        """
        tested = self._stretch(got.numel())
        if got.is_floating_point():
            dtype, values = self._dtype(asked.config, name), got.double()
            typical = asked.expected[name].reshape(-1)[tested].double().abs().nanmedian()
            typical = typical.nan_to_num()
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
        lot = _bytes(got.reshape(-1)[tested]) + self._seed(asked, name)
        return Levels.of(levels[0], levels[-1], lot, missing)

    def _cdf(self, asked: Asked, name: str, values: Tensor) -> Tensor:
        return self._oracle.cdf(asked.config, asked.inputs, {name: values})[name]

    def _seed(self, asked: Asked, name: str) -> bytes:
        return _bytes(asked.inputs[self._seeds[name]])

    def _tolerance(self, config: Config, name: str) -> float:
        return max(self._bounds[d].atol for d in (config.dtype, self._dtype(config, name)))

    def _dtype(self, config: Config, name: str) -> str:
        argument = next(a for a in self._signature.outputs if a.name == name)
        return shapes.dtype_name(argument, config)


def _any_stretch(count: int, most: int) -> slice:
    """A stretch of up to ``most`` of so many draws, at random; all of them if ``most`` is 0."""
    if not most or count <= most:
        return slice(0, count)
    end = count - random.SystemRandom().randrange((count - most) // BLOCK + 1) * BLOCK
    return slice(end - most, end)


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
