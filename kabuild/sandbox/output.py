"""What a process writes to stdout or stderr, kept within bounds."""

from __future__ import annotations


class BoundedOutput:
    """The first and the last half of ``limit`` bytes of a stream, with a marker between them.

    Compilers report the most important things first, crashes report them last.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head_size = limit - limit // 2
        self._tail_size = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[max(0, room) :]
        if len(self._tail) > 2 * self._limit:
            self._trim()

    def value(self) -> bytes:
        """What was kept: all of it when it fits the limit."""
        self._trim()
        omitted = self.total - len(self._head) - len(self._tail)
        marker = b"\n[... %d bytes omitted ...]\n" % omitted if omitted else b""
        return bytes(self._head) + marker + bytes(self._tail)

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_size)]
