"""Kinds of machines, as pins name them: ``linux-x86_64``."""

from __future__ import annotations

import os
import sys

ANY = "any"
"""Where a file serves all machines."""

MACHINES = ("linux-aarch64", "linux-x86_64")
"""What wheels and packages are locked for where a declaration does not say."""


def this_machine() -> str:
    """What kabuild runs on."""
    return f"{sys.platform}-{os.uname().machine}"


def architecture(machine: str) -> str:
    """``x86_64`` of ``linux-x86_64``."""
    return machine.partition("-")[2]
