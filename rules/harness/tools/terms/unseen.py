"""The gate unseen: what a task may change about it."""

from __future__ import annotations

from dataclasses import dataclass

from .policy import JudgingPolicy


@dataclass(frozen=True)
class UnseenPolicy(JudgingPolicy):
    """What a task may change about this gate: how often the eight classes are drawn."""

    cycles: int = 1
