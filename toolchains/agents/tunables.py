"""Tunables: numbers in a kernel that its author lets a search choose.

    // kabuild:tune kThreads = 128, 256, 512        # kabuild:tune BLOCK = 64, 128, 256
    constexpr int kThreads = 256;                   kernel[grid](x, y, n, BLOCK=128)

The comment stands above the line that gives the value: a ``#define``, an assignment, or an argument
by keyword. Several such comments may stand above one line, and a statement may take some lines: the
first of the next eight that gives the value is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_DECLARATION = re.compile(r"^\s*(?://|#)\s*kabuild:tune\b(.*)$")
_BODY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.+?)\s*$")
_REACH = 8
_VALUE = re.compile(r"[\w.+-]+")


class TunableError(ValueError):
    """A declaration is wrong; the text names its line."""


@dataclass(frozen=True)
class Tunable:
    """One number: its name, its possible values, its default, and its line (from 0)."""

    name: str
    values: tuple[str, ...]
    default: str
    line: int


Assignment = Mapping[Tunable, str]


def find(text: str) -> tuple[Tunable, ...]:
    """The tunables of a kernel, in order. Raises TunableError."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        if declaration := _DECLARATION.match(line):
            name, values = _read(number, declaration[1])
            found.append(_below(lines, number, name, values))
    return tuple(found)


def apply(text: str, assignment: Assignment) -> str:
    """The kernel with other values."""
    lines = text.splitlines(keepends=True)
    for tunable, value in assignment.items():
        match = _assignment(tunable.name).search(lines[tunable.line])
        assert match is not None, "find() matched it"
        start, end = match.span("value")
        lines[tunable.line] = lines[tunable.line][:start] + value + lines[tunable.line][end:]
    return "".join(lines)


def describe(assignment: Assignment) -> str:
    """``kThreads=128 kTile=16``, for people."""
    return " ".join(f"{tunable.name}={value}" for tunable, value in assignment.items())


def _below(lines: Sequence[str], declared: int, name: str, values: tuple[str, ...]) -> Tunable:
    for number in range(declared + 1, min(declared + 1 + _REACH, len(lines))):
        match = _assignment(name).search(lines[number])
        if match and not _DECLARATION.match(lines[number]):
            return Tunable(name, values, match["value"], number)
    raise TunableError(f"line {declared + 1}: no line below sets '{name}'")


def _read(number: int, body: str) -> tuple[str, tuple[str, ...]]:
    match = _BODY.match(body)
    values = tuple(value.strip() for value in match[2].split(",")) if match else ()
    if match is None or not all(_VALUE.fullmatch(value) for value in values):
        raise TunableError(f"line {number + 1}: write 'kabuild:tune NAME = 64, 128, 256'")
    if len(set(values)) != len(values):
        raise TunableError(f"line {number + 1}: a value of '{match[1]}' is listed twice")
    return match[1], values


def _assignment(name: str) -> re.Pattern[str]:
    """A line that sets ``name``: ``#define N 1``, ``N = 1``, ``N: tl.constexpr = 1``, ``N=1``."""
    value = r"(?P<value>[\w.+-]+)"
    other = rf"\b{name}\b\s*(?::\s*[\w.]+\s*)?=\s*{value}"
    return re.compile(rf"(?:^\s*#\s*define\s+{name}\s+|{other[: -len(value)]}){value}")
