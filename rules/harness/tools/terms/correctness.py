"""The policy of the correctness gate."""

from __future__ import annotations

from dataclasses import dataclass

from .policy import DISTRIBUTIONS, JudgingPolicy


@dataclass(frozen=True)
class CorrectnessPolicy(JudgingPolicy):
    """The settings of this gate that a task may change.

    Attributes:
        distributions: the distributions of inputs to try; unknown names are the task's own.
        deterministic: whether equal calls must give equal bits. If not, as with atomic
            additions, each repeat must still be within tolerance.
        repeats: the number of equal calls that are compared.
        edges: the number of edge configs.
        reduced_elements: cap on tensors in tests of values rather than sizes; 0 for the
            platform's own.
    """

    distributions: tuple[str, ...] = DISTRIBUTIONS
    deterministic: bool = True
    repeats: int = 3
    edges: int = 6
    reduced_elements: int = 0
