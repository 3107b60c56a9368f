"""``model_training.py REFERENCE.py STEPS OUT.json``: whether a model trains as its own code does.

The truth is the model's own code in double precision. The error of that code in its own precision,
measured too, shows the effect of rounding alone.
"""

from __future__ import annotations

import io
import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import torch
from modelled.facts import write_facts
from modelled.likelihood import module_at, widened
from modelled.training import STEPS, Step, distance, drawn, precision, steps
from modelled.user_model import ModelError
from torch import Tensor

_LONGEST = 800


def judged(reference: Path, answers: Path) -> dict[str, Any]:
    """How far the answers are off, and the model's own code."""
    told = module_at(reference)
    state, arguments = drawn(told)
    mine = told.build()
    mine.load_state_dict(state)
    own = [*steps(told, mine, arguments)]
    with precision(torch.float64):
        wide = told.build().double()
        wide.load_state_dict(widened(state))
        true = [*steps(told, wide, [widened(given) for given in arguments])]
    if not all(math.isfinite(step.loss) for step in (*own, *true)):
        what = (
            "its loss is not finite in every step; give it an optimiser(parameters) that is slower"
        )
        raise ModelError("BAD_LOSS", what)
    line, _, data = answers.read_bytes().partition(b"\n")
    error = _error(line)
    found = distance(_read(data, true[0]), own, true)
    beside = distance(own, own, true)
    ended = f": {error}" if error else ""
    return {
        "steps": STEPS,
        "loss": found.loss if math.isfinite(found.loss) else None,
        "gradient": found.gradient if math.isfinite(found.gradient) else None,
        "eager_loss": beside.loss,
        "eager_gradient": beside.gradient,
        "first": true[0].loss,
        "last": true[-1].loss,
        "wrong": f"{found.wrong}{ended}" if found.wrong else "",
        "known": found.known,
    }


def _error(line: bytes) -> str:
    """What ended the steps, from the line that a hostile model may have written itself."""
    try:
        return str(json.loads(line)["error"])[:_LONGEST]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "what it wrote cannot be read"


def _read(data: bytes, like: Step) -> list[Step]:
    """The steps that were written, as far as they are whole, with the shapes of ``like``."""
    source = io.BytesIO(data)
    found: list[Step] = []
    while len(found) < STEPS and (step := _step(source, like)):
        found.append(step)
    return found


def _step(source: io.BytesIO, like: Step) -> Step | None:
    head = source.read(8)
    if len(head) < 8:
        return None
    gradients: dict[str, Tensor | None] = {}
    for name, tensor in like.gradients.items():
        present = source.read(1) == b"\1"
        gradients[name] = None
        if present and tensor is not None:
            values = source.read(4 * tensor.numel())
            if len(values) < 4 * tensor.numel():
                return None
            flat = torch.frombuffer(bytearray(values), dtype=torch.float32)
            gradients[name] = flat.view(tensor.shape)
    return Step(struct.unpack("<d", head)[0], gradients)


def main(reference: str, answers: str, out: str) -> int:
    """Write the facts."""
    write_facts(Path(out), lambda: judged(Path(reference), Path(answers)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
