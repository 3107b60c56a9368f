"""Messages between the two processes of a Triton runner: one JSON text each."""

from __future__ import annotations

import json
import socket
from typing import Any

MOST_BYTES = 128 << 10


class Gone(Exception):  # noqa: N818 (the other half has ended, which may be in order)
    """The other process has ended."""


class Link:
    """One end of a socket pair that keeps messages apart."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def pair(cls) -> tuple[Link, Link]:
        """Create both ends."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(one), cls(other)

    def send(self, message: list[Any]) -> None:
        """Send a message. Raises ValueError if it is too long or not JSON, and Gone."""
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > MOST_BYTES:
            raise ValueError(f"a request has {len(data)} bytes, more than {MOST_BYTES}")
        try:
            self._end.send(data)
        except OSError:
            raise Gone from None

    def receive(self) -> list[Any]:
        """Wait for the next message. Raises ValueError unless it is a non-empty list, and Gone."""
        try:
            data = self._end.recv(MOST_BYTES + 1)
        except OSError:
            raise Gone from None
        if not data:
            raise Gone
        message = json.loads(data)
        if not isinstance(message, list) or not message:
            raise ValueError("not a message")
        return message

    def is_quiet(self) -> bool:
        """Whether no message is waiting."""
        try:
            return not self._end.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except OSError:
            return True

    def close(self) -> None:
        """Close this end."""
        self._end.close()
