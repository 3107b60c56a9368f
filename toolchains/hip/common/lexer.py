"""C++ source text to tokens that know where they come from."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from faults import Position, source_fault

_PREFIX = r"(?:u8|[uUL])?"
_PATTERN = re.compile(
    rf"""
      (?P<newline>\n)
    | (?P<space>[ \t\f\v\r]+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<raw>{_PREFIX}R"(?P<delimiter>[^()\\\s]{{0,16}})\(.*?\)(?P=delimiter)")
    | (?P<unended>{_PREFIX}R"[^()\\\s]{{0,16}}\()
    | (?P<literal>{_PREFIX}"(?:\\.|[^"\\\n])*"|{_PREFIX}'(?:\\.|[^'\\\n])+')
    | (?P<name>[^\W\d]\w*)
    | (?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*)
    | (?P<mark><<<|>>>|<<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#
              |[-+*/%&|^]=|\.\*|%:|<%|%>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SPLICE = re.compile(r"\\[ \t]*\n")
_DIGRAPHS = frozenset({"%:", "<%", "%>"})


class Token(NamedTuple):
    """One token, without the comments and spaces around it."""

    kind: str
    """``name``, ``number``, ``literal``, ``raw`` or ``mark``."""
    text: str
    line: int
    column: int
    spaced: bool
    """Whether a space, comment or line break comes before it."""


@dataclass(frozen=True)
class Chunk:
    """A preprocessor directive (its tokens begin with ``#``), or the code between two of them."""

    tokens: tuple[Token, ...]
    directive: bool


class _Origin:
    """Maps offsets in the text without line splices to lines and columns of the original."""

    def __init__(self, text: str) -> None:
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._ends: list[int] = []
        self._removed: list[int] = []
        removed = 0
        for splice in _SPLICE.finditer(text):
            self._ends.append(splice.start() - removed)
            removed += len(splice.group())
            self._removed.append(removed)

    def offset(self, spliced: int) -> int:
        """The offset in the original text."""
        index = bisect_right(self._ends, spliced) - 1
        return spliced + (self._removed[index] if index >= 0 else 0)

    def place(self, spliced: int) -> tuple[int, int]:
        """Line and column in the original text."""
        offset = self.offset(spliced)
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def lex(text: str, path: str) -> list[Chunk]:
    """Split a source into directives and code.

    Comments and the layout are gone from the result; what is left of them is whether a token
    has space before it. Raises ``SourceFault`` for what no compiler should see: an unterminated
    comment or raw string, a digraph, a control character.
    """
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    origin = _Origin(text)
    chunks: list[Chunk] = []
    tokens: list[Token] = []
    in_directive = False
    at_line_start = True
    spaced = False
    for match in _PATTERN.finditer(_SPLICE.sub("", text)):
        kind = match.lastgroup or ""
        if kind in {"space", "comment"}:
            spaced = True
            continue
        if kind == "newline":
            at_line_start = True
            spaced = True
            if in_directive:
                _flush(chunks, tokens, directive=True)
                in_directive = False
            continue
        token = _token(kind, match, origin, text, spaced=spaced)
        _refuse_unreadable(token, match.string, match.start(), path)
        if token.text == "#" and at_line_start:
            _flush(chunks, tokens, directive=in_directive)
            in_directive = True
        tokens.append(token)
        at_line_start = False
        spaced = False
    _flush(chunks, tokens, directive=in_directive)
    return chunks


def _token(kind: str, match: re.Match[str], origin: _Origin, text: str, *, spaced: bool) -> Token:
    line, column = origin.place(match.start())
    if match.group("raw") is not None:
        # A raw string keeps its line splices.
        original = text[origin.offset(match.start()) : origin.offset(match.end() - 1) + 1]
        return Token("raw", original, line, column, spaced)
    return Token(kind, match.group(), line, column, spaced)


def _refuse_unreadable(token: Token, text: str, offset: int, path: str) -> None:
    position = Position(path, token.line, token.column)
    if token.kind == "unended":
        # At once: to look for the end of each of a thousand takes its square.
        raise source_fault(position, "error", "unterminated raw string")
    if token.kind != "mark":
        return
    if token.text in _DIGRAPHS:
        raise source_fault(position, "unsupported", f"the digraph '{token.text}'")
    if token.text == "/" and text.startswith("/*", offset):
        raise source_fault(position, "error", "unterminated comment")
    if ord(token.text[0]) < 32:
        raise source_fault(position, "error", "control character in the source")


def _flush(chunks: list[Chunk], tokens: list[Token], *, directive: bool) -> None:
    if tokens:
        chunks.append(Chunk(tuple(tokens), directive))
        tokens.clear()
