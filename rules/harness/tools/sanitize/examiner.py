"""The common interface of all ways to watch a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from base.program import CandidateFault, Config
from torch import Tensor

from sanitize.findings import Finding


@dataclass(frozen=True)
class SanitizePolicy:
    """How much the gate tries.

    Attributes:
        elements: cap on every tensor, since a watched kernel takes many times as long.
        edges: how many configs at the edges of the space are tried, besides the visible ones.
        call_seconds: how long one call may take.
        watch_seconds: how long one may take on a device, with the start of the tool.
        total_seconds: how long all calls may take together; less than a gate may.
    """

    elements: int = 4096
    edges: int = 6
    call_seconds: float = 60.0
    watch_seconds: float = 20.0
    total_seconds: float = 400.0


class Examiner(Protocol):
    """Watches one candidate."""

    def examine(
        self, config: Config, inputs: Mapping[str, Tensor]
    ) -> tuple[Sequence[Finding], CandidateFault | None]:
        """The findings of one call, and any other failure of it. Raises MachineFault."""
