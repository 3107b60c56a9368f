"""``model_likelihood.py REFERENCE.py ANSWERS OUT.json``: how far logits are from the true ones.

The truth is the model's own code in double precision. The error of that code in its own precision,
measured too, bounds what a kernel can reach.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from modelled.facts import write_facts
from modelled.likelihood import drawn, likeness, logits_of, module_at, widened
from torch import Tensor


def judged(reference: Path, answers: Path) -> dict[str, Any]:
    """The likeness of the answers, and of the model's own code.

    A model that ended early has written fewer: those that are absent count as not a number.
    """
    told = module_at(reference)
    data = answers.read_bytes()
    true, own = [], []
    with torch.no_grad():
        for state, arguments in drawn(told):
            true.append(_logits(told, widened(state), widened(arguments)))
            own.append(_logits(told, state, arguments))
    count = sum(logits.numel() for logits in true)
    given = torch.full((count,), math.nan, dtype=torch.float64)
    written = min(len(data) // 8, count)
    if written:
        given[:written] = torch.frombuffer(bytearray(data), dtype=torch.float64, count=written)
    absent = f"it wrote {len(data)} bytes of logits, expected {8 * count}"
    parts = torch.split(given, [logits.numel() for logits in true])
    shaped = [part.view(logits.shape) for part, logits in zip(parts, true, strict=True)]
    found, beside = likeness(shaped, true), likeness(own, true)
    wrong = found.wrong(beside) if len(data) == 8 * count else absent
    return {"model": found.to_json(), "eager": beside.to_json(), "wrong": wrong}


def _logits(told: Any, state: Mapping[str, Tensor], arguments: Mapping[str, Tensor]) -> Tensor:
    values = [*told.reference(state, **arguments).values()]
    return logits_of(told, values).double()


def main(reference: str, answers: str, out: str) -> int:
    """Write the facts."""
    write_facts(Path(out), lambda: judged(Path(reference), Path(answers)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
