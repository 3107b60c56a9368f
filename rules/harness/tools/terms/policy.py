"""The policy common to all gates that judge results, and its defaults."""

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
    "below",
    "opposed",
    "rows",
    "ordered",
    "sparse",
)
"""The distributions of values that every task is tested on."""


@dataclass(frozen=True)
class JudgingPolicy:
    """The settings of every judging gate that a task may change.

    Attributes:
        tolerance: atol and rtol by dtype, ``{"f16": {"atol": 1e-3, "rtol": 1e-3}}``.
        baseline_factor: the allowed error, as a multiple of the baseline's own.
        call_seconds: the longest time of one call.
        total_seconds: the longest time of all the candidate's calls together, less than the gate's
            own limit.
    """

    tolerance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    baseline_factor: float = FACTOR
    call_seconds: float = 10.0
    total_seconds: float = 240.0
