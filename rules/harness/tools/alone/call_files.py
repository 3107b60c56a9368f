"""Writes one call of a native candidate to files, which the program ``hip-alone`` reads."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from base.program import Config, Program, Signature
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

    Raises ValueError for a signature beyond the layout's limits.
    """
    placed, content = [], bytearray()
    for argument in signature.inputs:
        plain = region(argument, config)
        content += bytes(-len(content) % _ALIGNMENT)
        placed.append(Region(plain.name, len(content), plain.size, plain.code, plain.shape))
        content += _bytes(inputs[argument.name])
    block = ControlBlock(
        symbols=(f"{program.entry}_{config.dtype}", program.entry),
        inputs=tuple(placed),
        outputs=tuple(region(argument, config) for argument in signature.outputs),
        scalars=tuple(scalar(pair, config) for pair in signature.scalars),
        dims=tuple((name, config.dims[name]) for name in signature.dims),
        strides=(0, 0),
        sizes=(len(content), 0),
        page=_ALIGNMENT,
        slots=1,
    )
    (folder / BLOCK).write_bytes(block.encode() + struct.pack("<I", 0))
    (folder / INPUTS).write_bytes(bytes(content) or b"\0")  # an empty file cannot be mapped


def _bytes(tensor: Tensor) -> bytes:
    import torch

    flat = tensor.detach().cpu().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
