"""Where the ``kabuild`` command begins: signals are heeded before anything large is imported."""

from __future__ import annotations

import sys

from kabuild.cli.interrupts import heed_signals, say_interrupted

TYPE_CHECKING = False  # as in kabuild/__init__.py
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with one of ``ExitCode``."""
    heed_signals()
    try:
        from kabuild.cli.program import run  # most of the time until a command begins

        code = run()
    except KeyboardInterrupt:
        code = say_interrupted()
    sys.exit(code)
