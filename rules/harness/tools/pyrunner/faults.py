"""Translates exceptions in a Python runner to fault codes for the judge."""

from __future__ import annotations

from collections.abc import Sequence

from runners.protocol import FaultCode

from pyrunner.excerpt import chain

_ALLOCATOR_COMPLAINTS = (
    "can't allocate memory",
    "Cannot allocate memory",
)
_DEVICE_COMPLAINTS = {
    "an illegal memory access was encountered": 700,
    "misaligned address": 716,
    "unspecified launch failure": 719,
}
_CODES = {
    ("pyrunner.module", "MissingEntry"): FaultCode.MISSING_ENTRY,
    ("pyrunner.calls", "WrongShape"): FaultCode.SHAPE,
    ("pyrunner.calls", "WrongDtype"): FaultCode.DTYPE,
    ("pyrunner_call.returned", "WrongType"): FaultCode.TYPE,
    ("pyrunner_call.returned", "WrongLayout"): FaultCode.LAYOUT,
    ("pyrunner_call.returned", "Aliased"): FaultCode.ALIASED,
    ("pyrunner_call.call_tree", "StateMismatch"): FaultCode.STATE,
    ("triton_apart.operators", "OperatorRefused"): FaultCode.BYPASS,
    ("triton_cpu.bounds", "OutOfBoundsError"): FaultCode.BOUNDS,
    ("triton_cpu.builder", "UnsupportedOperationError"): FaultCode.UNSUPPORTED,
    ("triton_cpu.rewrite", "KernelSourceError"): FaultCode.UNSUPPORTED,
}


class HostFault(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """A fault that the process with the candidate's module has reported.

    Attributes:
        codes: the values of its FAULT message.
    """

    def __init__(self, codes: tuple[int, ...]) -> None:
        super().__init__(f"fault {codes}")
        self.codes = codes


def code_of(error: BaseException, complaints: Sequence[str] = ()) -> tuple[int, ...]:
    """The fault's code, followed by the device's own code if the device failed.

    ``complaints`` are the platform's texts for a device without free memory.
    """
    if isinstance(error, HostFault):
        return error.codes
    for cause in chain(error):
        text = str(cause)
        if isinstance(cause, MemoryError) or any(
            complaint in text for complaint in (*_ALLOCATOR_COMPLAINTS, *complaints)
        ):
            return (FaultCode.MEMORY,)
        for said, number in _DEVICE_COMPLAINTS.items():
            if said in text:
                return (FaultCode.LAUNCH, number)
        kind = type(cause)
        if (kind.__module__, kind.__name__) in _CODES:
            return (_CODES[kind.__module__, kind.__name__],)
    return (FaultCode.EXCEPTION,)
