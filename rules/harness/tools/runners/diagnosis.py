"""Names the faults of runners, from how they end and what they report.

The kernel's wait status is a fact. A FAULT message is only the runner's claim, which a hostile
candidate may have written. It only makes the name more precise, and all names it can give fail.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from base.program import CandidateFault
from terms.reasons import Reason

from runners import hip_errors
from runners.call_block import CallBlock
from runners.control_block import ControlBlock, Region
from runners.protocol import (
    FLAG_FULL,
    FLAG_HOST,
    FLAG_OTHER_CALL,
    FLAG_WRITE,
    FaultCode,
    Message,
    Place,
)

# After these errors a device's context is lost; HIP and CUDA use the same numbers.
_DEVICE_CRASHES = {
    700: "accessed an illegal address on the device",
    702: "was stopped by the driver for running too long",
    710: "failed an assertion on the device",
    714: "corrupted the stack of the device",
    715: "executed an illegal instruction on the device",
    716: "accessed a misaligned address of the device",
    717: "accessed an address in the wrong address space on the device",
    718: "jumped to an illegal address of the device",
    719: "crashed on the device",
}
_BY_SIGNAL: dict[int, tuple[Reason, str]] = {
    signal.SIGSYS: (Reason.FORBIDDEN_SYSCALL, "made a system call that no kernel needs"),
    signal.SIGXCPU: (Reason.TIMEOUT, "used up its processor time"),
}
_APART: dict[int, str] = {
    Place.CONTROL: "in the control block",
    Place.WORKSPACE: "beside its workspace",
}
_BY_CODE = {
    FaultCode.LOADING: (Reason.COMPILE_ERROR, "does not load"),
    FaultCode.EXCEPTION: (Reason.EXCEPTION, "raised an exception"),
    FaultCode.MEMORY: (Reason.OUT_OF_MEMORY, "ran out of memory"),
    FaultCode.SHAPE: (Reason.WRONG_SHAPE, "returned a tensor of the wrong shape"),
    FaultCode.DTYPE: (Reason.WRONG_DTYPE, "returned a tensor of the wrong dtype"),
    FaultCode.TYPE: (Reason.WRONG_TYPE, "returned something other than a tensor"),
    FaultCode.LAYOUT: (Reason.WRONG_LAYOUT, "returned a tensor of the wrong layout"),
    FaultCode.ALIASED: (Reason.OUTPUT_ALIASED, "returned memory that is not its own"),
    FaultCode.STATE: (Reason.STATE_MISMATCH, "has another state_dict() than the original"),
    FaultCode.BOUNDS: (Reason.OUT_OF_BOUNDS, "accessed memory outside its tensors"),
    FaultCode.UNSUPPORTED: (Reason.UNSUPPORTED_FEATURE, "uses a feature that is not emulated"),
    FaultCode.UNMAPPED: (Reason.CRASH, "unmapped memory that the judge shared with it"),
    FaultCode.BYPASS: (Reason.KERNEL_BYPASSED, "computed with something other than its kernels"),
}


def ended(status: int, doing: str, said: str = "") -> CandidateFault:
    """The fault of a runner that ended by itself.

    Args:
        status: its wait status.
        doing: what it was asked to do, such as ``in a batch of 4 calls``.
        said: the end of its output.
    """
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return fault(Reason.CRASH, f"ended its process with exit code {code} {doing}", said)
    number = os.WTERMSIG(status)
    reason, what = _BY_SIGNAL.get(number, (Reason.CRASH, f"died of {signal_name(number)}"))
    return fault(reason, f"{what} {doing}", said)


def crashed(
    message: Message, status: int, block: ControlBlock | CallBlock | None, doing: str, said: str
) -> CandidateFault:
    """The fault of a runner that reported a signal and then ended."""
    _, number, place, tensor, offset, flags = message.values
    died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number not in {died, signal.SIGABRT} or died in _BY_SIGNAL:
        return ended(status, doing, said)
    if flags & FLAG_FULL:
        return fault(Reason.OUT_OF_MEMORY, f"ran out of memory {doing}", said)
    reason, where = _where(place, tensor, offset, flags, block)
    return fault(reason, f"died of {signal_name(number)} {doing}{where}", said)


def complained(
    message: Message, block: ControlBlock | CallBlock | None, doing: str, said: str
) -> CandidateFault:
    """The fault that a FAULT message other than SIGNAL and MACHINE names."""
    code = FaultCode(message.values[0])
    if code is FaultCode.MISSING_ENTRY:
        symbols = block.symbols if block else ()
        wanted = " or ".join(f"'{symbol}'" for symbol in symbols) or "its entry"
        return fault(Reason.MISSING_ENTRY, f"does not define {wanted}", said)
    if code is FaultCode.LAUNCH:
        error = message.values[1]
        if error in _DEVICE_CRASHES:
            what = f"{_DEVICE_CRASHES[error]} (hipError_t {error}) {doing}"
            return fault(Reason.CRASH, what, said)
        out_of_memory = error == hip_errors.OUT_OF_MEMORY
        reason = Reason.OUT_OF_MEMORY if out_of_memory else Reason.LAUNCH_ERROR
        return fault(reason, f"returned {hip_errors.described(error)} {doing}", said)
    if code is FaultCode.COPIED:
        copied, allowed = message.values[1:3]
        what = f"copied {copied} bytes of device memory to the host in one call {doing} "
        what += f"(at most {allowed} are allowed): compute the result in kernels"
        return fault(Reason.KERNEL_BYPASSED, what, said)
    reason, what = _BY_CODE[code]
    return fault(reason, f"{what} {doing}", said)


def violation(what: str, said: str = "") -> CandidateFault:
    """The fault of a runner that breaks the protocol."""
    return fault(Reason.PROTOCOL_VIOLATION, what, said)


def fault(reason: Reason, what: str, said: str = "") -> CandidateFault:
    """A fault of the candidate; its output follows the description."""
    return CandidateFault(reason, f"the candidate {what}" + (f"\n{said}" if said else ""))


def signal_name(number: int) -> str:
    """A name such as ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _where(
    place: int, tensor: int, offset: int, flags: int, block: ControlBlock | CallBlock | None
) -> tuple[Reason, str]:
    """The meaning of an access to the shared buffers, and its place in words."""
    access = "write" if flags & FLAG_WRITE else "read"
    if flags & FLAG_HOST and place not in {Place.INPUT_GAP, Place.OUTPUT_GAP}:
        return Reason.KERNEL_BYPASSED, _by_host(place, tensor, offset, f"{access}s", block)
    if place in _APART:
        return Reason.OUT_OF_BOUNDS, f": a {access} {_APART[place]}"
    inputs, outputs = (block.inputs, block.outputs) if block else ((), ())
    region = _region(inputs if place in {Place.INPUT, Place.INPUT_GAP} else outputs, tensor)
    if region is None or place == Place.ELSEWHERE:
        return Reason.CRASH, ""
    if flags & FLAG_OTHER_CALL and place in {Place.INPUT, Place.OUTPUT}:
        return Reason.OUT_OF_BOUNDS, f": a {access} of '{region.name}' of another call"
    if place == Place.INPUT:
        return Reason.INPUT_MUTATED, f": a {access} of its input '{region.name}', byte {offset}"
    distance = f"{-offset} bytes before" if offset < 0 else f"{offset - region.size} bytes behind"
    return Reason.OUT_OF_BOUNDS, f": a {access} {distance} '{region.name}'"


def _by_host(
    place: int, tensor: int, offset: int, accesses: str, block: ControlBlock | CallBlock | None
) -> str:
    """The description of a host access that no GPU allows, and what to do instead."""
    inputs, outputs = (block.inputs, block.outputs) if block else ((), ())
    region = _region(inputs if place == Place.INPUT else outputs, tensor)
    what = "device memory"
    if place in {Place.INPUT, Place.OUTPUT} and region is not None:
        what += f" ('{region.name}', byte {offset})"
    instead = "use a kernel, or copy with hipMemcpy"
    return f": host code {accesses} {what}, where a GPU would end the process; {instead}"


def _region(regions: Sequence[Region], index: int) -> Region | None:
    return regions[index] if 0 <= index < len(regions) else None
