"""Tokens to the text that is compiled, in one layout whatever layout the author chose.

Nothing in the compiled library may depend on where a token stood, so that an edit of comments,
blank lines or line breaks gives the same bytes. A line of output ends with a statement. An
operation on waves begins a new line: ``__builtin_LINE()`` tells such places apart.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from faults import Position
from lexer import Chunk, Token

_ENDS_LINE = frozenset({";", "{", "}"})
_WAVE_OPERATIONS = (
    "__shfl",
    "__ballot",
    "__any",
    "__all",
    "__activemask",
    "__syncwarp",
    "__match_",
    "__reduce_",
    "__builtin_amdgcn_",
)


@dataclass(frozen=True)
class Laid:
    """A source as it is compiled, and where its tokens come from."""

    path: str
    """The original's path, as the author knows it."""
    text: str
    origins: tuple[tuple[tuple[int, int, int], ...], ...]
    """Per line of ``text``: (column, original line, original column) of its tokens."""

    def original(self, line: int, column: int) -> Position:
        """The place in the original of a place in ``text``."""
        tokens = self.origins[line - 1] if 0 < line <= len(self.origins) else ()
        if not tokens:
            before = [tokens for tokens in self.origins[: max(line, 0)] if tokens]
            return Position(self.path, before[-1][-1][1] if before else 1, 1)
        at = max(bisect_right(tokens, (column, 1 << 60, 0)) - 1, 0)
        start, original_line, original_column = tokens[at]
        # Inside a token too: a message about an escape points into its literal.
        return Position(self.path, original_line, original_column + max(column - start, 0))


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.origins: list[tuple[tuple[int, int, int], ...]] = []
        self._parts: list[str] = []
        self._marks: list[tuple[int, int, int]] = []
        self._length = 0

    def put(self, token: Token, separator: str) -> None:
        if separator == "\n":
            self.end_line()
        elif separator and self._length:
            self._add(separator)
        # Columns count bytes, as compilers do.
        self._marks.append((self._length + 1, token.line, token.column))
        head, *rest = token.text.split("\n")
        self._add(head)
        for line in rest:
            self.end_line()
            self._add(line)

    def end_line(self) -> None:
        if self._length or self._marks:
            self.lines.append("".join(self._parts))
            self.origins.append(tuple(self._marks))
        self._parts, self._marks, self._length = [], [], 0

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text.encode())


def lay_out(chunks: list[Chunk], path: str) -> Laid:
    """Write the chunks of one file."""
    writer = _Writer()
    for chunk in chunks:
        writer.end_line()
        previous = ""
        for token in chunk.tokens:
            writer.put(token, _separator(previous, token, directive=chunk.directive))
            previous = token.text
    writer.end_line()
    return Laid(path, "".join(f"{line}\n" for line in writer.lines), tuple(writer.origins))


def _separator(previous: str, token: Token, *, directive: bool) -> str:
    if not token.spaced:
        return ""
    if directive:
        return " "
    if previous in _ENDS_LINE or token.text.startswith(_WAVE_OPERATIONS):
        return "\n"
    return " "
