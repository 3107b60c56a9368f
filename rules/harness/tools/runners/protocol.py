"""The control protocol between judge and runner: messages of one fixed size.

They travel over a Unix ``SOCK_SEQPACKET`` pair, so that the kernel keeps message boundaries.
The native runner has the same layout in ``runner/protocol.h``.

======== ============================ =================================================
judge    values                       runner answers
======== ============================ =================================================
(start)                               ``READY`` once its own code and libraries are up
START                                 ``READY`` once the candidate is loaded
LOAD     (with 3 descriptors)         ``READY`` with the size of the workspace it wants
SCRATCH  bytes of the file, offset    ``READY``
         and size of the workspace
         (with 1 descriptor)
RUN      n, the call whose launches   ``DONE`` n ns
         have no effect (-1: none),
         and how its calls are guarded
EMPTY                                 ``DONE`` 0 ns
ARM                                   ``READY``, and waits for the next request without
                                      sleeping: a device's runner, before each batch
REPLAY   n                            ``DONE`` n ns of the calls recorded and run as one
                                      graph; 0 if the platform or the candidate cannot
GATE     (with 1 descriptor)           ``READY`` with 1 once what waits for the page can be
                                      launched, and with 0 if the platform has none
SHUT     n, ticket                    ``QUEUED`` n, ns that it took the host: all calls wait
                                      behind the gate
WAIT                                  ``DONE`` n ns, by the runner's clock, once the device
                                      is idle after SHUT
COLLECT                               ``READY`` once the ``torch`` ABI's results are
                                      in the buffers; on a host, before each batch of the
                                      ``call`` ABI: once objects are as they were
BYE                                   ``GONE``
======== ============================ =================================================

A runner may answer ``FAULT`` with a code instead. Every answer repeats the nonce of its
request (0 for the first READY), so an answer made up in advance, sent twice or late is detected.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, unique

MAGIC = 0x3152424B  # "KBR1"
CONTROL_FD = 3  # descriptor of a runner's end
FILTER_FD = 4  # descriptor of the native runner's system-call filter
DRIVER_FD = 5  # descriptor of the device's driver, which the native runner closes
ORDERS_FD, RECORD_FD = 6, 7  # descriptors of the pages of a runner's launch filter
_LAYOUT = struct.Struct("<IIQ6q")  # magic, kind, nonce, values
SIZE = _LAYOUT.size
VALUES = 6


@unique
class Kind(IntEnum):
    """The kind of a message; the judge's own kinds are below 16."""

    START = 1
    LOAD = 2
    SCRATCH = 3
    RUN = 4
    EMPTY = 5
    BYE = 6
    COLLECT = 7
    REPLAY = 8
    ARM = 9
    GATE = 10
    SHUT = 11
    WAIT = 12
    READY = 16
    DONE = 17
    FAULT = 18
    GONE = 19
    QUEUED = 20


@unique
class FaultCode(IntEnum):
    """Why the runner gives up, by its own report: a hint, never a proof.

    The code is a FAULT's first value; the comments name the values after it.
    """

    MACHINE = 1  # its own set-up failed; believed only before the candidate is loaded
    LOADING = 2  # the candidate's file does not load
    MISSING_ENTRY = 3
    LAUNCH = 4  # hipError_t
    SIGNAL = 5  # signal, place, tensor, offset, flags
    EXCEPTION = 6
    MEMORY = 7
    SHAPE = 8  # output
    DTYPE = 9  # output
    BOUNDS = 10  # an interpreter saw the access
    UNSUPPORTED = 11  # the candidate uses a feature that the interpreter does not emulate
    BYPASS = 12  # the candidate computes with kernels other than its own
    TYPE = 13
    LAYOUT = 14
    ALIASED = 15
    STATE = 16
    COPIED = 17  # bytes, bytes allowed
    UNMAPPED = 18  # memory that the judge lent is no longer mapped


@unique
class Place(IntEnum):
    """Where a faulting address lies."""

    ELSEWHERE = 0
    INPUT = 1
    INPUT_GAP = 2
    OUTPUT = 3
    OUTPUT_GAP = 4
    CONTROL = 5
    WORKSPACE = 6


FLAG_WRITE = 1  # the faulting access was a write
FLAG_FULL = 2  # the address space was nearly full
FLAG_HOST = 4  # host code accessed device memory, which was hidden from it
FLAG_OTHER_CALL = 8  # a kernel accessed the memory of another call
HIDE, BOUND = 1, 2  # how calls are guarded: device memory is hidden from host code, and copies of
# it to the host are bounded


@dataclass(frozen=True)
class Message:
    """One message, either way."""

    kind: Kind
    nonce: int
    values: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """The bytes on the wire."""
        padded = (*self.values, *(0,) * (VALUES - len(self.values)))
        return _LAYOUT.pack(MAGIC, self.kind, self.nonce, *padded)

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Read a message. Raises ValueError for anything that is not exactly one."""
        if len(data) != SIZE:
            raise ValueError(f"a message of {len(data)} bytes instead of {SIZE}")
        magic, kind, nonce, *values = _LAYOUT.unpack(data)
        if magic != MAGIC:
            raise ValueError("a message without the protocol's mark")
        return cls(Kind(kind), nonce, tuple(values))
