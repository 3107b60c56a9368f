"""Reads the kernels' resources from a code object for AMD's processors."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from architectures import Architecture, occupancy
from elf import HEADER, SECTION, SYMBOL
from messagepack import unpack

_NOTE = 7
_SYMBOL_TABLES = (2, 11)
_METADATA = 32
"""The type of AMD's note with the metadata, NT_AMDGPU_METADATA."""


@dataclass(frozen=True)
class KernelResources:
    """The resources of one kernel on a processor.

    Registers are of one thread (of a wave, for scalar ones), bytes of shared memory of one block,
    stack bytes of one thread; spills are registers. ``occupancy`` is in waves of a SIMD unit.
    """

    name: str
    arch: str
    registers: int
    scalar_registers: int
    accumulation_registers: int
    shared_bytes: int
    spills: int
    stack_bytes: int
    code_bytes: int
    occupancy: int
    occupancy_most: int
    occupancy_limit: str
    wave: int

    def to_json(self) -> dict[str, Any]:
        """The form in verdicts."""
        return dict(vars(self))


def kernel_resources(
    image: bytes, architecture: Architecture, *, dynamic_shared: int = 0
) -> tuple[KernelResources, ...]:
    """The kernels of a code object, by name. Raises ValueError for other bytes.

    ``dynamic_shared`` is what a launch adds to the bytes of shared memory that a kernel declares.
    """
    sizes = dict(_function_sizes(image))
    metadata = _metadata(image)
    described = metadata.get("amdhsa.kernels", [])
    kernels = [_kernel(entry, sizes, architecture, dynamic_shared) for entry in described]
    return tuple(sorted(kernels, key=lambda kernel: kernel.name))


def _kernel(
    entry: Mapping[str, Any], sizes: Mapping[str, int], architecture: Architecture, dynamic: int
) -> KernelResources:
    vectors, scalars = entry[".vgpr_count"], entry[".sgpr_count"]
    shared = entry[".group_segment_fixed_size"] + dynamic
    held = occupancy(
        architecture,
        vectors=vectors,
        scalars=scalars,
        shared=shared,
        block=entry[".max_flat_workgroup_size"],
    )
    return KernelResources(
        name=entry[".name"],
        arch=architecture.name,
        registers=vectors,
        scalar_registers=scalars,
        accumulation_registers=entry.get(".agpr_count", 0),
        shared_bytes=shared,
        spills=entry.get(".vgpr_spill_count", 0) + entry.get(".sgpr_spill_count", 0),
        stack_bytes=entry[".private_segment_fixed_size"],
        code_bytes=sizes.get(entry[".name"], 0),
        occupancy=held.waves,
        occupancy_most=held.most,
        occupancy_limit=held.limit,
        wave=entry[".wavefront_size"],
    )


def _metadata(image: bytes) -> Mapping[str, Any]:
    for kind, name, description in _notes(image):
        if kind == _METADATA and name == b"AMDGPU":
            value = unpack(description)
            if isinstance(value, dict):
                return value
    raise ValueError("the code object has no metadata")


def _notes(image: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Type, owner and content of the notes of an ELF file."""
    for section in _sections(image):
        if section[1] != _NOTE:
            continue
        at, end = section[4], section[4] + section[5]
        while at + 12 <= end:
            name_size, size, kind = struct.unpack_from("<III", image, at)
            at += 12
            name = image[at : at + name_size].rstrip(b"\0")
            at += name_size + -name_size % 4
            yield kind, name, image[at : at + size]
            at += size + -size % 4


def _function_sizes(image: bytes) -> Iterator[tuple[str, int]]:
    sections = _sections(image)
    for section in sections:
        if section[1] not in _SYMBOL_TABLES:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], SYMBOL.size):
            name, info, _other, _index, _value, size = SYMBOL.unpack_from(image, at)
            if info & 15 == 2:
                start = strings + name
                yield image[start : image.index(b"\0", start)].decode(), size


def _sections(image: bytes) -> list[tuple[int, ...]]:
    if image[:4] != b"\x7fELF":
        raise ValueError("no ELF file")
    header = HEADER.unpack_from(image)
    offset, count = header[6], header[12]
    return [SECTION.unpack_from(image, offset + i * SECTION.size) for i in range(count)]
