"""Entries of the action cache with their seal, in one file.

The seal is the last field of the ``ActionResult`` message, with a number that REAPI does not use.
Other readers, such as Bazel, skip it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from kabuild.base.canonical import bytes_field
from kabuild.base.listing import counted
from kabuild.base.seal import SIZE, Seal, Trust

KIND = "result"
MOST_BYTES = 16 << 20
"""The largest entry, in bytes: room for 100,000 output files. A larger one is damaged."""

_FIELD = 2000
_HEAD = bytes_field(_FIELD, bytes(SIZE))[:-SIZE]


def sealed(message: bytes, key: str, seal: Seal) -> bytes:
    """The entry of an ``ActionResult``, filed under the hash ``key``."""
    return message + _HEAD + seal.of(KIND, key, message)


def parts(entry: bytes) -> tuple[bytes, bytes]:
    """The message of an entry and its seal, which may be empty."""
    cut = len(entry) - SIZE
    if cut < len(_HEAD) or entry[cut - len(_HEAD) : cut] != _HEAD:
        return entry, b""
    return entry[: cut - len(_HEAD)], entry[cut:]


def trust_of(entry: bytes, key: str, seal: Seal) -> Trust:
    """Whether this user sealed the entry that is filed under the hash ``key``."""
    message, found = parts(entry)
    return seal.check(KIND, key, message, found)


class Distrusted:
    """Counts untrusted results, to report them once."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._keys: dict[str, Trust] = {}

    def __call__(self, key: str, trust: Trust) -> None:
        """Count the result under the hash ``key``, once."""
        with self._guard:
            self._keys[key] = trust

    def tell(self, warn: Callable[[str], None]) -> None:
        """Report how many there are, if any; then count anew."""
        with self._guard:
            found, self._keys = [*self._keys.values()], {}
        if found:
            what = ", ".join(
                f"{found.count(trust)} {trust.value}" for trust in Trust if trust in found
            )
            noun = counted(len(found), "result")
            warn(f"{noun} in the store did not count: not sealed by you ({what})")
