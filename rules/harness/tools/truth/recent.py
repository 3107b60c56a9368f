"""A store, limited in bytes, of values that will be needed once more."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The first values, by key, that fit into ``most_bytes``; until ``clear``, they stay.

    Two sides ask for the same values in the same order. If they do not all fit, the first ones are
    found again, whereas the most recently used ones would always have made room just before.
    """

    def __init__(self, most_bytes: int = 0) -> None:
        self.most_bytes = most_bytes
        self._held: dict[Hashable, Value] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> Value | None:
        """The value of a key; None if it is not held."""
        return self._held.get(key)

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Hold a value of ``size`` bytes, if there is room for it."""
        if key in self._held or self._bytes + size > self.most_bytes:
            return
        self._bytes += size
        self._held[key] = value

    def clear(self) -> None:
        """Drop all values."""
        self._held.clear()
        self._bytes = 0
