"""Kinds of machines, as pins name them: ``linux-x86_64``."""

from __future__ import annotations

import os
import sys

ANY = "any"
"""The machine of files that are for all machines."""

MACHINES = ("linux-aarch64", "linux-x86_64")
"""The machines that wheels and packages are locked for by default."""


def this_machine() -> str:
    """The machine that kabuild runs on."""
    return f"{sys.platform}-{os.uname().machine}"


def architecture(machine: str) -> str:
    """``x86_64`` of ``linux-x86_64``."""
    return machine.partition("-")[2]
