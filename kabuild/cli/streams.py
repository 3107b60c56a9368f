"""The standard streams, made robust: the caller may have closed or filled them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TextIO

import click

from kabuild.base.errors import InfraError, Reason
from kabuild.base.printing import guarded


class Output(io.FileIO):
    """Stdout. Once its reader has closed it, output is dropped and the build goes on.

    ``| head`` must not change a verdict. If a write fails for any other reason, the first one
    raises InfraError.
    """

    is_lost = False

    def write(self, data: object) -> int:
        """Write all that fits; the number of bytes."""
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        if self.is_lost:
            return size
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except OSError as error:
            self.is_lost = True
            if error.errno == errno.EPIPE:
                return size
            what = f"stdout cannot be written: {error.strerror}"
            raise InfraError(Reason.OUTPUT_UNWRITABLE, what) from None


class Chatter(Output):
    """Stderr. Failed writes are dropped: there is nowhere to report them."""

    def write(self, data: object) -> int:
        """Write all that fits; the number of bytes."""
        with contextlib.suppress(InfraError):
            return super().write(data)
        return memoryview(data).nbytes  # type: ignore[arg-type]


class Guarded(io.TextIOWrapper):
    """A stream that makes foreign text safe; see ``base.printing``."""

    _is_at_start = True

    def write(self, text: str) -> int:
        """Write ``text``, made safe; its length."""
        super().write(guarded(text, terminal=self.isatty(), at_start=self._is_at_start))
        line = text.rpartition("\n")[2]
        blank = not line or line.isspace()
        self._is_at_start = blank and (self._is_at_start or "\n" in text)
        return len(text)


def mend() -> None:
    """Make stdout and stderr accept any text, and survive the end of their reader.

    A closed one is opened as ``/dev/null``, so that no other file gets its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = _wrapped(Output(1, "wb", closefd=False), sys.stdout)
    sys.stderr = _wrapped(Chatter(2, "wb", closefd=False), sys.stderr, line_buffering=True)


def reader_left() -> bool:
    """Whether the reader of stdout is gone."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, Output) and raw.is_lost


def _wrapped(raw: Output, before: TextIO, *, line_buffering: bool = False) -> io.TextIOWrapper:
    """``before``, or None if the stream was closed, wrapped around our file."""
    return Guarded(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=line_buffering or raw.isatty(),
    )


def has_colours(descriptor: int) -> bool:
    """Whether it is a terminal with colours, and the user has not turned them off."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return os.isatty(descriptor) and not refused


def in_colour(word: str, colour: str) -> str:
    """A word for stderr, in a colour if stderr has them."""
    return click.style(word, fg=colour) if has_colours(2) else word
