"""The positions of the parts of a TOML text.

Values are read by ``tomllib``, which keeps no positions. The scanner runs only when an error is
reported, over a text that ``tomllib`` has accepted, so it checks nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

from kabuild.rule.attr import PathStep

Path = tuple[PathStep, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
_STRING = re.compile(
    r"""
      \"{3} (?:[^\\]|\\.)*? \"{3,5}   # several lines, with escapes; may end in its own quotes
    | '{3} .*? '{3,5}                 # several lines, literal
    | \" (?:[^"\\\n]|\\.)* \"         # one line, with escapes
    | ' [^'\n]* '                     # one line, literal
    """,
    re.DOTALL | re.VERBOSE,
)
_BLANK = re.compile(r"[ \t]*")
_FILLER = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")


def find(text: str, path: Sequence[PathStep]) -> int:
    """The line, from 1, of the key or array item at ``path``.

    ``path`` holds keys and indices; ``("hip2hip", 0)`` is the first ``[[hip2hip]]``. If the text
    has no such part, the nearest one around it; 0 if there is none.
    """
    offsets = scan(text)
    steps = tuple(path)
    for end in range(len(steps), 0, -1):
        offset = offsets.get(steps[:end])
        if offset is not None:
            return text.count("\n", 0, offset) + 1
    return 0


def scan(text: str) -> dict[Path, int]:
    """The offset of every key, header and array item of a valid TOML text."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.offsets


class _Scanner:
    """One pass over a text. ``offsets`` has the first position of each path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.offsets: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}

    def document(self) -> None:
        """Headers and key-value lines until the end."""
        table: Path = ()
        self._skip(_FILLER)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_FILLER)

    def _skip(self, what: re.Pattern[str]) -> None:
        match = what.match(self.text, self.at)
        if match:
            self.at = match.end()

    def _mark(self, path: Path, offset: int) -> None:
        self.offsets.setdefault(path, offset)

    def _header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``; returns the path of its table."""
        start = self.at
        width = 2 if self.text.startswith("[[", start) else 1
        self.at += width
        *parents, (last, _) = self._key()
        self.at += width
        path: Path = ()
        for name, offset in parents:
            path = (*path, name)
            self._mark(path, offset)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        path = (*path, last)
        self._mark(path, start)
        if width == 2:
            index = self._counts.get(path, 0)
            self._counts[path] = index + 1
            path = (*path, index)
            self._mark(path, start)
        return path

    def _key(self) -> list[tuple[str, int]]:
        """A dotted key: its names with their offsets; consumes the blanks around it."""
        parts = []
        while True:
            self._skip(_BLANK)
            start = self.at
            quoted = self.text[start] in "\"'"
            self._skip(_STRING if quoted else _BARE_KEY)
            raw = self.text[start : self.at]
            name = tomllib.loads(f"key = {raw}")["key"] if quoted else raw
            parts.append((name, start))
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _pair(self, table: Path) -> None:
        """``key = value`` in ``table``."""
        path = table
        for name, offset in self._key():
            path = (*path, name)
            self._mark(path, offset)
        self.at += 1
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            self._skip(_STRING if first in "\"'" else _BARE_VALUE)

    def _array(self, path: Path) -> None:
        index = 0
        while self._next_item("]"):
            self._mark((*path, index), self.at)
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: Path) -> None:
        while self._next_item("}"):
            self._pair(path)

    def _next_item(self, closing: str) -> bool:
        """Skip the bracket or comma before the next item; False at the end of the list."""
        if self.text[self.at] != closing:
            self._skip(_FILLER)
            if self.text[self.at] != closing:
                self.at += 1
                self._skip(_FILLER)
        if self.text[self.at] == closing:
            self.at += 1
            return False
        return True
