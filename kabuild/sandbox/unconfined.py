"""Runs the user's own programs without a sandbox; never anything hostile."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Sequence
from pathlib import Path

TIMEOUT = 120.0
"""Seconds; long enough for a person to type a passphrase."""


def run_unconfined(
    argv: Sequence[str], *, stdin: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program with the user's environment and rights, without a shell.

    ``stdin`` is a file for it to read. Raises ``OSError``, also when it takes too long.
    """
    with (stdin or Path("/dev/null")).open("rb") as source:
        try:
            return subprocess.run(
                list(argv),
                stdin=source,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            what = f"does not end within {TIMEOUT:.0f} s"
            raise OSError(errno.ETIMEDOUT, what, argv[0]) from None
