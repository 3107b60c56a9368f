"""Oracle of all candidates here: twice the input."""

from typing import Any

import torch
from torch import Generator, Tensor


def inputs(config: dict[str, Any], generator: Generator) -> dict[str, Tensor]:
    """Draw x [n], normal."""
    return {"x": torch.randn(config["n"], generator=generator).to(config["dtype"])}


def reference(x: Tensor, **_: object) -> dict[str, Tensor]:
    """Return y [n]."""
    return {"y": 2 * x}
