"""The control protocol between judge and runner: messages of one fixed size.

They travel over a Unix ``SOCK_SEQPACKET`` pair, so that message bounds are the kernel's.
The native runner has the same layout in ``runner/protocol.h``.

======== ============================ =================================================
judge    values                       runner answers
======== ============================ =================================================
(start)                               ``READY`` once its own code and libraries are up
START                                 ``READY`` once the candidate is loaded
LOAD     (with 3 descriptors)         ``READY`` with the workspace size in bytes
SCRATCH  bytes (with 1 descriptor)    ``READY``
RUN      n                            ``DONE`` n ns
EMPTY                                 ``DONE`` 0 ns
BYE                                   ``BYE``
======== ============================ =================================================

A runner may answer ``FAULT`` with a code instead. Every answer repeats the nonce of its
request (0 for the first READY), so one made up beforehand, sent twice or sent late shows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, unique

MAGIC = 0x3152424B  # "KBR1"
CONTROL_FD = 3  # where the native runner finds its end
_LAYOUT = struct.Struct("<IIQ5qQ")  # magic, kind, nonce, values, reserved
SIZE = _LAYOUT.size
VALUES = 5


@unique
class Kind(IntEnum):
    """What a message is; the judge's own kinds are below 16."""

    START = 1
    LOAD = 2
    SCRATCH = 3
    RUN = 4
    EMPTY = 5
    BYE = 6
    READY = 16
    DONE = 17
    FAULT = 18
    GONE = 19


@unique
class FaultCode(IntEnum):
    """Why the runner gives up, as the runner says it: a hint, and never a proof."""

    MACHINE = 1  # its own set-up failed; believed only before the candidate is loaded
    LOADING = 2  # the candidate's file does not load
    MISSING_ENTRY = 3
    LAUNCH = 4  # slot, hipError_t
    SIGNAL = 5  # signal, place, tensor, offset, flags
    EXCEPTION = 6
    MEMORY = 7
    SHAPE = 8  # output
    DTYPE = 9  # output


@unique
class Place(IntEnum):
    """Where a faulting address lies."""

    ELSEWHERE = 0
    INPUT = 1
    INPUT_GAP = 2
    OUTPUT = 3
    OUTPUT_GAP = 4
    CONTROL = 5


FLAG_WRITE = 1  # the faulting access was a write
FLAG_FULL = 2  # the address space was nearly used up


@dataclass(frozen=True)
class Message:
    """One message, either way."""

    kind: Kind
    nonce: int
    values: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """The bytes on the wire."""
        padded = (*self.values, *(0,) * (VALUES - len(self.values)))
        return _LAYOUT.pack(MAGIC, self.kind, self.nonce, *padded, 0)

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Read a message. Raises ValueError for anything that is not exactly one."""
        if len(data) != SIZE:
            raise ValueError(f"a message of {len(data)} bytes instead of {SIZE}")
        magic, kind, nonce, *values, reserved = _LAYOUT.unpack(data)
        if magic != MAGIC or reserved != 0:
            raise ValueError("a message without the protocol's mark")
        return cls(Kind(kind), nonce, tuple(values))
