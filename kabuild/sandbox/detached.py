"""Starts programs of kabuild's own that outlive it: upkeep, never a candidate."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_STARTED: list[subprocess.Popen[bytes]] = []
"""Those of this process, so that those that ended can be reaped."""


def start_detached(argv: Sequence[str], *, directory: Path, env: dict[str, str]) -> None:
    """Start a program in its own session, without input and output. Raises ``OSError``."""
    _STARTED[:] = [process for process in _STARTED if process.poll() is None]
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=directory,
        env={**os.environ, **env},
        start_new_session=True,
    )
    _STARTED.append(process)
