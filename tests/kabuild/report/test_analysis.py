"""What people see of counts, which a candidate's process writes and may make up."""

from __future__ import annotations

from typing import Any

from kabuild.report.analysis import render_analysis


def analysis(loads: int, lanes: int | None) -> dict[str, Any]:
    """One launch of 64 threads; ``lanes`` of them load, if there is an access at all."""
    launch = {
        "kernel": "k",
        "grid": [1, 1, 1],
        "block": [64, 1, 1],
        "shared_bytes": 0,
        "wave": 32,
        "count": 1,
        "exchanges": 0,
        "sectors_read": 0,
        "sectors_written": 0,
        "sectors_read_by_blocks": None,
        "sectors_most_of_block": None,
        "loads_most_of_thread": loads,
    }
    # Without "warp64", an access is in no table of warps of 64.
    access = {"kernel": "k", "space": "global", "operation": "load", "warp32": {"lanes": lanes}}
    call = {
        "config": "n=64",
        "of": "n=64",
        "reduced": False,
        "whole": True,
        "fault": "",
        "flops": 0,
        "launches": [launch],
        "accesses": [access] if lanes is not None else [],
        "branches": [],
        "arithmetic": [],
    }
    return {"calls": [call], "findings": {"warp64": []}}


def test_a_thread_that_loads_far_more_than_the_mean_is_told() -> None:
    assert "the busiest thread makes 64 loads, 32.0 times" in render_analysis(
        "//a", analysis(64, 128), 64
    )
    assert "busiest" not in render_analysis("//a", analysis(64, 64 * 64), 64)


def test_a_busiest_thread_without_any_access_is_not_told() -> None:
    """A hostile kernel may print such a line itself; then there is no mean to compare with."""
    assert "busiest" not in render_analysis("//a", analysis(10**17, None), 64)
