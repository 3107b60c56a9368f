"""Translates the places in a sanitizer's report to the author's lines."""

from __future__ import annotations

import json
import posixpath
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WRITTEN = "at:"
"""The prefix of a place ``at:FILE:LINE:COLUMN`` of the laid-out source; others are instructions."""


@dataclass(frozen=True)
class Place:
    """A place in the author's source; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class _File:
    name: str
    lines: Sequence[Sequence[Sequence[int]]]
    """Per line of the laid-out source: column, original line and column of its tokens."""

    def original(self, line: int, column: int) -> Place | None:
        tokens = self.lines[line - 1] if 0 < line <= len(self.lines) else ()
        if not tokens:
            return None
        at = max(bisect_right([token[0] for token in tokens], column) - 1, 0)
        return Place(self.name, tokens[at][1], tokens[at][2])


class Places:
    """The table that the compiler writes beside an instrumented library."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._files = {
            name: _File(str(entry["name"]), entry["lines"])
            for name, entry in table["files"].items()
        }
        self._names = tuple(self._files)
        self._code: Sequence[Sequence[int]] = table["code"]
        self._offsets = [row[0] for row in self._code]

    @classmethod
    def read(cls, path: Path) -> Places:
        """Read the table in ``path``. Raises OSError, and ValueError for a malformed one."""
        table = json.loads(path.read_bytes())
        if not isinstance(table, dict) or table.get("schema") != 1:
            raise ValueError(f"{path.name} is not a table of places of schema 1")
        return cls(table)

    @classmethod
    def of_lines(cls, name: str, path: Path, author: str) -> Places:
        """The places of a file ``name`` whose lines all come from the file ``author``.

        ``path`` holds the original line numbers, as a JSON list; columns are unknown, 0.
        Raises OSError, and ValueError for a malformed list.
        """
        numbers = json.loads(path.read_bytes())
        if not isinstance(numbers, list) or any(type(number) is not int for number in numbers):
            raise ValueError(f"{path.name} is not a list of lines")
        lines = [[[1, number, 0]] for number in numbers]
        return cls({"files": {name: {"name": author, "lines": lines}}, "code": []})

    def find(self, places: str) -> Place | None:
        """The first of the comma-separated places that is in the author's files."""
        for place in places.split(","):
            found = self._written(place) if place.startswith(_WRITTEN) else self._compiled(place)
            if found is not None:
                return found
        return None

    def _written(self, place: str) -> Place | None:
        parts = place.removeprefix(_WRITTEN).rsplit(":", 2)
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts[1:]):
            return None
        file = self._files.get(posixpath.normpath(parts[0]))
        return file.original(int(parts[1]), int(parts[2])) if file else None

    def _compiled(self, place: str) -> Place | None:
        try:
            at = bisect_right(self._offsets, int(place, 16)) - 1
        except ValueError:
            return None
        if at < 0:
            return None
        _, file, line, column = self._code[at]
        return self._files[self._names[file]].original(line, column) if file >= 0 else None
