"""``model_steps.py MODEL.py REFERENCE.py OUT``: losses and gradients of training steps.

The model may be a solution, hence hostile: this process writes numbers, another one judges them.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

import torch
from modelled.likelihood import module_at
from modelled.training import Step, drawn, steps
from modelled.user_model import described


def main(model: str, reference: str, out: str) -> int:
    """Write a line of JSON with what ended the steps, then the steps as little-endian numbers."""
    torch.set_num_threads(1)
    told = module_at(Path(reference))
    state, arguments = drawn(told)
    data = Path(f"{out}.part")
    error = ""
    with data.open("wb") as file:
        try:
            module = module_at(Path(model)).build()
            module.load_state_dict(state)
            for step in steps(told, module, arguments):
                _write(file, step)
        except Exception as failure:  # noqa: BLE001 - foreign code raises what it likes
            error = described(failure)
    head = json.dumps({"error": error}).encode()
    Path(out).write_bytes(head + b"\n" + data.read_bytes())
    data.unlink()
    return 0


def _write(file: BinaryIO, step: Step) -> None:
    """A double, then each gradient: a byte that says whether there is one, and floats."""
    file.write(struct.pack("<d", step.loss))
    for tensor in step.gradients.values():
        file.write(b"\1" if tensor is not None else b"\0")
        if tensor is not None:
            values: Any = tensor.detach().float().contiguous().numpy()
            file.write(values.astype("<f4").tobytes())


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
