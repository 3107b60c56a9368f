"""The shared buffers of a config: the judge's memory, lent to a runner.

Each arena is one piece of memory of fixed size, divided into equal slots, one per call
of a batch. Within a slot every tensor has its own pages:

    inputs    gap page | data, pushed to the end of its last page
    outputs   gap page | guard page | data, from the start of a page | guard to the page's
              end and one page more

Gap pages are unused. The native runner unmaps them, so that a wild access faults. Where memory
cannot be unmapped in such pages, as on a device, the gap before an output is a guard too. Guards
hold random bytes that the judge compares after each batch. A sealed input arena cannot be
mapped writable by any other process, whatever it does with the descriptor.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import torch
from gpu import look
from gpu.driver import accelerator
from terms.dtypes import BY_CODE
from torch import Tensor

from runners.control_block import Region
from runners.shared_memory import Medium

_NOTHING = 0xFF  # fills memory with NaN, which is neither a valid index nor a correct result
_WORD = 8  # bytes
_ALIGNMENT = 256  # of an input's first byte, as device allocators align it


class GuardDamage(Exception):  # noqa: N818 (what the candidate did, no error of ours)
    """A write outside an output.

    Attributes:
        slot: the slot with the damaged guard.
        offset: of the first damaged byte: negative before the tensor, else past its end.
    """

    def __init__(self, name: str, slot: int, offset: int) -> None:
        if offset < 0:
            where = f"{-offset} bytes before the start"
        else:
            where = f"{offset} bytes past the end" if offset else "just past the end"
        super().__init__(f"a write {where} of '{name}'")
        self.name = name
        self.slot = slot
        self.offset = offset


class Arena:
    """Shared memory of ``slots`` equal slots.

    Attributes:
        stride: bytes of a slot.
        page: the alignment of tensors.
        size: total bytes, with at least one gap page behind the last slot.
    """

    def __init__(
        self, regions: Sequence[Region], stride: int, slots: int, medium: Medium, *, sealed: bool
    ) -> None:
        self.regions = tuple(regions)
        self.stride = stride
        self.slots = slots
        self.page = medium.page
        self._memory = medium.allocate(stride * slots + medium.page, sealed)
        self.size = self._memory.size
        self._grid = self._memory.flat()[: stride * slots].view(slots, stride)
        self._staged: Tensor | None = None

    @property
    def fd(self) -> int:
        """The descriptor of the memory, for the runner."""
        return self._memory.fd

    def close(self) -> None:
        """Release the descriptor; the memory is freed with the last mapping."""
        self._memory.close()

    def write(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """Copy one call's tensors into a slot, as far as the arena has regions for them.

        Raises ValueError for a tensor of another shape or dtype.
        """
        for region in self.filled:
            self._bytes(region)[slot].copy_(_packed(region, tensors))

    @property
    def filled(self) -> tuple[Region, ...]:
        """The regions that have contents before a call."""
        return self.regions

    def stage(self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]]) -> None:
        """Clear the slots, and prepare the next contents as one piece."""
        if self._staged is None:
            self._staged = torch.empty_like(self._grid)
        self._clear()
        for slot, tensors in zip(order, inputs, strict=True):
            for region in self.filled:
                staged = self._staged[slot, region.first : region.first + region.size]
                staged.copy_(_packed(region, tensors))

    def _clear(self) -> None:
        for region in self.filled:
            self._bytes(region).fill_(_NOTHING)

    def _bytes(self, region: Region) -> Tensor:
        """The bytes of a tensor in every slot: uint8 [slots, size]."""
        return self._grid[:, region.first : region.first + region.size]


class InputArena(Arena):
    """The inputs of all slots. Sealed, unless the runner's language cannot map it read-only."""

    def __init__(
        self, regions: Sequence[Region], slots: int, medium: Medium, *, sealed: bool
    ) -> None:
        placed, stride = _place_inputs(regions, medium.page)
        super().__init__(placed, stride, slots, medium, sealed=sealed)

    def _clear(self) -> None:
        self._grid.fill_(_NOTHING)

    def deliver(self) -> None:
        """Start the copy of the staged contents; it may still be running on return."""
        assert self._staged is not None
        self._grid.copy_(self._staged)

    def altered(self, order: Sequence[int]) -> str | None:
        """``mutated`` for everything that was delivered, with one comparison for each input."""
        if not order:
            return None
        assert self._staged is not None
        here = slice(None) if len(order) == self.slots else torch.tensor(order)
        for region in self.regions:
            span = slice(region.first, region.first + region.size)
            if not _equal(self._grid[here, span], self._staged[here, span]):
                return region.name
        return None

    def mutated(self, slot: int, tensors: Mapping[str, Tensor]) -> str | None:
        """The name of an input that no longer holds what was written into it."""
        for region in self.regions:
            if not _equal(self._bytes(region)[slot], _packed(region, tensors)):
                return region.name
        return None


class OutputArena(Arena):
    """The outputs of all slots, poisoned, between guards.

    Those that are ``updated`` hold inputs instead, which a call modifies.
    """

    def __init__(
        self,
        regions: Sequence[Region],
        slots: int,
        medium: Medium,
        updated: Collection[str] = (),
    ) -> None:
        self._updated = frozenset(updated)
        placed, stride = _place_outputs(regions, medium.page)
        super().__init__(placed, stride, slots, medium, sealed=False)
        self._lead = medium.lead * medium.page
        pattern = torch.frombuffer(bytearray(os.urandom(2 * medium.page)), dtype=torch.uint8)
        self._pattern = pattern.to(self._grid.device)
        self._taken: Tensor | None = None
        for region in self.regions:
            for start, end in self._guards(region):
                self._grid[:, start:end] = self._pattern[: end - start]

    @property
    def filled(self) -> tuple[Region, ...]:
        """The regions that have contents before a call."""
        return tuple(region for region in self.regions if region.name in self._updated)

    def deliver(self) -> None:
        """Start the copy of the staged contents; it may still be running on return."""
        for region in self.filled:
            assert self._staged is not None
            span = slice(region.first, region.first + region.size)
            self._grid[:, span].copy_(self._staged[:, span])

    def poison(self) -> None:
        """Overwrite every output with its dtype's poison."""
        for region in self.regions:
            dtype = BY_CODE[region.code]
            if region.size and region.name not in self._updated:
                bits = self._bytes(region).view(getattr(torch, dtype.bits_name))
                bits.fill_(dtype.poison)

    def places(self, count: int) -> list[int]:
        """Offsets in a slot to look at: the ends of outputs, then random places."""
        written = [region for region in self.regions if region.size >= look.WIDTH]
        if not written:
            return []
        ends = [region.first + region.size - look.WIDTH for region in written]
        picked = random.SystemRandom().choices(
            written, [region.size for region in written], k=max(0, count - len(ends))
        )
        anywhere = [
            region.first + random.SystemRandom().randrange(region.size - look.WIDTH + 1)
            for region in picked
        ]
        return [*ends, *anywhere][:count]

    def look_at(self, places: Sequence[int]) -> look.Look:
        """A quick look at these bytes of every slot, to be taken while the runner still runs."""
        return look.Look(self._grid, places)

    def agrees(self, seen: look.Look) -> bool:
        """Whether the bytes seen then equal those that ``take`` copied."""
        assert self._taken is not None
        return seen.agrees(self._taken)

    def make_room(self) -> None:
        """Allocate memory for ``take`` in advance, because ``take`` runs under a clock."""
        self._taken = torch.empty_like(self._grid)

    def take(self) -> None:
        """Copy the current contents, and wait until the copy is done."""
        assert self._taken is not None
        self._taken.copy_(self._grid)
        accelerator().synchronize()

    def changed(self) -> bool:
        """Whether anything was written since ``take``."""
        assert self._taken is not None
        return not torch.equal(self._grid.view(torch.int64), self._taken.view(torch.int64))

    def read(
        self, slot: int, found: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    ) -> dict[str, Tensor]:
        """One call's outputs: as ``take`` copied them, else copied now.

        ``found`` has the strides of outputs whose layout differs from the declared one.
        """
        return {
            region.name: self._tensor(region, slot, found.get(region.name, region.strides))
            for region in self.regions
        }

    def check_guards(self) -> None:
        """Raise GuardDamage for the first guard that changed."""
        for region in self.regions:
            for start, end in self._guards(region):
                wrong = self._grid[:, start:end] != self._pattern[: end - start]
                if bool(wrong.any()):
                    slot, column = (int(index) for index in wrong.nonzero()[0])
                    past = start + column - region.first
                    offset = past if past < 0 else past - region.size
                    raise GuardDamage(region.name, slot, offset)

    def _tensor(self, region: Region, slot: int, strides: tuple[int, ...]) -> Tensor:
        dtype: torch.dtype = getattr(torch, BY_CODE[region.code].torch_name)
        end = region.first + region.size
        if self._taken is not None:
            flat = self._taken[slot, region.first : end].view(dtype)
        else:
            flat = self._bytes(region)[slot].clone().view(dtype)
        if strides and region.size:
            return flat.as_strided(region.shape, strides).contiguous()
        return flat.view(region.shape)

    def _guards(self, region: Region) -> tuple[tuple[int, int], tuple[int, int]]:
        """Bounds within a slot of the guards before and after an output."""
        end = region.first + region.size
        behind = region.first + _up(region.size, self.page) + self.page
        return (region.first - self._lead, region.first), (end, behind)


def _place_inputs(regions: Sequence[Region], page: int) -> tuple[list[Region], int]:
    cursor = 0
    placed = []
    for region in regions:
        cursor += page + _up(region.size, page)
        first = (cursor - region.size) // _ALIGNMENT * _ALIGNMENT
        placed.append(_at(region, first))
    return placed, max(cursor, page)


def _place_outputs(regions: Sequence[Region], page: int) -> tuple[list[Region], int]:
    cursor = 0
    placed = []
    for region in regions:
        cursor += 2 * page
        placed.append(_at(region, cursor))
        cursor += _up(region.size, page) + page
    return placed, max(cursor, page)


def _at(region: Region, first: int) -> Region:
    return replace(region, first=first)


def _up(size: int, page: int) -> int:
    return -(-size // page) * page


def _checked(region: Region, tensors: Mapping[str, Tensor]) -> Tensor:
    tensor = tensors.get(region.name)
    expected = BY_CODE[region.code].torch_name
    if tensor is None:
        raise ValueError(f"input '{region.name}' is missing")
    if tuple(tensor.shape) != region.shape or tensor.dtype != getattr(torch, expected):
        raise ValueError(
            f"the input '{region.name}' is {tensor.dtype} {tuple(tensor.shape)}"
            f" and not {expected} {region.shape}"
        )
    return tensor


def _packed(region: Region, tensors: Mapping[str, Tensor]) -> Tensor:
    """The bytes of a tensor as they lie in memory, from its first element to its last."""
    tensor = _checked(region, tensors)
    if not region.strides or not region.size:
        return _flat_bytes(tensor)
    flat = torch.full((region.size,), _NOTHING, dtype=torch.uint8, device=tensor.device)
    once = [slice(0, 1) if step == 0 else slice(None) for step in region.strides]
    part = tensor[tuple(once)]
    flat.view(tensor.dtype).as_strided(part.shape, region.strides).copy_(part)
    return flat


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether bytes are equal, compared eight at a time where they lie so."""
    if all(map(_is_of_words, (one, other))):
        one, other = one.view(torch.int64), other.view(torch.int64)
    return torch.equal(one, other)


def _is_of_words(tensor: Tensor) -> bool:
    places = tensor.shape[-1], tensor.storage_offset(), *tensor.stride()[:-1]
    return tensor.stride(-1) == 1 and all(place % _WORD == 0 for place in places)


def _flat_bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().view(-1).view(torch.uint8)
