"""Messages between a spawner, its zygotes and the supervisors: length-prefixed JSON.

Descriptors travel with the first bytes of a message. Self-contained, because a zygote runs
under the Python of a toolchain, where kabuild is not installed.
"""

from __future__ import annotations

import json
import socket
import struct
from array import array
from collections.abc import Sequence
from typing import Any

_HEADER = struct.Struct(">I")
_MAX_FDS = 8
_ANCILLARY_BYTES = socket.CMSG_SPACE(_MAX_FDS * array("i").itemsize)


def send(channel: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one message and copies of ``fds``. Raises ``OSError`` when the peer is gone."""
    body = json.dumps(message).encode()
    socket.send_fds(channel, [_HEADER.pack(len(body))], fds)
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message with its descriptors, or ``None`` when the peer closed its end.

    Raises ``OSError`` when the connection breaks within a message.
    """
    header, ancillary, _, _ = channel.recvmsg(
        _HEADER.size, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
    )
    if not header:
        return None
    fds = array("i", b"".join(data for _, _, data in ancillary)).tolist()
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
