"""The text of the program that engines start."""

from __future__ import annotations

from pathlib import Path

from kabuild.worker import shim

SOCKET = shim.SOCKET


def shim_text(socket: str) -> str:
    """The program for a node that serves at ``socket``."""
    text = Path(shim.__file__).read_text()
    return text.replace(f'"{SOCKET}"', repr(socket), 1)
