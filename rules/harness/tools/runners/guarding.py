"""Guards the calls of a batch against host code that does the work of kernels."""

from __future__ import annotations

from base.program import Program, RunnerPolicy

from runners.protocol import BOUND, HIDE


def guarding(program: Program, policy: RunnerPolicy) -> int:
    """The guards to request in RUN; 0 for none.

    The runner replaces them for a call whose launches have no effect: its memory is hidden, but
    copies of it are not bounded. What it reads back is meaningless, so it may be a count of any
    size.
    """
    if not policy.own_kernels or program.abi != "hip" or program.on_device:
        return 0
    return (HIDE if policy.hides else 0) | (BOUND if policy.launches else 0)
