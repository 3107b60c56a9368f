"""The user's own programs, which no sandbox holds: nothing hostile is ever run here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

TIMEOUT = 120.0
"""Seconds; long enough for a person to type a passphrase."""


def run_unconfined(
    argv: Sequence[str], *, stdin: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program with the user's environment and rights, without a shell.

    ``stdin`` is a file for it to read. Raises ``OSError``, ``subprocess.TimeoutExpired``.
    """
    with (stdin or Path("/dev/null")).open("rb") as source:
        return subprocess.run(
            list(argv),
            stdin=source,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
