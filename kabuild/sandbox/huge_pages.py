"""Moves this process's memory to huge pages, so that it forks faster.

A fork copies the page table, and its end takes that apart again. A process that has torch imported
has 150 MB in pages of 4 KiB, and every sandbox takes three forks, as does every runner in it. What
a fork allocates itself lies in pages of the size that they would have had anyway.

Self-contained, because it runs inside a zygote.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

_POLICY = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_SIZE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
_MADV_COLLAPSE = 25  # from Linux 6.1 on
_HEAP = b"[heap]"


def use_huge_pages(policy: Path = _POLICY, size: Path = _SIZE) -> None:
    """Move private memory to huge pages; nothing if the kernel has none or its user wants none."""
    try:
        if "[never]" in policy.read_text():
            return
        step = int(size.read_text())
    except (OSError, ValueError):
        return
    libc = ctypes.CDLL(None)
    for start, end in _anonymous_mappings():
        first, last = -(-start // step) * step, end // step * step
        if first < last:  # a refusal leaves the pages as they are
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_COLLAPSE)


def _anonymous_mappings() -> Iterator[tuple[int, int]]:
    """Start and end of the writable private mappings without a file."""
    lines = Path("/proc/self/maps").read_bytes().split(b"\n")  # a file's name may have any others
    for line in filter(None, lines):
        addresses, mode, _, _, inode, *name = line.split(maxsplit=5)
        if mode == b"rw-p" and inode == b"0" and name in ([], [_HEAP]):
            start, end = addresses.split(b"-")
            yield int(start, 16), int(end, 16)
