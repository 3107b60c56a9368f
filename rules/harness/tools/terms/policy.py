"""The policy that all gates that judge results share, and its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .tolerance import FACTOR

DEFAULT = "default"
DISTRIBUTIONS = (
    DEFAULT,
    "scaled_up",
    "scaled_down",
    "positive",
    "negative",
    "zeros",
    "spikes",
    "constant",
    "offset",
    "denormal",
)
"""The distributions of values that are tried of our own accord."""


@dataclass(frozen=True)
class JudgingPolicy:
    """The settings of every judging gate that a task may change.

    Attributes:
        tolerance: atol and rtol by dtype, ``{"f16": {"atol": 1e-3, "rtol": 1e-3}}``.
        baseline_factor: how many times the baseline's own error is forgiven.
        call_seconds: how long one call may take.
        total_seconds: how long all calls of the candidate may take together; less than a gate.
    """

    tolerance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    baseline_factor: float = FACTOR
    call_seconds: float = 10.0
    total_seconds: float = 240.0
