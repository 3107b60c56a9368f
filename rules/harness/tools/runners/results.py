"""The results of calls: the runner reports where they are, and the judge reads them there.

The runner writes a record for each tensor that a call returned. Once its clock has stopped and it
is frozen, the judge checks the records and has the bytes copied out of the runner's memory. So
nothing can be computed after the clock stops, and no copy is timed. A false record leads to wrong
numbers.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import Protocol

from base import layouts, shapes
from base.layouts import Pieces
from base.program import Argument, CandidateFault, Config, Program, Signature, names_in
from terms.dtypes import BY_CODE
from terms.reasons import Reason

from runners import diagnosis, shared_memory
from runners.control_block import Region
from runners.result_memory import Misplaced
from runners.warden import MisplacedResult

RECORD = struct.Struct("<QII8q8q")  # address, dtype's code, axes, shape, strides
MAX_RANK = 8
MOST_PIECES = 1 << 14
"""The most pieces of memory that a result may be read from: each takes the judge 2 us."""

_BEYOND = 1 << 63
RANGE = struct.Struct("<QQQ")  # address in the runner, bytes, offset in the target
Reader = Callable[[int, int, int, tuple[int, ...]], bool]
"""Copies ranges to the file in the second argument; the first is the file that lists them, the
third their number, the fourth the judge's in which they may lie. Raises MisplacedResult."""
_MISPLACED = {
    Misplaced.ABSENT: (Reason.OUT_OF_BOUNDS, "outside its own memory"),
    Misplaced.BARRED: (
        Reason.OUTPUT_ALIASED,
        "in memory that is not its own alone: an input's, a file's, or shared",
    ),
    Misplaced.UNWRITTEN: (
        Reason.INCOMPLETE_OUTPUT,
        "in memory that it has not written: even zeros must be, as torch.zeros does",
    ),
}


class Target(Protocol):
    """The memory that results are copied to."""

    @property
    def fd(self) -> int:
        """Its memory's descriptor."""

    @property
    def stride(self) -> int:
        """Bytes of a slot."""


class ResultTable:
    """The records of a config's calls.

    Attributes:
        fd: the file that the runner writes them into.
        strides: by slot and output, of results whose layout differs from the declared one, as last
            fetched.
        reused: by slot, the outputs whose memory a later call also returned.
    """

    def __init__(
        self,
        program: Program,
        signature: Signature,
        config: Config,
        regions: Sequence[Region],
        slots: int,
    ) -> None:
        placed = {region.name: region for region in regions}
        declared = {argument.name: argument for argument in signature.results}
        call = json.loads(program.call)
        self._parts = [
            part
            for name in returned(call["targets"])
            for part in _parts(declared[name], placed[name], config)
        ]
        self._given = bool(declared.keys() & names_in(call["node"]))
        self.strides: dict[int, dict[str, tuple[int, ...]]] = {}
        self.reused: dict[int, set[str]] = {}
        self._stride = RECORD.size * len(self._parts)
        self.fd, self._memory = shared_memory.shared_file(
            max(self._stride * slots, 1), sealed=False
        )
        self._ranges_fd, self._ranges = _ranges_of(max(len(self._parts) * slots, 1))

    def fetch(self, order: Sequence[int], outputs: Target, read: Reader) -> None:
        """Copy the results of the calls in these slots into their outputs.

        Each must lie in memory of the runner's own that it has written, or in the outputs if calls
        are given any. Raises CandidateFault.
        """
        self.strides = {}
        ranges: list[tuple[int, int, int]] = []
        places: list[_Place] = []
        for place, slot in enumerate(order):
            for index, part in enumerate(self._parts):
                address, pieces = self._checked(slot, index, part)
                first = slot * outputs.stride + part.offset
                if part.size and pieces is None:
                    ranges.append((address, part.size, first))
                    places.append((address, place, slot, address + part.size, part.name))
                elif part.size and pieces is not None:
                    size = pieces.run * part.itemsize
                    for number, start in enumerate(pieces.starts()):
                        begin = address + start * part.itemsize
                        after = start * part.itemsize if part.gaps else number * size
                        ranges.append((begin, size, first + after))
                        places.append((begin, place, slot, begin + size, part.name))
                    if not part.gaps:
                        self.strides.setdefault(slot, {})[part.name] = pieces.strides
        self.reused = _reused(places)
        if ranges:
            self._read(ranges, [name for *_, name in places], outputs, read)

    def _read(
        self,
        ranges: list[tuple[int, int, int]],
        names: list[str],
        outputs: Target,
        read: Reader,
    ) -> None:
        packed = b"".join(RANGE.pack(*item) for item in ranges)
        if len(packed) > len(self._ranges):
            os.close(self._ranges_fd)
            self._ranges_fd, self._ranges = _ranges_of(len(ranges))
        self._ranges[: len(packed)] = packed
        lent = (outputs.fd,) if self._given else ()
        try:
            done = read(self._ranges_fd, outputs.fd, len(ranges), lent)
        except MisplacedResult as wrong:
            raise _misplaced(wrong.how, names[wrong.index]) from None
        if not done:
            raise _misplaced(Misplaced.ABSENT, names[0])

    def close(self) -> None:
        """Release the descriptors; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            os.close(self._ranges_fd)
            self.fd = self._ranges_fd = -1

    def _checked(self, slot: int, index: int, part: _Part) -> tuple[int, Pieces | None]:
        """Address of the tensor in a record, and its pieces if its layout is its own.

        Raises CandidateFault.
        """
        at = slot * self._stride + index * RECORD.size
        address, code, axes, *numbers = RECORD.unpack_from(self._memory, at)
        shape, steps = tuple(numbers[:axes]), tuple(numbers[MAX_RANK : MAX_RANK + axes])
        if axes > MAX_RANK or shape != part.shape:
            raise _wrong(Reason.WRONG_SHAPE, part.name, f"{list(shape)}", f"{list(part.shape)}")
        if code != part.code:
            found = BY_CODE[code].torch_name if code in BY_CODE else "of an unknown dtype"
            raise _wrong(Reason.WRONG_DTYPE, part.name, found, BY_CODE[part.code].torch_name)
        if not layouts.fits(shape, steps, part.strides, part.layout):
            wanted = part.layout or f"strides {list(part.strides)}"
            raise _wrong(Reason.WRONG_LAYOUT, part.name, f"with strides {list(steps)}", wanted)
        last = sum((extent - 1) * abs(step) for extent, step in zip(shape, steps, strict=True))
        if address + (last + 1) * part.itemsize > _BEYOND or _backwards(shape, steps):
            raise _misplaced(Misplaced.ABSENT, part.name)
        if not part.gaps and part.layout not in {layouts.DENSE, layouts.ANY}:
            return address, None
        pieces = Pieces.of(shape, steps)
        if pieces.count > MOST_PIECES:
            if part.gaps:
                return address, None
            found = f"with strides {list(steps)}, in {pieces.count} pieces of memory"
            wanted = f"at most {MOST_PIECES}: return its .contiguous()"
            raise _wrong(Reason.WRONG_LAYOUT, part.name, found, wanted)
        return address, pieces


_Place = tuple[int, int, int, int, str]  # address, place in the order, slot, end, output


def _reused(places: list[_Place]) -> dict[int, set[str]]:
    """By slot, the outputs that share memory with those of a later call."""
    found: dict[int, set[str]] = {}
    furthest: _Place | None = None
    for place in sorted(places):
        if furthest and place[0] < furthest[3] and place[1] != furthest[1]:
            _, _, slot, _, name = min(place, furthest, key=lambda item: item[1])
            found.setdefault(slot, set()).add(name)
        if furthest is None or place[3] >= furthest[3]:
            furthest = place
    return found


def _backwards(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether a tensor would begin behind its first element, as none of PyTorch's does."""
    return any(extent > 1 and step < 0 for extent, step in zip(shape, steps, strict=True))


def _ranges_of(most: int) -> tuple[int, mmap.mmap]:
    """A file for up to ``most`` ranges."""
    return shared_memory.shared_file(RANGE.size * most, sealed=True)


def returned(targets: object) -> tuple[str, ...]:
    """The outputs among the targets of a call."""
    if isinstance(targets, list):
        return tuple(name for item in targets for name in returned(item))
    return (targets,) if isinstance(targets, str) else ()


class _Part:
    """One of the tensors that a call returns: an output, or one tensor of a list.

    ``offset`` is its place in a slot, in bytes. ``gaps``: the declared strides leave some, which no
    call needs to write.
    """

    def __init__(
        self, argument: Argument, region: Region, shape: tuple[int, ...], offset: int
    ) -> None:
        self.itemsize = BY_CODE[region.code].size
        self.name = argument.name
        self.layout = argument.layout
        self.code = region.code
        self.shape = shape
        wanted = region.strides or layouts.contiguous(region.shape)
        self.strides = wanted[1:] if argument.listed else wanted
        self.offset = region.first + offset
        self.size = layouts.span(shape, self.strides) * self.itemsize
        self.gaps = self.size > prod(shape) * self.itemsize


def _parts(argument: Argument, region: Region, config: Config) -> list[_Part]:
    if not argument.listed:
        return [_Part(argument, region, region.shape, 0)]
    step = layouts.strides(argument, config.dims)[0] * BY_CODE[region.code].size
    count = shapes.shape(argument, config.dims)[0]
    return [_Part(argument, region, region.shape[1:], index * step) for index in range(count)]


def _wrong(reason: Reason, name: str, found: str, wanted: str) -> CandidateFault:
    return diagnosis.fault(reason, f"returned '{name}' {found} instead of {wanted}")


def _misplaced(how: Misplaced, name: str) -> CandidateFault:
    reason, where = _MISPLACED[how]
    return diagnosis.fault(reason, f"returned '{name}' {where}")
