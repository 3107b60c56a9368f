"""The line of a rule's code that raised an exception."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kabuild.base.errors import Position


def failure_position(error: BaseException, roots: Sequence[Path], file: Path) -> Position:
    """The innermost line below ``roots`` that ``error`` went through; else ``file``."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Position(error.filename, error.lineno)
    found = Position(str(file))
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if any(name.startswith(f"{root}{os.sep}") for root in roots):
            found = Position(name, trace.tb_lineno)
        trace = trace.tb_next
    return found
