"""A config's state, such as weights: handed over when the config is loaded.

Whatever a runner does with it, the judge reads only the tensors that it was made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from base import shapes
from base.program import Config, Signature
from base.tensors import torch_dtype
from terms.dtypes import DTYPES

from runners.control_block import Region
from runners.shared_memory import Medium

if TYPE_CHECKING:
    from torch import Tensor

_ALIGNMENT = 256


class StateArena:
    """The tensors of a config's state, one after another, in memory that a runner can read.

    Memory files are sealed. A device's memory is not, but each loaded config gets its own.
    """

    def __init__(
        self, signature: Signature, config: Config, state: Mapping[str, Tensor], medium: Medium
    ) -> None:
        self.regions = _placed(signature, config)
        last = self.regions[-1] if self.regions else None
        sealed, size = True, last.first + last.size if last else 0
        self._memory = medium.allocate(max(size, 1), sealed)
        self.size = self._memory.size
        try:
            self._fill(signature, config, state)
        except BaseException:
            self.close()
            raise

    def _fill(self, signature: Signature, config: Config, state: Mapping[str, Tensor]) -> None:
        flat = self._memory.flat()
        for region, argument in zip(self.regions, signature.state, strict=True):
            tensor = state[region.name]
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            if tensor.dtype != wanted or tuple(tensor.shape) != region.shape:
                raise ValueError(f"the state '{region.name}' differs from its declaration")
            if region.size:
                contents = tensor.detach().contiguous().view(-1).view(torch.uint8)
                flat[region.first : region.first + region.size].copy_(contents)

    @property
    def fd(self) -> int:
        """The descriptor of the memory, for the runner."""
        return self._memory.fd

    def close(self) -> None:
        """Release the descriptor; may be called twice."""
        self._memory.close()


def common_state(signature: Signature, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The state in the inputs of a batch. Raises ValueError if the inputs have two."""
    state = {argument.name: inputs[0][argument.name] for argument in signature.state}
    if not all(is_same(state, given) for given in inputs):
        raise ValueError("the calls of a batch have one state")
    return state


def is_same(state: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether another mapping has exactly the same tensor objects as a state."""
    return all(other.get(name) is tensor for name, tensor in state.items())


def _placed(signature: Signature, config: Config) -> tuple[Region, ...]:
    found: list[Region] = []
    cursor = 0
    for argument in signature.state:
        dtype = DTYPES[shapes.dtype_name(argument, config)]
        shape = shapes.shape(argument, config.dims)
        size = dtype.size
        for extent in shape:
            size *= extent
        region = Region(argument.name, 0, size, dtype.code, shape)
        found.append(replace(region, first=cursor))
        cursor += -(-size // _ALIGNMENT) * _ALIGNMENT
    return tuple(found)
