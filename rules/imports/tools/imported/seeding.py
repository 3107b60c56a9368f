"""Seeds for the global generators that a benchmark's code draws from."""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_torch(seed: int) -> torch.Generator:
    """As ``torch.manual_seed``, for the CPU and for GPUs in use; returns the CPU's generator.

    The original also notes the seed, with a trace, for devices that are not there. That takes
    longer than most draws.
    """
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
    return torch.default_generator.manual_seed(int(seed))


def seed_all(seed: int) -> None:
    """Seed PyTorch's global generators, Python's and NumPy's."""
    seed_torch(seed)
    random.seed(seed)
    np.random.seed(seed)
