"""The subject of admission: a task's visible configs, and its oracle's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from base.program import Config
from base.sampler import Ground
from base.seeds import Seeds
from base.spec import Spec, config_name
from correctness import edges
from terms.policy import DEFAULT
from torch import Tensor
from truth.assessment import Call
from truth.oracle import Oracle, Tensors

DRAWS = 5
REDUCED = {"hip": 16384, "torch": 16384, "python": 1024, "call": 16384}
REDUCED_ELSEWHERE = 1 << 16
_APART = 4


@dataclass(frozen=True)
class Observed:
    """The oracle's outputs for several draws of one config.

    Attributes:
        outputs: by name, with the draws along an extra first axis.
    """

    config: Config
    calls: tuple[Call, ...]
    outputs: Mapping[str, Tensor]


class Subject:
    """One task's oracle, and configs that are cheap to compute."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.signature = spec.signature
        self.oracle = Oracle.of(spec)
        self.ground = Ground.of(spec)
        self._seeds = Seeds(spec.salt, "", "admission")

    @cached_property
    def configs(self) -> tuple[Config, ...]:
        """The reduced visible configs, each once, and one more that widens dims always 1."""
        on_cpu = self.spec.platform == "cpu"
        cap = REDUCED[self.spec.candidate.abi] if on_cpu else REDUCED_ELSEWHERE
        cap = min(cap, self.spec.elements)
        small = [edges.reduced(config, self.ground, cap) for config in self.spec.configs]
        configs = list({config.name: config for config in small}.values())
        return (*configs, *self._widened(configs[0]))

    @cached_property
    def observed(self) -> tuple[Observed, ...]:
        """The oracle's outputs for ``DRAWS`` draws of each config. Raises TaskFault."""
        return tuple(self._observe(config) for config in self.configs)

    def inputs(self, config: Config, draw: int) -> dict[str, Tensor]:
        """The inputs of one draw. Raises TaskFault."""
        generator = self._seeds.generator("draw", config.name, draw)
        drawn = self.oracle.inputs(config, generator)
        return drawn | self.oracle.state(config, generator)

    def expected(self, config: Config, inputs: Tensors) -> dict[str, Tensor]:
        """The oracle's outputs, in double precision. Raises TaskFault."""
        return self.oracle.expected(config, inputs)

    def _observe(self, config: Config) -> Observed:
        drawn = [self.inputs(config, draw) for draw in range(DRAWS)]
        calls = tuple(Call(config, DEFAULT, i, self.expected(config, i)) for i in drawn)
        names = [argument.name for argument in self.signature.results]
        return Observed(config, calls, {name: stacked(calls, name) for name in names})

    def _widened(self, config: Config) -> tuple[Config, ...]:
        """``config`` with the dims that are 1 in every visible config made a little larger."""
        ones = {n for n in config.dims if all(c.dims[n] == 1 for c in self.spec.configs)}
        free = ones & set(self.ground.free())
        dims = {n: min(_APART, self.ground.largest(n)) if n in free else v
                for n, v in config.dims.items()}  # fmt: skip
        if not free or not self.ground.fits(dims):
            return ()
        return (Config(config_name(config.dtype, dims), dims, config.dtype, config.scalars),)


def stacked(calls: tuple[Call, ...], name: str) -> Tensor:
    """One output of several calls, as doubles, the calls along the first axis."""
    return torch.stack([call.expected[name].double() for call in calls])
