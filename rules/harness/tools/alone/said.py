"""What the process says in which a candidate is called by itself.

The candidate shares it and may forge all of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from base.program import CandidateFault
from runners import diagnosis, hip_errors
from runners.supervised_run import Returned
from terms.reasons import Reason

_SAID = re.compile(r"^kabuild-alone (?P<what>\w+)(?: (?P<rest>.*))?$", re.MULTILINE)
_MEMORY = re.compile(r"(\w{1,32}) ([0-9a-f]{1,16}) (\d{1,15})")
_FAULT = re.compile(r"(\w{1,32}) (-?\d{1,15})")
_SHOWN = 2000


@dataclass(frozen=True)
class Allocation:
    """A stretch of memory that the candidate may use."""

    name: str
    address: int
    size: int

    def distance(self, address: int) -> int:
        """Bytes from the allocation to an address; 0 within."""
        return max(self.address - address, address - (self.address + self.size) + 1, 0)

    def where(self, address: int) -> str:
        """The address in words, relative to the tensor."""
        offset = address - self.address
        if offset < 0:
            place = f"{-offset} bytes before the start of"
        elif offset >= self.size:
            place = f"{offset - self.size} bytes past the end of"
        else:
            place = f"at offset {offset} of"
        return f"{place} '{self.name}' ({self.size} bytes)"


@dataclass(frozen=True)
class Said:
    """The output of the process.

    Attributes:
        ready: whether it came as far as to load the candidate.
        done: whether the call returned, and its kernels were done.
        memory: where its tensors are, for a native candidate.
        fault: the kind of a failure, and a value that belongs to it.
        text: everything else that was printed.
    """

    ready: bool
    done: bool
    memory: tuple[Allocation, ...]
    fault: tuple[str, int] | None
    text: str

    @classmethod
    def read(cls, output: bytes) -> Said:
        """Read the output; any bytes are some."""
        text = output.decode(errors="replace")
        lines = [(match["what"], match["rest"] or "") for match in _SAID.finditer(text)]
        memory = [_MEMORY.fullmatch(rest) for what, rest in lines if what == "memory"]
        faults = [_FAULT.fullmatch(rest) for what, rest in lines if what == "fault"]
        first = next((match for match in faults if match), None)
        shown = "".join(c if c == "\n" or c.isprintable() else "?" for c in _SAID.sub("", text))
        return cls(
            ready=("ready", "") in lines,
            done=("done", "") in lines,
            memory=tuple(Allocation(m[1], int(m[2], 16), int(m[3])) for m in memory if m),
            fault=(first[1], int(first[2])) if first else None,
            text="\n".join(filter(str.strip, shown.splitlines()))[-_SHOWN:],
        )

    def failure(self, returned: Returned, doing: str, seconds: float) -> CandidateFault:
        """Why the call failed, if it did; ``doing`` says under what."""
        if returned.status is None:
            return diagnosis.fault(Reason.TIMEOUT, f"gave no answer within {seconds:g} s {doing}")
        if self.fault is None:
            return diagnosis.fault(Reason.CRASH, f"ended its process {doing}", self.text)
        reason, what = _reported(*self.fault)
        return diagnosis.fault(reason, f"{what} {doing}", self.text)


def _reported(kind: str, value: int) -> tuple[Reason, str]:
    match kind:
        case "missing_entry":
            return Reason.MISSING_ENTRY, "lacks its entry"
        case "loading":
            return Reason.COMPILE_ERROR, "does not load"
        case "exception":
            return Reason.EXCEPTION, "raised an exception"
        case "memory":
            what = f"found no {value} bytes of memory" if value > 0 else "ran out of memory"
            return Reason.OUT_OF_MEMORY, what
        case _:
            return Reason.LAUNCH_ERROR, f"returned {hip_errors.described(value)}"
