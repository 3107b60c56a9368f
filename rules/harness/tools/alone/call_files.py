"""Writes one call to files, which ``runner_alone`` and ``pyrunner_alone`` read."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from base.program import Argument, Config, Program, Signature
from runners.config_memory import region, scalar
from runners.control_block import ControlBlock, Region

if TYPE_CHECKING:
    from torch import Tensor

BLOCK, INPUTS = "block", "inputs"
_ALIGNMENT = 256


def write_call(
    folder: Path,
    program: Program,
    signature: Signature,
    config: Config,
    inputs: Mapping[str, Tensor],
) -> None:
    """Write the control block, and the contents of the inputs one after the other.

    The block also has places for the outputs, one after the other. Raises ValueError for a
    signature beyond the layout's limits.
    """
    content = bytearray()
    placed, _ = _placed(signature.inputs, config)
    outputs, output_bytes = _placed(signature.outputs, config)
    for argument, place in zip(signature.inputs, placed, strict=True):
        content += bytes(place.first - len(content)) + _bytes(inputs[argument.name])
    block = ControlBlock(
        symbols=(f"{program.entry}_{config.dtype}", program.entry),
        inputs=placed,
        outputs=outputs,
        scalars=tuple(scalar(pair, config) for pair in signature.scalars),
        dims=tuple((name, config.dims[name]) for name in signature.dims),
        strides=(0, 0),
        sizes=(len(content), output_bytes),
        page=_ALIGNMENT,
        slots=1,
    )
    (folder / BLOCK).write_bytes(block.encode() + struct.pack("<I", 0))
    (folder / INPUTS).write_bytes(bytes(content) or b"\0")  # an empty file cannot be mapped


def _placed(arguments: Iterable[Argument], config: Config) -> tuple[tuple[Region, ...], int]:
    """Tensors one after the other, and the bytes that they take together."""
    placed, end = [], 0
    for argument in arguments:
        plain = region(argument, config)
        first = end + -end % _ALIGNMENT
        placed.append(Region(plain.name, first, plain.size, plain.code, plain.shape))
        end = first + plain.size
    return tuple(placed), end


def _bytes(tensor: Tensor) -> bytes:
    import torch

    flat = tensor.detach().cpu().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
