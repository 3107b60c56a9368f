"""The judge's side of the launch filter: orders to it, and its record of launches.

The filter is a library in front of the device's driver in a runner (``launch_filter/``,
which has the same layout in ``pages.h``). The runner can read the orders but not write them.
It writes the record, so the record is evidence, not proof: a candidate that changes it can accuse
itself, or hide a launch that was refused and did not run.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, unique
from pathlib import Path

from base.program import MachineFault, RunnerPolicy

from runners.shared_memory import shared_file

ORDERS_MAGIC = 0x4F4C424B  # "KBLO"
RECORD_MAGIC = 0x524C424B  # "KBLR"
VERSION = 1
EVERY = (1 << 64) - 1
_ORDERS = struct.Struct("<IIIIQQ")  # magic, version, rule, reserved, epoch, limit
_ORDERS_BYTES = 8192  # the rest is the source of the harness's own kernels
_OWN_KERNELS = Path(__file__).parents[1] / "gpu/blocker.ptx"
_HEADER = struct.Struct("<II5QII")  # magic, version, counts, entries in use, reserved
_HEADER_BYTES = 256
_ENTRY = struct.Struct("<QI116s")  # launches, kind, name
_RECORD_BYTES = 8192
_MOST_ENTRIES = (_RECORD_BYTES - _HEADER_BYTES) // _ENTRY.size
_ANY, _OWN = 0, 1
_SHOWN = 4
_SHOWN_LETTERS = 100


@unique
class Kind(IntEnum):
    """The kind of a kernel in the record."""

    KERNEL = 1
    COPY = 2
    REFUSED = 3


@dataclass(frozen=True)
class Counts:
    """The launches since the runner's start, by its own record.

    Attributes:
        kernels: launches of kernels that ran, without PyTorch's copies and fills.
        copies: PyTorch's copies and fills.
        graphs: launches of graphs, whatever they contain.
        left_out: launches that the filter left out on the judge's orders.
        refused: launches of kernels that are not the candidate's.
    """

    kernels: int
    copies: int
    graphs: int
    left_out: int
    refused: int

    @property
    def launches(self) -> int:
        """All launches in the device's queue, whose depth limits them."""
        return self.kernels + self.copies + self.graphs


class LaunchPages:
    """Both pages of one runner."""

    def __init__(self, policy: RunnerPolicy) -> None:
        self._rule = _OWN if policy.own_kernels else _ANY
        self._epoch = 0
        self._orders_fd, self._orders = shared_file(_ORDERS_BYTES, sealed=True)
        self._record_fd, self._record = shared_file(_RECORD_BYTES, sealed=False)
        text = _OWN_KERNELS.read_bytes() if _OWN_KERNELS.exists() else b""
        self._orders[_ORDERS.size : _ORDERS.size + len(text)] = text
        self.order(EVERY if policy.launches else 0)

    @property
    def fds(self) -> tuple[int, int]:
        """Orders and record, for the runner."""
        return self._orders_fd, self._record_fd

    def order(self, limit: int = EVERY) -> None:
        """Let at most ``limit`` kernels run from now on. Call it while the runner is frozen.

        Further launches succeed without effect; PyTorch's copies and fills still run. A graph
        counts as one launch, and is recorded whole.
        """
        self._epoch += 1
        fields = (ORDERS_MAGIC, VERSION, self._rule, 0, self._epoch, limit)
        self._orders[: _ORDERS.size] = _ORDERS.pack(*fields)

    def check_in_force(self) -> None:
        """Raise MachineFault unless the runner has put itself under the filter.

        Call it before the candidate is loaded.
        """
        magic, version, *_ = _HEADER.unpack_from(self._record)
        if (magic, version) != (RECORD_MAGIC, VERSION):
            raise MachineFault("a runner has started without its launch filter")

    def counts(self) -> Counts:
        """The launches so far."""
        return Counts(*_HEADER.unpack_from(self._record)[2:7])

    def kernels(self, kind: Kind) -> tuple[tuple[str, int], ...]:
        """The kernels of one kind: mangled name, made printable, and number of launches."""
        return tuple((name, launches) for found, name, launches in self._entries() if found == kind)

    def refusal(self) -> str:
        """The refused launches, as a phrase that follows ``the candidate``; empty if none."""
        if not self.counts().refused:
            return ""
        names = [name for name, _ in self.kernels(Kind.REFUSED)]
        shown = ", ".join(names[:_SHOWN]) or "others (the record is full)"
        more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"launched kernels that are not its own: {shown}{more}"

    def close(self) -> None:
        """Release the descriptors; may be called twice."""
        for fd in (self._orders_fd, self._record_fd):
            if fd >= 0:
                os.close(fd)
        self._orders_fd = self._record_fd = -1

    def _entries(self) -> Iterator[tuple[int, str, int]]:
        in_use = min(_HEADER.unpack_from(self._record)[7], _MOST_ENTRIES)
        for number in range(in_use):
            start = _HEADER_BYTES + number * _ENTRY.size
            launches, kind, name = _ENTRY.unpack_from(self._record, start)
            text = name.partition(b"\0")[0].decode("ascii", "replace")[:_SHOWN_LETTERS]
            yield kind, "".join(c if c.isprintable() else "?" for c in text), launches
