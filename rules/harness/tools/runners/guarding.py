"""How the calls of a batch are guarded against host code that does the work of kernels."""

from __future__ import annotations

from base.program import Program, RunnerPolicy

from runners.protocol import BOUND, HIDE


def guarding(program: Program, policy: RunnerPolicy, left_out: int | None) -> int:
    """What RUN says of it; 0 for nothing.

    What is read back after a launch that had no effect means nothing, so it may be a count of any
    size: only a batch without such a call has its copies bounded.
    """
    if not policy.own_kernels or program.abi != "hip" or program.on_device:
        return 0
    hides = policy.hides or left_out is not None
    bounds = policy.launches and left_out is None
    return (HIDE if hides else 0) | (BOUND if bounds else 0)
