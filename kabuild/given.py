"""The files that flags name: solution and salt, checked before anything runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_type_hints

from kabuild.base.errors import Reason, UsageError
from kabuild.base.listing import abridged
from kabuild.base.reading import read_bounded
from kabuild.loading.request import Request
from kabuild.model.action import Source
from kabuild.model.graph import ActionGraph
from kabuild.model.options import MOST_JOBS, MOST_RUNS, MOST_SAMPLES

MOST_SALT = 4096
"""Bytes of a file with a salt."""


_NUMBERS = "numbers of devices, such as (0, 2)"
_KINDS: Mapping[object, tuple[str, Callable[[object], bool]]] = {
    bool: ("True or False", lambda value: isinstance(value, bool)),
    str | None: ("a text", lambda value: isinstance(value, str)),
    Path | None: ("a Path", lambda value: isinstance(value, Path)),
    tuple[int, ...]: (
        _NUMBERS,
        lambda value: (
            isinstance(value, tuple)
            and all(type(number) is int and number >= 0 for number in value)
        ),
    ),
}


def said(value: object) -> str:
    """A value as a message shows it, also if its class cannot say what it is."""
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001 - foreign code
        return f"a value of type {type(value).__name__}"


def check_types(declared: type, given: Mapping[str, object]) -> None:
    """Refuse what the command line could not have given: values of other types than declared.

    Python does not, and then ``hermetic="no"`` is true. ``check_numbers`` has the numbers.
    Raises UsageError.
    """
    hints = get_type_hints(declared)
    for name, value in given.items():
        what, fits = _KINDS.get(hints[name], ("", None))
        if fits and not fits(value):
            raise UsageError(Reason.BAD_FLAG, f"{name} must be {what}, got {said(value)}")


def check_numbers(request: Request) -> None:
    """Refuse absurd numbers, also from the API."""
    for name, value, most in (
        ("jobs", request.jobs, MOST_JOBS),
        ("samples", request.samples, MOST_SAMPLES),
        ("runs_per_test", request.runs_per_gate, MOST_RUNS),
    ):
        if value is not None and not (type(value) is int and 1 <= value <= most):
            what = f"{name} must be from 1 to {most}, got {said(value)}"
            raise UsageError(Reason.BAD_FLAG, what)


def check_names(request: Request) -> None:
    """Refuse an empty name, such as of a variable that is not set: not the default is meant."""
    for name, value in (("agent", request.agent), ("policy", request.policy)):
        if value == "":
            what = f"{name} must be a name, got ''"
            raise UsageError(Reason.BAD_FLAG, what, hint="leave it out for the default")


def solution_of(request: Request) -> Source | None:
    """The file or directory that ``--solution`` names. Raises UsageError."""
    if request.solution is None:
        return None
    try:
        path = os.path.realpath(request.cwd / request.solution)
        mode = os.stat(path).st_mode  # noqa: PTH116 - Path.resolve() raises on loops, by itself
        path.encode()
    except FileNotFoundError:
        raise UsageError(
            Reason.BAD_SOLUTION,
            f"the solution: no file or directory '{request.solution}'",
            hint="give the kernel file, or the directory that holds it",
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or "its path is not UTF-8, or has a null byte"
        what = f"--solution: {request.solution}: {why}"
        raise UsageError(Reason.BAD_SOLUTION, what) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        what = f"--solution: '{request.solution}' is neither a file nor a directory"
        raise UsageError(Reason.BAD_SOLUTION, what)
    return Source(f"{path}/" if stat.S_ISDIR(mode) else path, "user")


def salt_of(request: Request) -> str:
    """The salt in ``--unseen_salt_file``; empty without the flag. Raises UsageError."""
    if request.salt_file is None:
        return ""
    try:
        salt = read_bounded(request.cwd / request.salt_file, MOST_SALT).decode().strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no UTF-8 text"
        raise UsageError(
            Reason.BAD_FLAG, f"--unseen_salt_file: {request.salt_file}: {why}"
        ) from None
    if len(salt) < 16:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--unseen_salt_file: {request.salt_file} holds {len(salt)} characters",
            hint="a salt that cannot be guessed has at least 16: openssl rand -hex 16 > salt",
        )
    return salt


def check_given(request: Request, graph: ActionGraph) -> None:
    """Refuse a solution directory that lacks files which the task needs. Raises UsageError."""
    if request.solution is None:
        return
    for action in graph.actions.values():
        for _, item in action.inputs:
            if isinstance(item, Source) and item.root == "user":
                _require_file(request, Path(item.path))


def _require_file(request: Request, path: Path) -> None:
    if path.is_file():
        return
    found = sorted(file.name for file in path.parent.glob("*") if file.is_file())
    raise UsageError(
        Reason.BAD_SOLUTION,
        f"--solution: the directory '{request.solution}' has no file '{path.name}'",
        hint=f"it has: {abridged(found)}; to judge one of these, give its path"
        if found
        else "it has no files at all",
    )
