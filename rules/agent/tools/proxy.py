"""The way out for an agent with the network policy ``proxy``: HTTP CONNECT, to listed hosts only.

The listening socket is in the agent's own network; this process is in that of the machine. So the
agent reaches what is listed and nothing else, whatever it tries. What passes through is the agent's
own encryption: nobody looks inside.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Collection
from typing import NoReturn

_HEAD_BYTES = 16 << 10
_CONNECT_SECONDS = 30.0
_READ_BYTES = 1 << 16
_MOST_CONNECTIONS = 64
_MOST_DRAINED = 1 << 20


def start(listening: socket.socket, hosts: Collection[str]) -> int:
    """Fork the proxy, which connects to ``hosts`` (HOST:PORT each); its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            serve(listening, hosts)
        finally:
            os._exit(1)
    return pid


def serve(listening: socket.socket, hosts: Collection[str]) -> NoReturn:
    """Serve for ever, each connection in a thread."""
    free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
    while True:
        connection, _ = listening.accept()
        free.acquire()

        def tunnel(near: socket.socket = connection) -> None:
            with near, contextlib.suppress(OSError):
                _tunnel(near, hosts)
            free.release()

        threading.Thread(target=tunnel, daemon=True).start()


def _tunnel(near: socket.socket, hosts: Collection[str]) -> None:
    near.settimeout(_CONNECT_SECONDS)
    target = _target(near)
    if target is None:
        _refuse(near, b"405 Only CONNECT")
        return
    if target.lower() not in {host.lower() for host in hosts}:
        _refuse(near, b"403 Not a listed host")
        return
    host, _, port = target.rpartition(":")
    try:
        far = socket.create_connection((host, int(port)), _CONNECT_SECONDS)
    except OSError:
        _refuse(near, b"502 Cannot connect")
        return
    with far:
        near.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        for one in (near, far):
            one.settimeout(None)
        _relay(near, far)


def _target(near: socket.socket) -> str | None:
    """HOST:PORT of a CONNECT request, whose head is read to its end; None for anything else."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        part = near.recv(1)  # not a byte of what the tunnel will carry
        head += part
        if not part or len(head) > _HEAD_BYTES:
            return None
    words = head.split(b"\r\n")[0].decode(errors="replace").split(" ")
    return words[1] if len(words) == 3 and words[0] == "CONNECT" else None


def _refuse(near: socket.socket, status: bytes) -> None:
    """Answer, and read what is still under way: closing before that would destroy the answer."""
    near.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")
    near.shutdown(socket.SHUT_WR)
    for _ in range(_MOST_DRAINED // _READ_BYTES):
        if not near.recv(_READ_BYTES):
            return


def _relay(near: socket.socket, far: socket.socket) -> None:
    """Carry bytes both ways until one side is done."""
    poll = select.poll()
    others = {near.fileno(): (near, far), far.fileno(): (far, near)}
    for fd in others:
        poll.register(fd, select.POLLIN)
    while others:
        for fd, _ in poll.poll():
            source, target = others[fd]
            data = source.recv(_READ_BYTES)
            if data:
                target.sendall(data)
                continue
            poll.unregister(fd)
            del others[fd]
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)
