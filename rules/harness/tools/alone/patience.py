"""The time that all calls of a candidate may take together."""

from __future__ import annotations

from dataclasses import dataclass

from base.program import CandidateFault
from terms.reasons import Reason


@dataclass
class Patience:
    """The time left for all calls together."""

    total_seconds: float
    spent_seconds: float = 0.0

    @property
    def left_seconds(self) -> float:
        """The seconds that are left. Raises CandidateFault if there are none."""
        left = self.total_seconds - self.spent_seconds
        if left <= 0:
            what = f"the candidate used up the {self.total_seconds:g} s of all its calls"
            raise CandidateFault(Reason.TIMEOUT, what)
        return left
