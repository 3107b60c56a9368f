"""Sizes in bytes, as people write and read them: ``20G``, ``37.4 MB``."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,12}(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """The bytes that ``20G`` or ``500M`` means; units are powers of 1024.

    Raises ``ValueError`` with words for people.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a valid size; write 20G or 500M")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def show_size(size: int) -> str:
    """``20.0 GB``, in the unit of ``parse_size`` that gives the shortest number."""
    for unit, name in (("T", "TB"), ("G", "GB"), ("M", "MB"), ("K", "kB")):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.1f} {name}"
    return f"{size} B"
