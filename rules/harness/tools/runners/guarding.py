"""Guards the calls of a batch against host code that does the work of kernels."""

from __future__ import annotations

from base.program import Program, RunnerPolicy

from runners.protocol import BOUND, HIDE


def guarding(program: Program, policy: RunnerPolicy, left_out: int | None) -> int:
    """The guards to request in RUN; 0 for none.

    Data read back after a launch without effect is meaningless, so it may be a count of any size.
    Hence copies are bounded only in a batch without such a launch.
    """
    if not policy.own_kernels or program.abi != "hip" or program.on_device:
        return 0
    hides = policy.hides or left_out is not None
    bounds = policy.launches and left_out is None
    return (HIDE if hides else 0) | (BOUND if bounds else 0)
