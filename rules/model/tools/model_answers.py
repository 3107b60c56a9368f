"""``model_answers.py MODEL.py REFERENCE.py OUT``: the logits of a model on fresh weights and texts.

The model may be a solution, hence hostile: this process writes numbers, another one judges them.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import torch
from modelled.likelihood import drawn, logits_of, module_at


def main(model: str, reference: str, out: str) -> int:
    """Write the logits of all draws, one after the other, as little-endian doubles."""
    torch.set_num_threads(1)
    told = module_at(Path(reference))
    build = module_at(Path(model)).build
    with Path(out).open("wb") as file, torch.no_grad():
        for state, arguments in drawn(told):
            module = build()
            module.load_state_dict(state)
            values = logits_of(told, module(*arguments.values())).double().flatten().tolist()
            file.write(struct.pack(f"<{len(values)}d", *values))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
