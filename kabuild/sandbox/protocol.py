"""Messages between a spawner, its zygotes and the supervisors: length-prefixed JSON.

Descriptors travel with the first bytes of a message. Self-contained, because a zygote runs
under the Python of a toolchain, where kabuild is not installed.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

_HEADER = struct.Struct(">I")
_MAX_FDS = 8


def send(channel: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one message and copies of ``fds``. Raises ``OSError`` when the peer is gone."""
    body = json.dumps(message).encode()
    socket.send_fds(channel, [_HEADER.pack(len(body))], fds)
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message with its descriptors, or ``None`` when the peer closed its end.

    Raises ``OSError`` when the connection breaks within a message.
    """
    header, fds, _, _ = socket.recv_fds(
        channel, _HEADER.size, _MAX_FDS, flags=socket.MSG_CMSG_CLOEXEC
    )
    if not header:
        return None
    header += _read_exactly(channel, _HEADER.size - len(header))
    (size,) = _HEADER.unpack(header)
    message: dict[str, Any] = json.loads(_read_exactly(channel, size))
    return message, fds


def _read_exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = channel.recv(size - len(data))
        if not part:
            raise ConnectionResetError("connection closed within a message")
        data += part
    return bytes(data)
