"""The types of flags: every number is bounded, every file is checked before anything runs."""

from __future__ import annotations

import errno
import math
import os
import re
from pathlib import Path
from typing import Any

import click

from kabuild.base.errors import InfraError, Reason, UsageError
from kabuild.base.fs import check_output, descriptor_of
from kabuild.base.sizes import parse_size
from kabuild.model.options import MOST_JOBS, MOST_RUNS, MOST_SAMPLES


class WholeNumber(click.IntRange):
    """An integer within bounds."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Fails if it is not an integer, or out of bounds."""
        try:
            int(value)
        except ValueError:
            self.fail(f"must be an integer, got {value!r}", param, ctx)
        return int(super().convert(value, param, ctx))


JOBS = WholeNumber(min=1, max=MOST_JOBS)
RUNS = WholeNumber(min=1, max=MOST_RUNS)
SAMPLES = WholeNumber(min=1, max=MOST_SAMPLES)
COUNT = WholeNumber(min=1, max=1_000_000)
LONGEST_NUMBER = 18
"""Digits of a number that is only an identifier, such as that of a rerun."""

_MACHINES = {"ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENOMEM"}


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A time in seconds, minutes or hours: ``90s``, ``30m``, ``4h``, ``1h30m``."""

    name = "time"
    _number = r"(\d{1,8}(?:\.\d{1,3})?)"
    _form = re.compile(f"(?:{_number}h)?(?:{_number}m)?(?:{_number}s)?", re.ASCII)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        found = self._form.fullmatch(str(value))
        hours, minutes, seconds = (
            (float(text or 0) for text in found.groups()) if found else (0, 0, 0)
        )
        total = 3600 * hours + 60 * minutes + seconds
        if not total:
            self.fail(f"'{value}' is not a time such as 30m or 4h", param, ctx)
        return total


DURATION = Duration()


class Size(click.ParamType):  # type: ignore[type-arg]
    """A size in bytes, within bounds: ``500M``, ``20G``."""

    name = "size"

    def __init__(self, least: int = 0, most: float = math.inf) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes."""
        try:
            size = value if isinstance(value, int) else parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self._least <= size <= self._most:
            self.fail(f"{value} is not from {self._least} byte to {self._most:,} bytes", param, ctx)
        return size


SIZE = Size()
CONTENT = Size(least=1, most=1 << 50)
"""What a bundle may unpack to."""


class InputPath(click.Path):
    """An input file or directory; its reader reports what is wrong with it.

    With ``plain``, devices and pipes are refused: a program might wait for them for ever.
    """

    def __init__(self, *, plain: bool = False, **settings: Any) -> None:
        super().__init__(path_type=Path, **settings)
        self._is_plain = plain

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. Fails as ``click.Path``."""
        text = _plain(self, value, param, ctx)
        if _is_too_long(text):
            self.fail(f"'{text[:80]}...': File name too long", param, ctx)
        path = Path(str(super().convert(text, param, ctx)))
        if self._is_plain and os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
            self.fail(f"'{path}' is not a regular file", param, ctx)
        _check_apart(path, param, ctx)
        return path


def _is_too_long(path: str) -> bool:
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    return False


class OutputFile(click.ParamType):  # type: ignore[type-arg]
    """A file, device or pipe to write; refused at once if it is not writable."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(_plain(self, value, param, ctx))
        try:
            check_output(path)
        except OSError as error:
            if ctx is None or not ctx.resilient_parsing:
                raise unwritable(_flag(param), path, error) from None
        _check_apart(path, param, ctx)
        return path


class OutputPath(OutputFile):
    """The same, or a directory, depending on the output format."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(_plain(self, value, param, ctx))
        is_directory = os.path.isdir(path)  # noqa: PTH112 - which raises nothing
        return path if is_directory else super().convert(value, param, ctx)


def unwritable(flag: str, path: Path, error: OSError) -> UsageError | InfraError:
    """The error for a failed write: the disk is full, or the path is wrong."""
    import errno

    what = f"{flag}: {path}: {error.strerror or error}"
    if errno.errorcode.get(error.errno or 0) in _MACHINES:
        return InfraError(Reason.OUTPUT_UNWRITABLE, what)
    return UsageError(Reason.BAD_FLAG, what)


def say_of(path: Path, text: str) -> None:
    """Print a line about an output on stdout, or on stderr if the output itself goes to stdout."""
    click.echo(text, err=descriptor_of(path) == 1)


def _flag(param: click.Parameter | None) -> str:
    """A flag as users write it."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name if param else "path"


def _check_apart(path: Path, param: click.Parameter | None, ctx: click.Context | None) -> None:
    """Raise UsageError if an output is another output, or an input, which it would destroy."""
    if ctx is None or param is None or ctx.resilient_parsing:
        return
    for other in ctx.command.params:
        types = (other.type, param.type)
        if other is param or not any(isinstance(item, OutputFile) for item in types):
            continue
        value = ctx.params.get(other.name or "")
        for found in value if isinstance(value, tuple) else (value,):
            if isinstance(found, Path) and is_same_file(path, found):
                what = f"{_flag(param)} and {_flag(other)} are one file: {path}"
                raise UsageError(Reason.BAD_FLAG, what, hint="name another file")


def is_same_file(one: Path, other: Path) -> bool:
    """Whether both name one file, or would; devices, pipes and this process's streams do not."""
    if descriptor_of(one) is not None or descriptor_of(other) is not None:
        return False
    try:
        if one.exists() and other.exists():
            return one.is_file() and one.samefile(other)
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):
        return False


def _plain(
    kind: InputPath | OutputFile,
    value: Any,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> Any:
    text = str(value)
    if not text or "\0" in text:
        kind.fail(
            "the path is empty" if not text else "a path cannot contain a null byte", param, ctx
        )
    if text == "-" and isinstance(kind, OutputFile):
        what = "'-' is not standard output here: write /dev/stdout, or ./- for a file of that name"
        kind.fail(what, param, ctx)
    # Shells leave the tilde of --flag=~/file as it is.
    return os.path.expanduser(text) if text.startswith("~") else value  # noqa: PTH111
