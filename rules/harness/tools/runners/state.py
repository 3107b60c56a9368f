"""A config's state, such as weights: handed over when the config is loaded, and read-only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from base import shapes
from base.program import Config, Signature
from base.tensors import torch_dtype
from terms.dtypes import DTYPES

from runners import shared_memory
from runners.control_block import Region

if TYPE_CHECKING:
    from torch import Tensor

_ALIGNMENT = 256


class StateFile:
    """The tensors of a config's state, one after another, in a sealed file."""

    def __init__(self, signature: Signature, config: Config, state: Mapping[str, Tensor]) -> None:
        self.regions = _placed(signature, config)
        last = self.regions[-1] if self.regions else None
        self.size = last.first + last.size if last else 0
        self.fd, memory = shared_memory.shared_file(max(self.size, 1), sealed=True)
        for region, argument in zip(self.regions, signature.state, strict=True):
            tensor = state[region.name]
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            if tensor.dtype != wanted or tuple(tensor.shape) != region.shape:
                raise ValueError(f"the state '{region.name}' differs from its declaration")
            if region.size:
                flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
                memory[region.first : region.first + region.size] = flat.numpy().tobytes()

    def close(self) -> None:
        """Release the descriptor; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


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
