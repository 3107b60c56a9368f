"""The entry point of the ``kabuild`` command: it handles signals before large imports."""

from __future__ import annotations

import atexit
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
    except (MemoryError, SystemError):  # as what Python makes of no memory during an import
        os.write(2, b"error: no memory is left to start\n  free some, or raise 'ulimit -v'\n")
        code = _ENVIRONMENT
    except Exception as error:
        from kabuild.cli.missing import text_of

        if not (text := text_of(error)):
            raise
        os.write(2, f"error: {text}\n".encode(errors="backslashreplace"))
        code = _ENVIRONMENT
    _end(code)


def _end(code: int) -> NoReturn:
    """Exit as Python does, but leave it to the kernel to free what the modules have made.

    Python frees it object by object, which takes longer than some commands.
    """
    try:
        if threading := sys.modules.get("threading"):
            threading._shutdown()  # noqa: SLF001 - there is no public name: it waits for threads
        atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for this, either
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        os._exit(say_interrupted())
    except Exception:  # noqa: BLE001 - whatever cannot be written, Python tells it as it ends
        sys.exit(code)
    os._exit(code)
