"""A cache, limited in bytes, of values that may be needed again soon."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")
PIECES = 256
"""A value may take at most 1 / PIECES of the memory: larger ones would leave too little room."""


class Recent(Generic[Value]):
    """The most recently used values, by key, that fit into ``most_bytes``."""

    def __init__(self, most_bytes: int = 0) -> None:
        self.most_bytes = most_bytes
        self._held: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> Value | None:
        """The value of a key; None if it is not held."""
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Hold a value of ``size`` bytes; drop the least recently used ones to make room."""
        if size * PIECES > self.most_bytes:
            return
        self._bytes += size - self._held.pop(key, (None, 0))[1]
        self._held[key] = value, size
        while self._bytes > self.most_bytes:
            _, (_, freed) = self._held.popitem(last=False)
            self._bytes -= freed

    def clear(self) -> None:
        """Drop all values."""
        self._held.clear()
        self._bytes = 0
