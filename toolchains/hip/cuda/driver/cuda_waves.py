"""Refuses code that assumes waves of 64 lanes, as on AMD's data-centre processors; here are 32.

It finds the forms that show in the source and that the compiler accepts: a
width, a distance or a group of more lanes, a reduction that begins with 32 lanes, and a constant of
64 that is named after waves. Other forms stop the kernel when it runs (``hipcuda/wave.h``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from faults import Position, source_fault
from lexer import Chunk, Token

LANES = 32
_WAVE = re.compile(r"k?_?(wave|warp|wavefront)(s|_)?_?(size|lanes|width|threads)?_?", re.IGNORECASE)
_SHUFFLE = re.compile(r"__shfl(?:_(up|down|xor))?(_sync)?")
_TILES = frozenset({"tiled_partition", "thread_block_tile"})
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[1-9]\d*)[uUlL]*")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def refuse_waves_of_64(chunks: Sequence[Chunk], path: str) -> None:
    """Raise ``SourceFault`` for the first such place."""
    for chunk in chunks:
        for token, what in _places(chunk):
            where = Position(path, token.line, token.column)
            raise source_fault(where, "error", f"{what}, but a wave has {LANES} lanes here")


def _places(chunk: Chunk) -> Iterator[tuple[Token, str]]:
    tokens = chunk.tokens
    for index, token in enumerate(tokens):
        shuffle = _SHUFFLE.fullmatch(token.text)
        if shuffle:
            yield from _shuffle(tokens, index, shuffle)
        elif token.text == "for":
            yield from _reduction(tokens, index)
        elif token.text in _TILES and _text(tokens, index + 1) == "<":
            lanes = _number(tokens, index + 2)
            if lanes > LANES:
                yield tokens[index + 2], f"a tile of {lanes} lanes"
        elif _WAVE.fullmatch(token.text):
            at = index + 1 + (_text(tokens, index + 1) in {"=", "{"} and not chunk.directive)
            defined = chunk.directive and _text(tokens, 1) == "define" and index == 2
            if (defined or at == index + 2) and _number(tokens, at) == 2 * LANES:
                yield token, f"'{token.text}' is {2 * LANES}"


def _shuffle(
    tokens: Sequence[Token], index: int, name: re.Match[str]
) -> Iterator[tuple[Token, str]]:
    """A call's arguments are [mask,] value, source or distance[, width]."""
    arguments = _arguments(tokens, index + 1)[bool(name[2]) :]
    if len(arguments) > 2:
        lanes = _only_number(arguments[2])
        if lanes > LANES:
            yield arguments[2][0], f"a shuffle among {lanes} lanes"
    if len(arguments) > 1 and name[1]:
        distance = _only_number(arguments[1])
        if distance >= LANES:
            yield arguments[1][0], f"a shuffle over a distance of {distance}"


def _reduction(tokens: Sequence[Token], index: int) -> Iterator[tuple[Token, str]]:
    """``for (int step = 32; …) … __shfl_down(value, step)``: it begins with too long a step."""
    header = _arguments(tokens, index + 1)
    if len(header) != 1:
        return
    texts = [token.text for token in header[0]]
    start = next((i for i, text in enumerate(texts) if text in {"=", ";"}), 0)
    if not start or texts[start] != "=" or _number(header[0], start + 1) < LANES:
        return
    step, first = header[0][start - 1].text, header[0][start + 1]
    end = _statement_end(tokens, index + len(header[0]) + 3)
    for at in range(index, end):
        shuffle = _SHUFFLE.fullmatch(tokens[at].text)
        if shuffle is None or not shuffle[1]:
            continue
        arguments = _arguments(tokens, at + 1)[bool(shuffle[2]) :]
        if len(arguments) > 1 and step in {token.text for token in arguments[1]}:
            yield first, f"a shuffle over a distance of {first.text}"
            return


def _statement_end(tokens: Sequence[Token], index: int) -> int:
    """Where the statement that begins at ``index`` ends: its ``;``, or the brace that closes it."""
    depth = 0
    for at in range(index, len(tokens)):
        depth += (tokens[at].text in _OPENING) - (tokens[at].text in _CLOSING)
        if depth == 0 and tokens[at].text in {";", "}"}:
            return at
    return len(tokens)


def _arguments(tokens: Sequence[Token], index: int) -> list[list[Token]]:
    """The arguments of a call whose ``(`` stands at ``index``; none if there is no call."""
    if _text(tokens, index) != "(":
        return []
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[index:]:
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0:
            break
        if token.text == "," and depth == 1:
            parts.append([])
        elif depth > 1 or token.text not in _OPENING:
            parts[-1].append(token)
    return parts


def _only_number(tokens: Sequence[Token]) -> int:
    return _number(tokens, 0) if len(tokens) == 1 else 0


def _number(tokens: Sequence[Token], index: int) -> int:
    """The value of the number there; 0 for anything else."""
    match = _NUMBER.fullmatch(_text(tokens, index))
    return int(match[1], 0) if match else 0


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if index < len(tokens) else ""
