"""The policy of the unseen gate."""

from __future__ import annotations

from dataclasses import dataclass

from .policy import JudgingPolicy


@dataclass(frozen=True)
class UnseenPolicy(JudgingPolicy):
    """The setting of this gate that a task may change: how often the eight classes are drawn."""

    cycles: int = 1
