"""Whether a task's reference gives the same answer twice: no candidate could be judged otherwise.

An answer that varies looks ill-conditioned, so that any result would be near enough to it.
"""

from __future__ import annotations

import torch
from base.program import Config
from torch import Tensor

from truth.oracle import Oracle, Tensors

_SHARE = 1e-6
"""The part of an output's largest number that sums in another order may differ by, in doubles."""


def require(oracle: Oracle, config: Config, inputs: Tensors) -> None:
    """Raise TaskFault where two answers for the same inputs differ.

    A task with a check of its own may have one right answer of many.
    """
    if oracle.structured:
        return
    first, again = (oracle.expected(config, inputs) for _ in range(2))
    for name, value in first.items():
        if said := _difference(value, again[name]):
            oracle.refuse(
                f"reference() returned '{name}' twice for the same inputs of {config.name}, and "
                f"{said}: compute it from the arguments only"
            )


def _difference(first: Tensor, again: Tensor) -> str:
    """How two answers differ; empty if they do not."""
    if not first.is_floating_point():
        on_device = first.device.type != "cpu"  # which may order equal elements in any way
        differing = 0 if on_device else int((first != again).sum().item())
        return f"{differing} of {first.numel()} elements differ" if differing else ""
    largest = first.abs().nan_to_num(0.0, 0.0, 0.0).max() if first.numel() else torch.zeros(())
    apart = (first - again).abs()
    same = (first == again) | (first.isnan() & again.isnan()) | (apart <= _SHARE * largest)
    differing = int((~same).sum().item())
    if not differing:
        return ""
    worst = float(apart.nan_to_num(0.0, 0.0, 0.0).max().item())
    return f"{differing} of {first.numel()} elements differ, by up to {worst:.3g}"
