"""Where the ``kabuild`` command begins: signals are heeded before anything large is imported."""

from __future__ import annotations

import os
import sys

from kabuild.cli.interrupts import heed_signals, say_interrupted

TYPE_CHECKING = False  # as in kabuild/__init__.py
if TYPE_CHECKING:
    from typing import NoReturn


_ENVIRONMENT = 36
"""``ExitCode.ENVIRONMENT``, whose module may not be imported yet."""


def main() -> NoReturn:
    """Run the command line and exit with one of ``ExitCode``."""
    heed_signals()
    try:
        from kabuild.cli.program import run  # most of the time until a command begins

        code = run()
    except KeyboardInterrupt:
        # At once: where the signal came while Python ran a text, as dataclasses do, it would end
        # itself by that signal, whatever the exit code.
        os._exit(say_interrupted())
    except ImportError as error:
        from kabuild.cli.missing import text_of

        if not (text := text_of(error)):
            raise
        os.write(2, f"error: {text}\n".encode())
        code = _ENVIRONMENT
    except (MemoryError, SystemError):  # as what Python makes of no memory during an import
        os.write(2, b"error: no memory is left to start\n  free some, or raise 'ulimit -v'\n")
        code = _ENVIRONMENT
    sys.exit(code)
