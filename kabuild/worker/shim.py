#!/usr/bin/python3 -ISE
"""What an engine's worker starts: hands its directory on to the node's kabuild, and waits.

It stands alone, and is printed by ``kabuild worker shim``. The node answers with messages: one for
each file to leave below the working directory, which comes open, and one for the end.
"""

import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import BinaryIO

SOCKET = "/run/kabuild/worker.sock"
NO_NODE, NODE_DIED = 69, 75
LARGEST = 1 << 17


def main() -> int:
    """Hand the directory on; the exit code is the node's, or says that there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as node:
        try:
            node.connect(SOCKET)
            socket.send_fds(node, [b"run"], [os.open("..", os.O_RDONLY | os.O_DIRECTORY)])
        except OSError as error:
            tell(f"no node serves at {SOCKET}: {error.strerror}")
            return NO_NODE
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(node, LARGEST, 1)
            except OSError:
                data, fds = b"", []
            if not data:
                tell("the node ended while the action ran")
                return NODE_DIED
            said = json.loads(data)
            if "file" not in said:
                break
            with os.fdopen(fds[0], "rb") as source:
                keep(source, Path(said["file"]), 0o755 if said["executable"] else 0o644)
    if said["text"]:
        tell(said["text"])
    return int(said["code"])


def tell(text: str) -> None:
    """Write a line to the engine's log."""
    sys.stderr.write(f"kabuild: {text}\n")


def keep(source: BinaryIO, path: Path, mode: int) -> None:
    """Copy an output to where the engine looks for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        shutil.copyfileobj(source, target)
    path.chmod(mode)


if __name__ == "__main__":
    sys.exit(main())
