"""Reads MessagePack, the encoding of a code object's metadata."""

from __future__ import annotations

import struct
from typing import Any

_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# Texts, binaries, lists and maps, by the size in bytes of the length that follows.
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BINARIES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(data: bytes) -> Any:
    """The value at the beginning of ``data``. Raises ValueError if it is not MessagePack."""
    try:
        return _Reader(data).value()
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise ValueError(f"malformed MessagePack: {error}") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self) -> Any:
        kind = self._number(">B")
        if kind < 0x80:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind < 0xC0:
            return self._short(kind)
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        return self._long(kind)

    def _short(self, kind: int) -> Any:
        """The kinds that hold their length."""
        if kind < 0x90:
            return self._map(kind & 0x0F)
        if kind < 0xA0:
            return self._list(kind & 0x0F)
        return self._take(kind & 0x1F).decode()

    def _long(self, kind: int) -> Any:
        if kind in _TEXTS:
            return self._take(self._length(_TEXTS[kind])).decode()
        if kind in _BINARIES:
            return self._take(self._length(_BINARIES[kind]))
        if kind in _LISTS:
            return self._list(self._length(_LISTS[kind]))
        if kind in _MAPS:
            return self._map(self._length(_MAPS[kind]))
        raise ValueError(f"malformed MessagePack: kind {kind:#x}")

    def _list(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def _map(self, count: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(count)}

    def _length(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise IndexError("it ends early")
        self._at += size
        return self._data[self._at - size : self._at]

    def _number(self, layout: str) -> Any:
        (value,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
        return value
