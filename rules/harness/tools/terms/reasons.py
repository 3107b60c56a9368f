"""The reasons in ``verdict.json``."""

from __future__ import annotations

from enum import Enum, unique


@unique
class Reason(Enum):
    """Why a candidate did not pass, as written into ``verdict.json``."""

    COMPILE_ERROR = "COMPILE_ERROR"
    UNSUPPORTED_FEATURE = "UNSUPPORTED_FEATURE"
    MISSING_ENTRY = "MISSING_ENTRY"
    WRONG_RESULT = "WRONG_RESULT"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    NON_FINITE = "NON_FINITE"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    INPUT_MUTATED = "INPUT_MUTATED"
    INCOMPLETE_OUTPUT = "INCOMPLETE_OUTPUT"
    TIMEOUT = "TIMEOUT"
    WRONG_TYPE = "WRONG_TYPE"
    WRONG_LAYOUT = "WRONG_LAYOUT"
    OUTPUT_ALIASED = "OUTPUT_ALIASED"
    STATE_MISMATCH = "STATE_MISMATCH"
    CRASH = "CRASH"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    LAUNCH_ERROR = "LAUNCH_ERROR"
    PROTOCOL_VIOLATION = "PROTOCOL_VIOLATION"
    CLOCK_MISMATCH = "CLOCK_MISMATCH"
    IMPLAUSIBLE = "IMPLAUSIBLE"
    EXCEPTION = "EXCEPTION"
    FORBIDDEN_SYSCALL = "FORBIDDEN_SYSCALL"
    KERNEL_BYPASSED = "KERNEL_BYPASSED"
    DATA_RACE = "DATA_RACE"
    DIVERGENT_BARRIER = "DIVERGENT_BARRIER"
    UNINITIALISED = "UNINITIALISED"
    NOT_HANDED_IN = "NOT_HANDED_IN"
    UNUSABLE_TIMES = "UNUSABLE_TIMES"
    EARLIER_GATE = "EARLIER_GATE"

    @property
    def rejects(self) -> bool:
        """Whether the reason is a broken contract or a cheat, rather than failed work."""
        return self in _REJECTING


_REJECTING = frozenset(
    {
        Reason.INPUT_MUTATED,
        Reason.OUT_OF_BOUNDS,
        Reason.PROTOCOL_VIOLATION,
        Reason.CLOCK_MISMATCH,
        Reason.IMPLAUSIBLE,
        Reason.FORBIDDEN_SYSCALL,
        Reason.KERNEL_BYPASSED,
    }
)
