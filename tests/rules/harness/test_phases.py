"""Seconds by phase."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator

import pytest
from perf.phases import Phases


def clock(*times: float) -> Iterator[float]:
    return iter(times)


def test_a_phase_within_another_counts_as_its_own():
    phases = Phases(clock(0.0, 1.0, 3.0, 7.0, 8.0).__next__)

    with phases.of("round"), phases.of("draw"):
        pass

    assert phases.rounded() == {"draw": 4.0, "round": 3.0}


def test_what_fails_counts_too():
    phases = Phases(clock(0.0, 1.0, 3.0).__next__)

    with pytest.raises(OSError, match="broken"), phases.of("load"):
        raise OSError("broken")

    assert phases.seconds == {"load": 2.0}
