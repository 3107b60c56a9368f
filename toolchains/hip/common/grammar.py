"""Enough of C++'s grammar to tell functions from namespaces, and alignment from a type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lexer import Chunk, Token

_DEVICE = frozenset({"__global__", "__device__"})
_ALIGNMENT = frozenset({"__align__", "alignas", "__attribute__", "__builtin_align__"})


@dataclass(frozen=True)
class Scope:
    """Where a token stands."""

    in_namespace: bool
    """Outside every function and class."""
    on_device: bool
    """Inside a function that is for the device only."""


def scoped_tokens(chunks: Sequence[Chunk]) -> Iterator[tuple[Token, Scope]]:
    """Every token outside directives, with its scope.

    The tokens since the last ``;``, ``{`` or ``}`` before a ``{`` are what the brace belongs to.
    """
    scopes = [Scope(in_namespace=True, on_device=False)]
    declaration: list[Token] = []
    for chunk in chunks:
        for token in () if chunk.directive else chunk.tokens:
            yield token, scopes[-1]
            if token.text == "{":
                scopes.append(_inner(scopes[-1], declaration))
            elif token.text == "}" and len(scopes) > 1:
                scopes.pop()
            if token.text in {";", "{", "}"}:
                declaration = []
            else:
                declaration.append(token)


def _inner(outer: Scope, declaration: Sequence[Token]) -> Scope:
    texts = [token.text for token in declaration]
    linkage = texts[:1] == ["extern"] and len(texts) == 2
    on_device = not _DEVICE.isdisjoint(texts) and "__host__" not in texts
    return Scope(
        in_namespace=outer.in_namespace and (linkage or "namespace" in texts),
        on_device=outer.on_device or on_device,
    )


def without_alignment(tokens: Sequence[Token]) -> list[Token]:
    """Drop alignment: dynamic shared memory begins with the largest that is of use."""
    out: list[Token] = []
    depth = 0
    skipping = False
    for token in tokens:
        if depth == 0:
            skipping = token.text in _ALIGNMENT or (skipping and token.text == "(")
        if skipping:
            depth += (token.text == "(") - (token.text == ")")
        else:
            out.append(token)
    return out
