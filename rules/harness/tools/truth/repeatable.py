"""Checks that a task's reference gives the same answer twice; else it can judge no candidate.

An answer that varies looks ill-conditioned, so any result would be close enough to it.
"""

from __future__ import annotations

import torch
from base.program import Config
from torch import Tensor

from truth.oracle import Oracle, Tensors

_SHARE = 1e-6
"""How far sums of doubles in another order may differ, relative to an output's largest number."""


def require(oracle: Oracle, config: Config, inputs: Tensors) -> None:
    """Raise TaskFault if two answers for the same inputs differ.

    A task with its own check is not tested, as it may have many right answers.
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
        on_device = first.device.type != "cpu"  # may order equal elements in any way
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
