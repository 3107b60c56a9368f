"""What the program that starts kabuild may have left it, and kabuild cannot work with."""

from __future__ import annotations

import os
import signal

_OTHERS = 0o077
_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


def settle() -> None:
    """Reset this process where it could not use its own files, or wait for its own children.

    A umask may keep others out, but not the owner. Where SIGCHLD is ignored, Linux forgets how
    children have ended; blocked signals would be heeded by nobody.
    """
    os.umask(os.umask(_OTHERS) & _OTHERS)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
