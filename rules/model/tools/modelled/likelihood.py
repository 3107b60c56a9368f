"""How far a language model's logits are from the true ones: divergence, and the likeliest token."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DRAWS = 8
_SEED = 20260802
_LEAST = 1e-6  # nats a position: what no text tells apart
_TIMES = 10.0  # the model's own divergence, that is forgiven
_SHARE = 0.001  # positions that may differ beyond those in which the model's own does


@dataclass(frozen=True)
class Likeness:
    """Logits beside true ones.

    Attributes:
        positions: rows of logits.
        divergence: of Kullback and Leibler, from the true distribution, in nats: the mean over
            positions; infinite where logits are not finite.
        worst: the same of the worst position.
        agreement: the share of positions with the same likeliest token.
    """

    positions: int
    divergence: float
    worst: float
    agreement: float

    def wrong(self, own: Likeness) -> str:
        """Why these logits are too far off; empty if not. ``own`` are the model's own."""
        allowed = max(_LEAST, _TIMES * own.divergence)
        if not self.divergence <= allowed:
            return f"a divergence of {self.divergence:.3g} nats, where {allowed:.3g} are allowed"
        least = own.agreement - max(_SHARE, 1.0 / self.positions)
        if self.agreement < least:
            return f"the likeliest token agrees in {self.agreement:.2%}, expected {least:.2%}"
        return ""

    def to_json(self) -> dict[str, Any]:
        """As facts; what is infinite is None."""
        return {
            name: value if math.isfinite(value) else None for name, value in asdict(self).items()
        }


def likeness(given: Sequence[Tensor], true: Sequence[Tensor]) -> Likeness:
    """Of logits [..., tokens] of some draws, and of the true ones, in double precision."""
    rows = torch.cat([logits.flatten(0, -2) for logits in given])
    right = torch.cat([logits.flatten(0, -2) for logits in true])
    truth = right.log_softmax(-1)
    apart = (truth.exp() * (truth - rows.log_softmax(-1))).sum(-1).clamp(min=0.0)
    apart = apart.nan_to_num(nan=math.inf)
    same = (rows.argmax(-1) == right.argmax(-1)).double()
    found = (apart.mean(), apart.max(), same.mean())
    return Likeness(len(rows), *(float(value) for value in found))


def drawn(told: Any) -> Iterator[tuple[dict[str, Tensor], dict[str, Tensor]]]:
    """Weights and arguments by name, by the functions of a whole model's oracle."""
    for number in range(DRAWS):
        generator = torch.Generator().manual_seed(_SEED + number)
        config = {"draw": 1, "dtype": torch.float32}
        state = told.state(config, generator)
        yield state, told.inputs(config, generator)


def logits_of(told: Any, value: Any) -> Tensor:
    """The logits among the results of a call, by the index that the model's file gives."""
    found = [*value] if isinstance(value, list | tuple) else [value]
    logits: Tensor = found[told.LOGITS]
    return logits


def module_at(path: Path) -> Any:
    """The module in a file."""
    name = f"kabuild_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Floating-point tensors in double precision, others as they are."""
    return {
        name: tensor.double() if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }
