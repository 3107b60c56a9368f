"""The resources of a kernel on a multiprocessor, by the assembler's messages and the code."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from cuda_architectures import WARP, Architecture, resident_warps
from elf import HEADER, SECTION

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for")
_FRAME = tuple(
    re.compile(rf"(\d+) bytes {part}") for part in ("stack frame", "spill stores", "spill loads")
)
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_CODE, _INFORMATION = ".text.", ".nv.info."
_SIZED = 0x04
_THREADS = frozenset({0x05, 0x10})
"""In a kernel's section of information: the form of attributes with a size, and those that name
the threads of a block: the most (``__launch_bounds__``), and the required number."""
_USUAL_THREADS = 256


@dataclass(frozen=True)
class KernelResources:
    """The resources of one kernel on a multiprocessor.

    Registers are of one thread, bytes of shared memory of one block (dynamic ones only where they
    are known), stack bytes of one thread; spills are bytes that are stored and loaded.
    ``occupancy`` is in warps of a multiprocessor, for blocks of ``threads``: those of
    ``__launch_bounds__``, else 256.
    """

    name: str
    arch: str
    registers: int
    shared_bytes: int
    spills: int
    stack_bytes: int
    code_bytes: int
    threads: int
    occupancy: int
    occupancy_most: int
    occupancy_limit: str
    wave: int

    def to_json(self) -> dict[str, Any]:
        """The form in verdicts."""
        return dict(vars(self))


def kernel_resources(
    messages: str, cubin: bytes, arch: Architecture, *, dynamic_shared: int = 0
) -> tuple[KernelResources, ...]:
    """The kernels of one assembly, by name. ``messages`` are those of ``ptxas -v``.

    ``dynamic_shared`` is how many bytes of shared memory launches will ask for.
    """
    sections = dict(_sections(cubin))
    paragraphs = sorted(_paragraphs(messages))
    return tuple(_kernel(name, text, sections, arch, dynamic_shared) for name, text in paragraphs)


def _paragraphs(messages: str) -> Iterator[tuple[str, str]]:
    """Each kernel's name, with its part of the messages."""
    starts = list(_ENTRY.finditer(messages))
    for match, following in zip_longest(starts, starts[1:]):
        yield match.group(1), messages[match.end() : following.start() if following else None]


def _kernel(
    name: str, text: str, sections: dict[str, bytes], arch: Architecture, dynamic_shared: int
) -> KernelResources:
    stack, stores, loads = (_number(pattern, text) for pattern in _FRAME)
    registers, shared = _number(_USED, text), _number(_SHARED, text) + dynamic_shared
    threads = _launch_bounds(sections.get(_INFORMATION + name, b""))
    warps, limit = resident_warps(arch, threads=threads, registers=registers, shared_bytes=shared)
    return KernelResources(
        name=name,
        arch=arch.name,
        registers=registers,
        shared_bytes=shared,
        spills=stores + loads,
        stack_bytes=stack,
        code_bytes=len(sections.get(_CODE + name, b"")),
        threads=threads,
        occupancy=warps,
        occupancy_most=arch.warps,
        occupancy_limit=limit,
        wave=WARP,
    )


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match.group(1)) if match else 0


def _launch_bounds(information: bytes) -> int:
    """The most threads of a block, of ``__launch_bounds__``; the default without it."""
    at = 0
    while at + 4 <= len(information):
        form, attribute, value = struct.unpack_from("<BBH", information, at)
        at += 4
        if form != _SIZED:
            continue
        if attribute in _THREADS:
            x, y, z = struct.unpack_from("<III", information, at)
            return int(x * y * z)
        at += value
    return _USUAL_THREADS


def _sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    """The sections of an ELF64 file, by name."""
    header = HEADER.unpack_from(image)
    offset, count, names_at = header[6], header[12], header[13]
    sections = [SECTION.unpack_from(image, offset + i * SECTION.size) for i in range(count)]
    names = sections[names_at][4]
    for section in sections:
        start = names + section[0]
        name = image[start : image.index(b"\0", start)].decode()
        yield name, image[section[4] : section[4] + section[5]]
