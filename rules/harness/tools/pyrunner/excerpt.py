"""A short account of a candidate's exception: the candidate's own lines, without host paths."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

_FRAMES = 5
_CHARACTERS = 1000


def excerpt(error: BaseException, path: str) -> str:
    """The last frames within the candidate's file, then the exception.

    ::

        softmax.py:12 in softmax: return x / z
        ZeroDivisionError: division by zero
    """
    causes = chain(error)
    frames = [frame for cause in causes for frame in _frames(cause, path)]
    lines = [f"{Path(path).name}:{f.lineno} in {f.name}: {f.line}" for f in frames[-_FRAMES:]]
    what = "".join(traceback.format_exception_only(causes[-1])).strip()[-_CHARACTERS:]
    return _without_host("\n".join([*lines, what]), path)


def chain(error: BaseException) -> list[BaseException]:
    """The exception and its causes, the original cause last."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and cause not in causes:
        causes.append(cause)
    return causes


def _frames(error: BaseException, path: str) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if frame.filename == path]


def _without_host(text: str, path: str) -> str:
    for prefix in (str(Path(path).parent), sys.prefix, sys.base_prefix):
        text = text.replace(prefix + "/", "")
    return text
